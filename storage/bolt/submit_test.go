package bolt

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/storagetest"
)

// TestSubmitTakesWhatIsRemembered: only what needs no look into state.db.
func TestSubmitTakesWhatIsRemembered(t *testing.T) {
	for name, c := range map[string]struct {
		trust messages.TrustLevel
		next  storagetest.Spec
		want  bool
	}{
		"a workspace that is remembered":    {messages.TrustNone, storagetest.Spec{Workspace: 3}, true},
		"a row behind the remembered end":   {messages.TrustNone, storagetest.Spec{Workspace: 3, Create: []messages.SeqID{storagetest.SeqOrder}}, true},
		"a workspace that was not seen":     {messages.TrustNone, storagetest.Spec{Workspace: 6}, false},
		"the same, where nothing is looked": {messages.TrustAll, storagetest.Spec{Workspace: 6}, true},
		"a deduplication id":                {messages.TrustAll, storagetest.Spec{Workspace: 3, DedupID: messages.DedupID{1}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir(), storagetest.Descriptor(c.trust), Options{})
			p := storagetest.Take(t, s, 0)
			p.Append(t, storagetest.Spec{Workspace: 3, Create: []messages.SeqID{storagetest.SeqOrder}})
			answer := make(chan error, 1)
			b := p.Build(c.next)
			want := slices.Clone(b.Events)
			rest := s.Submit(b, func(err error) { answer <- err })
			if got := rest == nil; got != c.want {
				t.Fatalf("got taken %t, want %t", got, c.want)
			}
			clear(b.Events) // it is prepared: what is left to do needs it no more
			if rest != nil {
				expect.NoError(t, rest(t.Context()))
			}
			expect.NoError(t, <-answer)
			expect.Equal(t, want, collectEvents(t, s.Log(t.Context(), 2)))
		})
	}
}

// TestRestIsRefused: what is left to do of a batch is refused when the store is closed or the context has ended, and is
// not answered then. Of a store that is closed nothing is left to do.
func TestRestIsRefused(t *testing.T) {
	s := open(t, t.TempDir(), storagetest.Descriptor(messages.TrustNone), Options{})
	p := storagetest.Take(t, s, 0)
	b := p.Build(storagetest.Spec{Workspace: 3, DedupID: messages.DedupID{1}})
	never := func(err error) { t.Errorf("got the answer %v", err) }
	late, closed := s.Submit(b, never), s.Submit(b, never)
	ended, end := context.WithCancel(t.Context())
	end()
	expect.ErrorIs(t, late(ended), context.Canceled)
	closeStore(t, s)
	expect.ErrorIs(t, closed(t.Context()), storage.ErrClosed)
	var answer error
	if s.Submit(b, func(err error) { answer = err }) != nil {
		t.Error("something is left to do")
	}
	expect.ErrorIs(t, answer, storage.ErrClosed)
}

// TestDoorIsShut: a batch that was on its way when the store was closed is not taken.
func TestDoorIsShut(t *testing.T) {
	s := open(t, t.TempDir(), storagetest.Descriptor(messages.TrustNone), Options{})
	p := storagetest.Take(t, s, 0)
	b := p.Build(storagetest.Spec{Workspace: 3})
	r, err := s.request(&b)
	if err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	if s.door.LetIn(s.writes, r) {
		t.Error("it was taken, and nobody will answer it")
	}
}

// TestSubmittedBehindAnUnknownOutcome: what waits behind a commit of which nobody knows whether it
// is on the disk is answered, though nothing is written any more.
func TestSubmittedBehindAnUnknownOutcome(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(2, messages.TrustAll), Options{})
	writers := []*writer{takeOver(t, s, 0), takeOver(t, s, 1)}
	entered, proceed := make(chan struct{}), make(chan struct{})
	diskOf(s).After.Set(func() error {
		close(entered)
		<-proceed
		return io.ErrUnexpectedEOF
	})
	answers := make(chan error, len(writers))
	submit := func(w *writer, ws messages.WSID) {
		b := storage.Batch{Partition: w.id, Epoch: w.epoch, Events: []messages.Event{w.event(ws)}}
		if s.Submit(b, func(err error) { answers <- err }) != nil {
			t.Fatalf("partition %d: the batch was not taken", w.id)
		}
	}
	submit(writers[0], 2)
	<-entered
	submit(writers[1], 1)
	close(proceed)
	closeStore(t, s)
	for i, want := range []error{messages.ErrOutcomeUnknown, storage.ErrClosed} {
		select {
		case err := <-answers:
			if !errors.Is(err, want) {
				t.Errorf("batch %d: got %v, want %v", i, err, want)
			}
		default:
			t.Errorf("batch %d: nobody has answered", i)
		}
	}
}
