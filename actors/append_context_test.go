package actors_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/storagetest"
)

// The context ends while the append waits for its turn: it never happens, and its
// port does not wait for an answer for ever.
func TestAppendContextEndsInTheLane(t *testing.T) {
	r := readyRig(t, setup{})
	tx := r.start(7)
	ctx, leave := r.client()
	result := r.appending(ctx, to(7))
	r.queued(1)
	leave()
	err := next(t, result)
	wants(t, "append", err, errGone)
	wantsNot(t, "append", err, messages.ErrOutcomeUnknown)
	if n := r.partitions[0].Queued(); n != 0 {
		t.Errorf("%d requests are queued", n)
	}
	r.check(tx.Cancel(r.ctx))
	if n := r.append(7); n != 1 {
		t.Errorf("got number %d, want 1", n)
	}
}

// The context ends when the batch is at the store: nobody can know yet.
func TestAppendContextEndsInFlight(t *testing.T) {
	r := readyRig(t, setup{})
	gate := r.newGate()
	r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.Hold(gate), Times: 1})
	ctx, leave := r.client()
	draft := bill("bill")
	result := make(chan error, 1)
	go func() {
		_, err := r.sequencers[0].Append(ctx, toOnce(7, 1), draft)
		result <- err
	}()
	r.arrives(gate)
	leave()
	err := next(t, result)
	wants(t, "append", err, messages.ErrOutcomeUnknown)
	wants(t, "append", err, errGone)
	// What the caller does with its memory now is its own affair.
	clear(draft.Body)
	clear(draft.Records[0].Data)
	draft.Wanted[0].Seq, draft.Records[0].New = receipts, false
	gate.Release()
	again, err := r.sequencers[0].Append(r.ctx, toOnce(7, 1), bill("bill"))
	r.check(err)
	if !again.Repeated || again.Numbers[0].Number != 1 {
		t.Errorf("got %+v", again)
	}
}

func TestAppendContextEndedBefore(t *testing.T) {
	r := readyRig(t, setup{})
	ctx, leave := r.client()
	leave()
	err := next(t, r.appending(ctx, to(7)))
	wants(t, "append", err, errGone)
	wantsNot(t, "append", err, messages.ErrOutcomeUnknown)
	if n := len(r.log(0)); n != 0 {
		t.Errorf("got %d events", n)
	}
}

// The deadline passes before the append is taken: refused, whoever sent it.
func TestAppendDeadlinePassed(t *testing.T) {
	r := readyRig(t, setup{})
	passed := messages.TimestampOf(r.fake.Now().Add(-time.Second))
	reply := r.ask(0, &messages.Append{Workspace: 7, Kind: shop, Drafts: []messages.Draft{{}}, Deadline: passed})
	refused, ok := reply.(*messages.Refused)
	if !ok {
		t.Fatalf("got %T", reply)
	}
	wants(t, "append", refused.Err, messages.ErrDeadlineExceeded)
}

// A full lane: busy at once, or a place when there is one, as the caller chooses.
func TestAppendLaneFull(t *testing.T) {
	r := readyRig(t, setup{requests: 1})
	tx := r.start(7)
	queued := r.appending(r.ctx, to(7))
	r.queued(1)
	_, err := r.sequencers[0].Append(r.ctx, to(7), bill("bill"))
	wants(t, "a full lane", err, messages.ErrBusy)
	waits := to(7)
	waits.Wait = true
	waiting := r.appending(r.ctx, waits)
	ctx, leave := r.client()
	leaving := r.appending(ctx, waits)
	leave()
	wants(t, "who leaves", next(t, leaving), errGone)
	r.check(tx.Cancel(r.ctx))
	wants(t, "who was queued", next(t, queued), nil)
	wants(t, "who waited", next(t, waiting), nil)
	if n := len(r.log(0)); n != 2 {
		t.Errorf("got %d events, want 2", n)
	}
}

// While one batch is under way, as many as may be in flight are taken, and no
// more; a Start waits until they are durable.
func TestAppendInFlight(t *testing.T) {
	r := readyRig(t, setup{settings: messages.Settings{InFlightEvents: 3}})
	r.append(7)
	gate := r.newGate()
	r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.Hold(gate), Times: 1})
	var results []<-chan error
	for range 5 {
		results = append(results, r.appending(r.ctx, to(7)))
	}
	r.handled(1+3, &messages.Append{})
	r.queued(2)
	started := make(chan *actors.Transaction, 1)
	go func() { started <- r.start(7) }()
	r.queued(3)
	gate.Release()
	for i := range results {
		wants(t, "append", next(t, results[i]), nil)
	}
	tx := <-started
	if tx.PLogOffset() != 7 {
		t.Errorf("granted offset %d, want 7", tx.PLogOffset())
	}
	r.check(tx.Cancel(r.ctx))
}

// What waits in the lane takes a bounded amount of memory: whoever comes then is told, or waits outside.
func TestAppendLaneBytes(t *testing.T) {
	r := readyRig(t, setup{settings: messages.Settings{InFlightEvents: 1}, requestBytes: 600})
	gate := r.newGate()
	r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.Hold(gate), Times: 1})
	results := []<-chan error{r.appending(r.ctx, to(7))}
	r.handled(1, &messages.Append{})
	for range 2 { // each takes 343
		results = append(results, r.appending(r.ctx, to(7)))
	}
	r.queued(2)
	_, err := r.of(7).Append(r.ctx, to(7), bill("bill"))
	if busy, ok := errors.AsType[*messages.BusyError](err); !ok || busy.Reason != messages.BusyMailboxFull {
		t.Errorf("got %v, want a full mailbox", err)
	}
	patient := to(7)
	patient.Wait = true
	results = append(results, r.appending(r.ctx, patient))
	r.queued(3)
	started := make(chan error, 1)
	go func() { started <- r.start(7).Cancel(r.ctx) }()
	r.queued(4) // a Start brings nothing along, and is not refused
	gate.Release()
	for i := range results {
		wants(t, "append", next(t, results[i]), nil)
	}
	wants(t, "start", next(t, started), nil)
}

// A stop finishes what is at the store and refuses what waits.
func TestAppendWhileStopping(t *testing.T) {
	r := readyRig(t, setup{})
	gate := r.newGate()
	r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.Hold(gate), Times: 1})
	held := r.appending(r.ctx, to(7))
	r.arrives(gate)
	waiting := r.appending(r.ctx, to(7))
	r.handled(2, &messages.Append{})
	stopped := make(chan messages.Stopped, 1)
	go func() { stopped <- r.stop(0) }()
	r.await(0, messages.StateTerminating)
	gate.Release()
	wants(t, "at the store", next(t, held), nil)
	wants(t, "who waited", next(t, waiting), messages.ErrBusy)
	if s := <-stopped; !s.Clean {
		t.Errorf("got %+v", s)
	}
	_, err := r.sequencers[0].Append(context.Background(), to(7), bill("bill"))
	wants(t, "after the end", err, messages.ErrStopped)
}

// The store hangs for ever: the stop ends all the same, and says what it left.
func TestAppendStopWhileTheStoreHangs(t *testing.T) {
	r := readyRig(t, setup{})
	gate := r.newGate()
	r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.HoldAnswer(gate), Times: 1})
	held := r.appending(r.ctx, to(7))
	r.arrives(gate)
	stopped := make(chan messages.Stopped, 1)
	go func() { stopped <- r.stop(0) }()
	r.await(0, messages.StateTerminating)
	r.fake.Advance(time.Minute)
	wants(t, "at the store", next(t, held), messages.ErrOutcomeUnknown)
	if s := <-stopped; s.Clean {
		t.Errorf("got %+v", s)
	}
}
