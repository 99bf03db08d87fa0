package actors_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/actors/actorstest"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/storagetest"
)

// large is a draft with a body of so many bytes.
func large(bytes int) messages.Draft { return messages.Draft{Body: make([]byte, bytes)} }

// heap returns what is alive.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// allocated returns how many bytes f allocates.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// TestWaitingCallersKeepNoCopies: however many wait for a place, and however large what
// they have, it takes memory when it has a place; also of those whose context ends.
func TestWaitingCallersKeepNoCopies(t *testing.T) {
	const body, callers, bound = 1 << 20, 200, 16 << 20
	r := readyRig(t, setup{settings: messages.Settings{InFlightBytes: body}, requestBytes: body})
	gate := r.newGate()
	r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.Hold(gate), Times: 1})
	patient := to(7)
	patient.Wait = true
	draft := large(body)
	before := heap()
	ctx, leave := r.client()
	results := make(chan error, callers)
	var stayed []chan error
	begin := func(ctx context.Context, result chan error) {
		go func() {
			_, err := r.of(7).Append(ctx, patient, draft)
			result <- err
		}()
	}
	for range 2 { // one is in flight, and one in the lane
		stayed = append(stayed, make(chan error, 1))
		begin(r.ctx, stayed[len(stayed)-1])
	}
	r.queued(1)
	for range callers {
		begin(ctx, results)
	}
	r.queued(1 + callers)
	if got := heap() - before; got > bound {
		t.Errorf("%d callers wait with one body of %d bytes: %d bytes more, want at most %d", callers, body, got, bound)
	}
	leave()
	for range callers {
		wants(t, "who leaves", next(t, results), errGone)
	}
	r.queued(1)
	stayed = append(stayed, make(chan error, 1))
	begin(r.ctx, stayed[2])
	r.queued(2)
	gate.Release()
	for _, s := range stayed {
		wants(t, "who stays", next(t, s), nil)
	}
	if n := len(r.log(0)); n != 3 {
		t.Errorf("got %d events, want 3", n)
	}
}

// TestFullLaneCopiesNothing: whoever is told at once that the lane is full has cost no copy, be
// it an append or a command.
func TestFullLaneCopiesNothing(t *testing.T) {
	const body, tries, bound = 1 << 20, 50, 10 << 20
	r := readyRig(t, setup{requests: 1})
	tx := r.start(7)
	queued := r.appending(r.ctx, to(7))
	r.queued(1)
	b := newBlocking()
	p := r.spawnConfigured(actors.CommandProcessorConfig{Handler: b.handle, Requests: 1})
	draft, c := large(body), command()
	c.Body = draft.Body
	refused := func(what string, do func() error) {
		t.Helper()
		if got := allocated(func() {
			for range tries {
				wants(t, what, do(), messages.ErrBusy)
			}
		}); got > bound {
			t.Errorf("%s: %d refusals of %d bytes allocate %d bytes, want at most %d", what, tries, body, got, bound)
		}
	}
	refused("append", func() error {
		_, err := r.of(7).Append(r.ctx, to(7), draft)
		return err
	})
	r.check(tx.Cancel(r.ctx))
	wants(t, "who was queued", next(t, queued), nil)
	i := actorstest.NewInbox(t, system)
	postTo(p, i, 1)
	next(t, b.arrived)
	postTo(p, i, 2)
	refused("command", func() error {
		_, err := p.Execute(r.ctx, c)
		return err
	})
	close(b.release)
}

// TestMemoryIsTheCallersAgain: when a call has returned, whatever it says, its memory is
// the caller's: nothing that is done to it then is in the log. With -race, nobody looks.
func TestMemoryIsTheCallersAgain(t *testing.T) {
	const callers, each, size = 8, 60, 4 << 10
	r := readyRig(t, setup{requests: 2, settings: messages.Settings{InFlightEvents: 2}})
	patient := to(7)
	patient.Wait = true
	var all sync.WaitGroup
	for caller := range callers {
		random := rand.New(rand.NewPCG(1, uint64(caller)))
		all.Go(func() {
			draft := large(size)
			for n := range each {
				for i := range draft.Body {
					draft.Body[i] = byte(n)
				}
				ctx, cancel := context.WithCancel(r.ctx)
				if random.IntN(2) == 0 {
					all.Go(cancel)
				}
				once := patient
				once.DedupID = messages.DedupID{1, byte(n), byte(caller)}
				_, err := r.of(7).Append(ctx, once, draft)
				cancel()
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	r.append(7) // the last
	log := r.log(0)
	for _, e := range log[:len(log)-1] {
		if n := e.DedupID[1]; !bytes.Equal(e.Body, bytes.Repeat([]byte{n}, size)) {
			t.Fatalf("the event at %d of append %d has the bytes of another one", e.PLogOffset, n)
		}
	}
}
