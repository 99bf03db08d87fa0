package storagetest

import (
	"context"
	"fmt"
	"math"
	"reflect"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// mergedChecks are skipped for stores that keep no merged log.
var mergedChecks = []check{
	{"MergedLogIsInTheOrderOfCommits", eachLevel, checkMergedOrder},
	{"MergedLogFromAnywhere", anyLevel, checkMergedAnywhere},
	{"MergedLogSurvives", anyLevel, checkMergedSurvives},
	{"MergedLogBesideAppends", anyLevel, checkMergedRace},
	{"MergedLogObeysContexts", anyLevel, checkMergedContext},
	{"ClosedStoreRefusesMergedLog", anyLevel, checkMergedClosed},
}

// mergedLog returns the open store as one that keeps a merged log.
func (e *env) mergedLog() storage.MergedLog {
	e.Helper()
	return optional[storage.MergedLog](e)
}

// merging opens a store and takes all its partitions.
func (e *env) merging() []*Partition {
	e.Helper()
	e.open()
	e.mergedLog()
	var parts []*Partition
	for id := range messages.PartitionID(e.desc.Partitions) {
		parts = append(parts, e.take(id))
	}
	return parts
}

// sameMerged fails the test unless the merged log, if the store keeps one, has all events of
// all partitions once, in the order of each: what holds also when several have written.
func (e *env) sameMerged(when string) {
	e.Helper()
	m, ok := e.store.(storage.MergedLog)
	if !ok {
		return
	}
	all, err := readMerged(context.WithoutCancel(e.Context()), m, len(e.model.merged))
	if err != nil {
		e.Fatalf("%s: read the merged log: %v", when, err)
	}
	logs := make([][]messages.Event, len(e.model.partitions))
	for _, event := range all {
		if int(event.Partition) >= len(logs) {
			e.Fatalf("%s: the merged log has an event of partition %d", when, event.Partition)
		}
		logs[event.Partition] = append(logs[event.Partition], event)
	}
	for id := range logs {
		if err := goesOn(logs[id], e.model.partitions[id].events); err != nil {
			e.Fatalf("%s: the merged log, of partition %d: %v", when, id, err)
		}
	}
}

// readMerged reads the merged log to its end, which is behind total events. It gives up when
// there are more.
func readMerged(ctx context.Context, m storage.MergedLog, total int) ([]messages.Event, error) {
	var all []messages.Event
	for len(all) <= total {
		events, err := m.Since(ctx, uint64(len(all)))
		if err != nil || len(events) == 0 {
			return all, err
		}
		for i := range events {
			all = append(all, canonicalEvent(events[i]))
		}
	}
	return all, nil
}

// goesOn returns an error unless events are all that are wanted.
func goesOn(got, want []messages.Event) error {
	for i := range min(len(got), len(want)) {
		if !reflect.DeepEqual(got[i], want[i]) {
			return fmt.Errorf("event %d: got %s, want %s", i+1, brief(got[i]), brief(want[i]))
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("got %d events, want %d", len(got), len(want))
	}
	return nil
}

// since returns what the merged log has behind the first seen events. It fails the test
// unless these are the next ones, some if there are any.
func (e *env) since(when string, seen uint64) []messages.Event {
	e.Helper()
	all := e.model.merged
	rest := all[min(seen, uint64(len(all))):]
	// It must not wait.
	ctx, cancel := context.WithTimeout(e.Context(), awaitLimit)
	defer cancel()
	got, err := e.mergedLog().Since(ctx, seen)
	if err != nil || len(got) > len(rest) || len(got) == 0 && len(rest) > 0 {
		e.Fatalf("%s: behind %d: got %d events and %v, want some of %d", when, seen, len(got), err, len(rest))
	}
	for i := range got {
		// What is in them, sameMerged says.
		if g, w := &got[i], &rest[i]; g.Partition != w.Partition || g.PLogOffset != w.PLogOffset {
			e.Fatalf("%s: behind %d, event %d: got offset %d of partition %d, want %d of %d",
				when, seen, i+1, g.PLogOffset, g.Partition, w.PLogOffset, w.Partition)
		}
	}
	return got
}

// everywhere reads from each position on, and from some beyond the end.
func (e *env) everywhere(when string) {
	e.Helper()
	total := uint64(len(e.model.merged))
	for seen := range total {
		e.since(when, seen)
	}
	for _, seen := range []uint64{total, total + 1, 2 * total, math.MaxInt64, math.MaxUint64 - 1, math.MaxUint64} {
		e.since(when, seen)
	}
}

// checkMergedOrder: events of several partitions are there in the order in which they were
// acknowledged, all of a batch, and nothing of one that was refused.
func checkMergedOrder(e *env) {
	parts := e.merging()
	e.everywhere("in an empty store")
	for i, at := range []int{0, 1, 1, 2, 0, 2, 1, 0, 2} {
		seen := uint64(len(e.model.merged))
		p := parts[at]
		stale := p.Build(Spec{Workspace: messages.WSID(at)})
		stale.Epoch--
		e.isOneOf("an append under an old epoch", e.put(e.Context(), stale), messages.ErrFenced, storage.ErrInvalidEvent)
		e.since("after an append that was refused", seen)

		b := p.Build(plain(p.id)[:1+i%4]...)
		if err := e.put(e.Context(), b); err != nil {
			e.Fatalf("append: %v", err)
		}
		p.Learn(b.Events...)
		e.model.append(b.Events...)
		e.since("after an append", seen)
		if i%2 == 0 {
			e.flush(p, p.last)
			parts[at] = e.take(p.id)
		}
		e.everywhere("after an append")
	}
	got, err := readMerged(e.Context(), e.mergedLog(), len(e.model.merged))
	if err = firstFailure(err, goesOn(got, e.model.merged)); err != nil {
		e.Fatalf("the merged log: %v", err)
	}
}

// checkMergedSurvives: the order is the same in a store that was opened anew, also after a
// crash and without projections, and goes on.
func checkMergedSurvives(e *env) {
	parts := e.merging()
	look := func(when string) {
		e.Helper()
		e.everywhere(when)
		for _, i := range []int{2, 0, 1} {
			e.append(parts[i], plain(parts[i].id)[i:]...)
		}
		e.flush(parts[0], parts[0].last)
		e.everywhere(when + " and appending")
	}
	look("before")
	e.reopen()
	look("after reopening")
	if e.crash() {
		look("after a crash")
	}
	for _, c := range e.copies() {
		e.goOnIn(c)
		look("in " + c.Name)
	}
}

// checkMergedContext: a call whose context has ended returns the context's error, wherever it
// would read; others do not suffer.
func checkMergedContext(e *env) {
	parts := e.merging()
	e.append(parts[0], Spec{Workspace: 0})
	e.append(parts[1], Spec{Workspace: 1})
	canceled, cancel := context.WithCancel(e.Context())
	cancel()
	late, cancel := context.WithTimeout(e.Context(), 0)
	defer cancel()
	for seen := range uint64(4) {
		_, err := e.mergedLog().Since(canceled, seen)
		e.isOneOf(fmt.Sprintf("reading behind %d with an ended context", seen), err, context.Canceled)
		_, err = e.mergedLog().Since(late, seen)
		e.isOneOf(fmt.Sprintf("reading behind %d too late", seen), err, context.DeadlineExceeded)
		e.since("after calls with ended contexts", seen)
	}
}

// checkMergedClosed: nothing is read of a closed store, wherever it was read before.
func checkMergedClosed(e *env) {
	parts := e.merging()
	e.append(parts[0], Spec{Workspace: 0})
	e.append(parts[1], Spec{Workspace: 1})
	e.everywhere("before closing")
	m := e.mergedLog()
	e.close()
	for seen := range uint64(4) {
		_, err := m.Since(e.Context(), seen)
		e.isOneOf(fmt.Sprintf("reading a closed store behind %d", seen), err, storage.ErrClosed)
	}
	e.reopen()
	e.everywhere("after reopening")
}
