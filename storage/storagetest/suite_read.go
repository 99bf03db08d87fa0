package storagetest

import (
	"context"
	"iter"
	"math"
	"reflect"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

var readChecks = []check{
	{"LogsFromOffset", anyLevel, checkLogsFrom},
	{"Tail", anyLevel, checkTail},
	{"RecordRanges", anyLevel, checkRecordRanges},
	{"IteratorsMayBeAbandoned", anyLevel, checkAbandon},
	{"LoopBodyMayCallTheStore", anyLevel, checkLoopBody},
	{"ReadsBelongToTheCaller", anyLevel, checkReadsOwned},
	{"EndedContext", anyLevel, checkEndedContext},
	{"ContextEndsInLoop", anyLevel, checkContextEndsInLoop},
}

// half fills partition 0 with workspaces 3 and 6 and flushes half of it.
func (e *env) half() *Partition {
	e.Helper()
	e.open()
	p := e.take(0)
	for range 4 {
		e.append(p, mixed(0)[:3]...)
	}
	e.flush(p, 7)
	return p
}

// checkLogsFrom: both logs from any offset on, 0 meaning 1, and beyond the end.
func checkLogsFrom(e *env) {
	p := e.half()
	all := e.model.partitions[0].events
	for _, from := range []messages.PLogOffset{0, 1, 2, 6, 7, 8, p.last, p.last + 1, math.MaxUint64} {
		got, err := collectEvents(e.store.PLog(e.Context(), 0, from))
		if err != nil {
			e.Fatalf("PLog from %d: %v", from, err)
		}
		if want := from1(all, uint64(from)); !reflect.DeepEqual(got, want) {
			e.Fatalf("PLog from %d: got %d events, want %d: %+v", from, len(got), len(want), got)
		}
	}
	log := e.model.workspace(3).WLog
	for _, from := range []messages.WLogOffset{0, 1, 2, 4, 5, 8, 9, math.MaxUint64} {
		got, err := collectEvents(e.store.WLog(e.Context(), 3, from))
		if err != nil {
			e.Fatalf("WLog from %d: %v", from, err)
		}
		if want := from1(log, uint64(from)); !reflect.DeepEqual(got, want) {
			e.Fatalf("WLog from %d: got %d events, want %d: %+v", from, len(got), len(want), got)
		}
	}
}

// from1 returns what an iterator from an offset yields, nil if nothing.
func from1(events []messages.Event, from uint64) []messages.Event {
	first := min(max(from, 1)-1, uint64(len(events)))
	return canonical(events[first:])
}

// checkTail: from any offset behind the checkpoint, in pages of any size; before
// the checkpoint it is refused.
func checkTail(e *env) {
	p := e.half()
	want := e.model.observe(nil).Tails[0]
	for from := p.checkpoint; from <= p.last+1; from++ {
		for _, limit := range []int{1, 2, 3, 5, 6, 100} {
			got, err := readTail(e.Context(), e.store, 0, from, limit)
			if err != nil {
				e.Fatalf("Tail from %d, limit %d: %v", from, limit, err)
			}
			if want := canonical(want[from-p.checkpoint:]); !reflect.DeepEqual(got, want) {
				e.Fatalf("Tail from %d, limit %d: got %+v, want %+v", from, limit, got, want)
			}
		}
	}
	for _, from := range []messages.PLogOffset{0, 1, p.checkpoint - 1} {
		_, err := e.store.Tail(e.Context(), 0, from, 10)
		e.isOneOf("Tail from before the checkpoint", err, storage.ErrCheckpoint)
	}
	e.flushAll(p)
	_, err := e.store.Tail(e.Context(), 0, p.last, 10)
	e.isOneOf("Tail from before a new checkpoint", err, storage.ErrCheckpoint)
}

// checkRecordRanges: both ends are in the range, 0 at the upper end means none,
// one sequence only, in order, with the last write of each row.
func checkRecordRanges(e *env) {
	e.open()
	p := e.take(0)
	for i, n := range []messages.Number{40, 10, 30, 1 << 40, 20, 50} {
		e.append(p, Spec{Workspace: 3, Explicit: []messages.RecordID{{Seq: SeqOrder, Number: n}, {Seq: SeqInvoice, Number: n + 1}}})
		e.append(p, Spec{Workspace: 6, Explicit: []messages.RecordID{{Seq: SeqOrder, Number: n + 2}}})
		if i == 2 {
			e.flushAll(p)
		}
	}
	e.append(p, Spec{Workspace: 3, Update: []messages.RecordID{{Seq: SeqOrder, Number: 10}, {Seq: SeqOrder, Number: 20}}})
	bounds := []messages.Number{0, 1, 10, 11, 20, 30, 39, 40, 50, 51, 1 << 40, math.MaxUint64}
	for _, where := range []string{"partly flushed", "flushed"} {
		for _, from := range bounds {
			for _, to := range bounds {
				e.sameRange(where, storage.RecordRange{Seq: SeqOrder, From: from, To: to})
			}
		}
		e.flushAll(p)
	}
}

func (e *env) sameRange(where string, r storage.RecordRange) {
	e.Helper()
	got, err := collectRows(e.store.Records(e.Context(), 3, r))
	if err != nil {
		e.Fatalf("%s records %+v: %v", where, r, err)
	}
	var want []storage.Row
	for _, row := range e.model.workspace(3).Rows {
		if row.ID.Seq == r.Seq && row.ID.Number >= r.From && (r.To == 0 || row.ID.Number <= r.To) {
			want = append(want, row)
		}
	}
	if !reflect.DeepEqual(got, want) {
		e.Fatalf("%s records %+v: got %v, want %v", where, r, got, want)
	}
}

// iterators returns one iterator of each kind, as loops that tell nothing but
// that there is an element, or an error.
func (e *env) iterators(ctx context.Context) map[string]iter.Seq[error] {
	return map[string]iter.Seq[error]{
		"PLog":    errorsOf(e.store.PLog(ctx, 0, 1)),
		"WLog":    errorsOf(e.store.WLog(ctx, 3, 1)),
		"Records": errorsOf(e.store.Records(ctx, 3, storage.RecordRange{Seq: SeqOrder})),
	}
}

func errorsOf[T any](seq iter.Seq2[T, error]) iter.Seq[error] {
	return func(yield func(error) bool) {
		for _, err := range seq {
			if !yield(err) {
				return
			}
		}
	}
}

// checkAbandon: a loop that ends early leaves nothing behind that blocks writes
// or closing.
func checkAbandon(e *env) {
	p := e.half()
	for range 3 {
		for name, seq := range e.iterators(e.Context()) {
			for err := range seq {
				if err != nil {
					e.Fatalf("%s: %v", name, err)
				}
				break
			}
			e.append(p, Spec{Workspace: 3, Create: []messages.SeqID{SeqOrder}})
			e.flushAll(p)
		}
	}
	e.reopen()
}

// checkLoopBody: no lock is held in the loop body, so it may do whatever it likes
// with the store, also write to the same partition and workspace.
func checkLoopBody(e *env) {
	p := e.half()
	for name, seq := range e.iterators(e.Context()) {
		n := 0
		for err := range seq {
			if err != nil {
				e.Fatalf("%s: %v", name, err)
			}
			if n++; n > 4 {
				// The loop may see what it appends.
				break
			}
			e.append(p, Spec{Workspace: 3, Create: []messages.SeqID{SeqOrder}})
			e.flushAll(p)
			p = e.take(0)
			e.same("in the loop over " + name)
		}
		if n == 0 {
			e.Fatalf("%s: got nothing", name)
		}
	}
}

// checkReadsOwned: whatever a read returns can be overwritten.
func checkReadsOwned(e *env) {
	p := e.half()
	for range 2 {
		for ev, err := range e.store.PLog(e.Context(), 0, 1) {
			if err != nil {
				e.Fatalf("PLog: %v", err)
			}
			scribble(&ev)
		}
		for ev, err := range e.store.WLog(e.Context(), 3, 1) {
			if err != nil {
				e.Fatalf("WLog: %v", err)
			}
			scribble(&ev)
		}
		for row, err := range e.store.Records(e.Context(), 3, storage.RecordRange{Seq: SeqOrder}) {
			if err != nil {
				e.Fatalf("Records: %v", err)
			}
			clear(row.Data)
		}
		n, err := e.store.Numbers(e.Context(), 3)
		if err != nil {
			e.Fatalf("Numbers: %v", err)
		}
		clear(n.Numbers)
		tail, err := e.store.Tail(e.Context(), 0, p.checkpoint, 100)
		if err != nil {
			e.Fatalf("Tail: %v", err)
		}
		for i := range tail {
			clear(tail[i].Numbers)
		}
		e.same("after the caller overwrote what it read")
		e.flushAll(p)
	}
}

// checkEndedContext: a call whose context has ended returns the context's error
// and has done nothing.
func checkEndedContext(e *env) {
	p := e.half()
	ctx, cancel := context.WithCancel(e.Context())
	cancel()
	_, err := e.store.TakeEpoch(ctx, 0)
	e.refused("TakeEpoch with an ended context", err, context.Canceled)
	e.refused("Append with an ended context", e.store.Append(ctx, p.Build(Spec{Workspace: 3})), context.Canceled)
	e.refused("Flush with an ended context", e.store.Flush(ctx, p.BuildFlush(8)), context.Canceled)
	_, err = e.store.Numbers(ctx, 3)
	e.isOneOf("Numbers with an ended context", err, context.Canceled)
	_, err = e.store.Register(ctx, 0)
	e.isOneOf("Register with an ended context", err, context.Canceled)
	_, err = e.store.Tail(ctx, 0, p.checkpoint, 1)
	e.isOneOf("Tail with an ended context", err, context.Canceled)
	_, err = e.store.Find(ctx, 3, messages.DedupID{1})
	e.isOneOf("Find with an ended context", err, context.Canceled)
	for name, seq := range e.iterators(ctx) {
		var last error
		for last = range seq {
		}
		e.isOneOf(name+" with an ended context", last, context.Canceled)
	}
	for _, w := range e.eachWait(p) {
		_, err := w.tell(ctx)
		e.isOneOf(w.what+" with an ended context", err, context.Canceled)
	}
}

// checkContextEndsInLoop: a loop whose context ends is over, with the context's
// error or with what was read already.
func checkContextEndsInLoop(e *env) {
	p := e.half()
	for name := range e.iterators(e.Context()) {
		ctx, cancel := context.WithCancel(e.Context())
		ended := false
		for err := range e.iterators(ctx)[name] {
			if ended {
				e.Fatalf("%s goes on after its error", name)
			}
			if err != nil {
				e.isOneOf(name+" with a context that ended in the loop", err, context.Canceled)
				ended = true
			}
			cancel()
		}
		cancel()
		e.append(p, Spec{Workspace: 3})
	}
}
