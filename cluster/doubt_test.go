package cluster

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// TestUnknownOutcome cuts the owner off before it is asked to append: who has a deduplication id waits for the answer, who
// has none is told that nobody knows it.
func TestUnknownOutcome(t *testing.T) {
	t.Parallel()
	for name, there := range map[string]bool{"at the owner": true, "at another node": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.append(r.owner(), 1, 1)
			for !r.isUnknown(there) {
				t.Log("on a busy machine the owner knew that it was cut off, or another node led, before it was asked")
			}
			times := 0
			for _, body := range r.bodies(r.owner(), 1) {
				if body == string(one(3).Body) {
					times++
				}
			}
			if times != 1 {
				t.Errorf("with an id: it is there %d times", times)
			}
		})
	}
}

// isUnknown cuts the owner off, and lets it, or another node, append: with an id, which waits until the owner is back, and
// without. It reports whether the owner was asked in time.
func (r *rig) isUnknown(atOwner bool) bool {
	r.Helper()
	was := r.owner()
	asked := was
	if !atOwner {
		asked = r.others(was)[0]
	}
	r.append(asked, 1, 1) // its stream is open from here on
	r.isolate(was.o.Node)
	known := make(chan error, 1)
	go func() {
		_, err := asked.Append(r.ctx, to(1, 3), one(3))
		known <- err
	}()
	plain := to(1, 0)
	plain.DedupID = partition.DedupID{}
	ctx, cancel := context.WithTimeout(r.ctx, 10*time.Second)
	defer cancel()
	_, err := asked.Append(ctx, plain, one(2))
	// The owner that is cut off acknowledges nothing; another node may know who leads by now.
	if (err != nil || atOwner) && !errors.Is(err, messages.ErrOutcomeUnknown) && !errors.Is(err, context.DeadlineExceeded) {
		r.Errorf("without an id: got %v, want ErrOutcomeUnknown", err)
	}
	r.owner(was.o.Node)
	r.heal(was.o.Node)
	if err := <-known; err != nil {
		r.Errorf("with an id: %v", err)
	}
	return errors.Is(err, messages.ErrOutcomeUnknown) && ctx.Err() == nil || r.Failed()
}

// TestUnknownOutcomeOverHTTP is that for requests with and without a key.
func TestUnknownOutcomeOverHTTP(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	w := r.serve()
	was := r.owner()
	asked := r.others(was)[0]
	r.append(asked, 1, 1)
	w.has(http.StatusCreated, asked.o.Node, http.MethodPost, "/v1/workspaces/1/events", event)
	r.isolate(was.o.Node)
	known := make(chan int, 1)
	go func() {
		// The owner that hears nobody may be all that this node knows for a while: a client repeats.
		status := http.StatusServiceUnavailable
		defer func() { known <- status }() // also if it fails the test
		for end := time.Now().Add(patience); status >= http.StatusInternalServerError && time.Now().Before(end); {
			status, _ = w.ask(asked.o.Node, http.MethodPost, "/v1/workspaces/1/events", event, "Idempotency-Key", "k")
		}
	}()
	// On a busy machine another node may lead, and be known, before that is asked.
	if status, content := w.ask(asked.o.Node, http.MethodPost, "/v1/workspaces/1/events", event); status != http.StatusInternalServerError && status != http.StatusCreated {
		t.Errorf("without a key: got %d, %s, want an unknown outcome", status, content)
	}
	if status := <-known; status != http.StatusCreated && status != http.StatusOK {
		t.Errorf("with a key: got %d", status)
	}
}

// TestDoubtStays says what the caller is told when a later try is refused: only what was judged behind a look for the event
// says that no try was done.
func TestDoubtStays(t *testing.T) {
	t.Parallel()
	busy := &messages.BusyError{Reason: messages.BusyNoQuorum}
	lost := &lostError{sent: true, err: errReplaced}
	for name, test := range map[string]struct {
		tried   []error
		again   bool
		unknown bool
	}{
		"refused":                    {[]error{busy}, false, false},
		"not the owner":              {[]error{&OwnerError{}}, true, false},
		"not sent":                   {[]error{&lostError{err: errReplaced}}, true, false},
		"lost":                       {[]error{lost}, true, true},
		"lost, then refused":         {[]error{lost, busy}, false, true},
		"lost, then not the owner":   {[]error{lost, &OwnerError{}}, true, true},
		"lost, then it is not there": {[]error{lost, &messages.OffsetError{}}, false, false},
		"moved":                      {[]error{&movedError{busy}}, true, false},
		"unknown":                    {[]error{messages.ErrOutcomeUnknown}, true, true},
	} {
		p := pursuit{writes: true, repeatable: true}
		var again bool
		var last error
		for _, last = range test.tried {
			again = p.judge(last)
		}
		if got := errors.Is(p.final(last), messages.ErrOutcomeUnknown); again != test.again || got != test.unknown {
			t.Errorf("%s: got again %v, unknown %v", name, again, got)
		}
		if !errors.Is(p.final(last), last) {
			t.Errorf("%s: got %v, which does not say why", name, p.final(last))
		}
	}
	reads := pursuit{repeatable: true}
	if again := reads.judge(lost); !again || errors.Is(reads.final(lost), messages.ErrOutcomeUnknown) {
		t.Error("a read that is lost is unknown, or not repeated")
	}
	full := &messages.BusyError{Reason: messages.BusyMailboxFull}
	if p := (pursuit{writes: true}); p.judge(full) {
		t.Error("an append that does not wait is repeated where the request lane is full")
	}
	if p := (pursuit{writes: true, waits: true}); !p.judge(full) || p.judge(busy) || !errors.Is(p.final(full), messages.ErrBusy) {
		t.Error("an append that waits is not repeated where the request lane is full, or elsewhere")
	}
	plain := pursuit{writes: true}
	if plain.judge(lost) {
		t.Error("an append without an id is repeated")
	}
}
