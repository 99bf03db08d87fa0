package actors_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
)

// tooLarge checks that an error says what was too large.
func tooLarge(t *testing.T, what string, err error, got, want int) {
	t.Helper()
	e, ok := errors.AsType[*messages.TooLargeError](err)
	if !ok || !errors.Is(err, messages.ErrTooLarge) || *e != (messages.TooLargeError{Workspace: 7, Got: got, Want: want}) {
		t.Errorf("%s: got %v, want that %d bytes are more than %d", what, err, got, want)
	}
}

// TestTooLarge: a group is refused on every way in, before it is copied, and so is one
// event; what is just as large as it may be is written.
func TestTooLarge(t *testing.T) {
	const most, half, bound = 1 << 20, 1 << 19, 1 << 18
	r := readyRig(t, setup{settings: messages.Settings{GroupBytes: most}})
	drafting := r.spawnAppender(func(_ context.Context, d *actors.DraftContext) error {
		if d.Command().Body == nil {
			d.SetBody(make([]byte, most))
		}
		return nil
	})
	handling := r.spawnProcessor(10, accept)
	group := []messages.Draft{large(half - 256), large(half - 256 + 1)}
	c := messages.Command{Workspace: 7, Kind: shop, Body: make([]byte, most)}
	once := to(7)
	once.DedupID = messages.DedupID{1}
	for what, call := range map[string]struct {
		got int
		do  func() error
	}{
		"group": {most + 1, func() error {
			_, err := r.of(7).AppendAll(r.ctx, to(7), group)
			return err
		}},
		"group with a deduplication id": {most + 1, func() error {
			_, err := r.of(7).AppendAll(r.ctx, once, group)
			return err
		}},
		"event": {most + 256, func() error {
			_, err := r.of(7).Append(r.ctx, to(7), messages.Draft{Body: c.Body})
			return err
		}},
		"command of a drafter": {most + 256, func() error {
			_, err := drafting.Execute(r.ctx, c)
			return err
		}},
		"command of a handler": {most + 256, func() error {
			_, err := handling.Execute(r.ctx, c)
			return err
		}},
		"command by message": {most + 256, func() error {
			reply, err := r.ports.Ask(r.ctx, handling.PID(), &c, nil)
			r.check(err)
			return r.refusedWith(reply)
		}},
		"append by message": {most + 1, func() error {
			return r.refusedWith(r.ask(0, &messages.Append{Workspace: 7, Kind: shop, Drafts: group}))
		}},
	} {
		var err error
		if n := allocated(func() { err = call.do() }); n > bound {
			t.Errorf("%s: it allocates %d bytes, want at most %d", what, n, bound)
		}
		tooLarge(t, what, err, call.got, most)
	}
	_, err := drafting.Execute(r.ctx, messages.Command{Workspace: 7, Kind: shop})
	tooLarge(t, "draft of a drafter", err, most+256, most)
	if n := len(r.log(0)); n != 0 {
		t.Fatalf("got %d events, want none", n)
	}
	group[1].Body = group[1].Body[1:]
	if _, err := r.of(7).AppendAll(r.ctx, to(7), group); err != nil {
		t.Errorf("as much as there may be: %v", err)
	}
}

// TestTooLargeIsReconfigured: while a partition runs, and a group that was written when
// it could be larger is recognised.
func TestTooLargeIsReconfigured(t *testing.T) {
	r := readyRig(t, setup{settings: messages.Settings{GroupBytes: 1 << 20}})
	group := []messages.Draft{large(1 << 19), large(1 << 18)}
	first, err := r.of(7).AppendAll(r.ctx, toOnce(7, 1), group)
	r.check(err)
	const most = 1 << 16
	r.check(r.partitions[0].Reconfigure(r.ctx, r.ports, messages.Settings{GroupBytes: most}.WithDefaults()))
	again, err := r.of(7).AppendAll(r.ctx, toOnce(7, 1), group)
	r.check(err)
	if len(again) != 2 || !again[0].Repeated || again[0].PLogOffset != first[0].PLogOffset {
		t.Errorf("got %+v, want %+v repeated", again, first)
	}
	group[0].Body[0]++
	_, err = r.of(7).AppendAll(r.ctx, toOnce(7, 1), group)
	wants(t, "other drafts", err, messages.ErrDedupMismatch)
	_, err = r.of(7).AppendAll(r.ctx, toOnce(7, 2), group)
	tooLarge(t, "a new group", err, 1<<19+1<<18+512, most)
	if n := len(r.log(0)); n != 2 {
		t.Errorf("got %d events, want 2", n)
	}
}

// TestLargerThanAllBounds: one append may be larger than what may be in flight and in the
// lane, and nobody waits for ever behind it.
func TestLargerThanAllBounds(t *testing.T) {
	r := readyRig(t, setup{settings: messages.Settings{InFlightBytes: 1}, requestBytes: 1})
	patient := to(7)
	patient.Wait = true
	const callers = 20
	results := make(chan error, callers)
	for n := range callers {
		go func() {
			_, err := r.of(7).AppendAll(r.ctx, patient, []messages.Draft{large(1 << (n % 15)), large(1)})
			results <- err
		}()
	}
	for range callers {
		wants(t, "append", next(t, results), nil)
	}
	if n := len(r.log(0)); n != 2*callers {
		t.Errorf("got %d events, want %d", n, 2*callers)
	}
	if got := (messages.Settings{GroupBytes: math.MinInt}).WithDefaults().Validate(); !errors.Is(got, messages.ErrSettings) {
		t.Errorf("got %v, want %v", got, messages.ErrSettings)
	}
}

// TestTooLargeForAnything: where not even an empty event may be written, a deduplication id is looked for all the same.
func TestTooLargeForAnything(t *testing.T) {
	r := readyRig(t, setup{})
	_, err := r.of(7).Append(r.ctx, toOnce(7, 1), large(1))
	r.check(err)
	r.check(r.partitions[0].Reconfigure(r.ctx, r.ports, messages.Settings{GroupBytes: 1}.WithDefaults()))
	again, err := r.of(7).Append(r.ctx, toOnce(7, 1), large(1))
	r.check(err)
	if !again.Repeated {
		t.Errorf("got %+v, want it repeated", again)
	}
	_, err = r.of(7).Append(r.ctx, toOnce(7, 2), large(1))
	tooLarge(t, "a new one", err, 257, 1)
}
