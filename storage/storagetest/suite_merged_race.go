package storagetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// checkMergedAnywhere: in a log that is longer than what a store keeps at hand for those who
// follow it, from each position on; and what was returned stays as it is, since it is shared.
func checkMergedAnywhere(e *env) {
	parts := e.merging()
	var runs [][]messages.Event
	seen := 0
	follow := func() {
		e.Helper()
		for seen < len(e.model.merged) {
			events := e.since("at the end", uint64(seen))
			runs = append(runs, events)
			seen += len(events)
		}
	}
	for i := range 12 {
		p := parts[i%3]
		specs := slices.Repeat(plain(p.id), 25+i)
		if i == 6 {
			specs[1].Body = make([]byte, 3<<19)
		}
		e.append(p, specs...)
		if i%3 == 1 {
			e.since("ahead of who follows", uint64(len(e.model.merged)-2))
		}
		follow()
		if i%4 == 3 {
			e.flush(p, p.last)
		}
	}
	e.everywhere("in a long log")
	e.append(parts[1], plain(1)...)
	follow()
	all := slices.Concat(runs...)
	for i := range all {
		all[i] = canonicalEvent(all[i])
	}
	if err := goesOn(all, e.model.merged); err != nil {
		e.Fatalf("what was returned has changed: %v", err)
	}
}

// mergedRace is a merged log that is read while it grows.
type mergedRace struct {
	*env
	log storage.MergedLog
	// total is how many events there will be.
	total uint64
	// ctx ends when somebody has failed.
	ctx    context.Context
	cancel context.CancelFunc
	// acknowledged counts events, clock what begins and ends.
	acknowledged, clock atomic.Uint64
	readers             sync.WaitGroup

	// mu guards what readers and writers have to tell in the end.
	mu      sync.Mutex
	runs    []mergedRun
	batches []mergedBatch
}

// mergedRun is what a reader has got behind the first seen events.
type mergedRun struct {
	seen   uint64
	events []messages.Event
}

// mergedBatch is what was appended between two moments.
type mergedBatch struct {
	begun, ended uint64
	events       []messages.Event
}

// checkMergedRace: readers that begin anywhere while several write see each event once, in one
// order, in which none is before another that was acknowledged when it was appended.
func checkMergedRace(e *env) {
	const rounds = 24
	parts := e.merging()
	r := &mergedRace{env: e, log: e.mergedLog()}
	r.ctx, r.cancel = context.WithCancel(e.Context())
	defer r.cancel()
	sizes := make([][]int, len(parts))
	for i := range len(parts) * rounds {
		n := 1 + 7*i%37
		sizes[i%len(parts)] = append(sizes[i%len(parts)], n)
		r.total += uint64(n)
	}
	r.begin(0)
	r.begin(r.total / 2)
	var writers sync.WaitGroup
	for i, p := range parts {
		writers.Go(func() { r.note(r.write(p, sizes[i])) })
	}
	writers.Wait()
	late := time.AfterFunc(awaitLimit, func() { r.note(errors.New("a reader sleeps although all is written")) })
	r.readers.Wait()
	late.Stop()
	if e.Failed() {
		e.FailNow()
	}
	r.judge()
}

// note ends the race if there is an error.
func (r *mergedRace) note(err error) {
	if err != nil && r.ctx.Err() == nil {
		r.Error(err)
		r.cancel()
	}
}

// write appends batches of so many events and flushes some. Every third time it goes on when
// a reader that began has got something, so that readers begin in the middle on any machine.
func (r *mergedRace) write(p *Partition, sizes []int) error {
	for i, n := range sizes {
		b := p.Build(slices.Repeat([]Spec{{Workspace: messages.WSID(p.id), Create: []messages.SeqID{SeqOrder}}}, n)...)
		begun := r.clock.Add(1)
		if err := r.put(r.ctx, b); err != nil {
			return fmt.Errorf("partition %d: append: %w", p.id, err)
		}
		r.mu.Lock()
		r.batches = append(r.batches, mergedBatch{begun: begun, ended: r.clock.Add(1), events: b.Events})
		r.mu.Unlock()
		there := r.acknowledged.Add(uint64(n))
		p.Learn(b.Events...)
		if i%3 != 2 {
			continue
		}
		f := p.BuildFlush(p.last)
		if err := r.store.Flush(r.ctx, f); err != nil {
			return fmt.Errorf("partition %d: flush: %w", p.id, err)
		}
		p.Flushed(f.Checkpoint)
		select {
		case <-r.begin(rand.Uint64N(there)):
		case <-time.After(awaitLimit):
			return fmt.Errorf("a reader sleeps although there are %d events", there)
		}
	}
	return nil
}

// begin has a reader begin behind the first seen events. The channel is closed when it has got
// something, or has failed.
func (r *mergedRace) begin(seen uint64) <-chan struct{} {
	got := make(chan struct{})
	r.readers.Go(func() {
		first := sync.OnceFunc(func() { close(got) })
		defer first()
		run := mergedRun{seen: seen}
		for at := seen; at < r.total; {
			events, err := r.next(at)
			if err != nil {
				r.note(fmt.Errorf("a reader from %d, behind %d: %w", seen, at, err))
				return
			}
			first()
			run.events = append(run.events, events...)
			at += uint64(len(events))
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.runs = append(r.runs, run)
	})
	return got
}

// next waits for events behind the first seen ones, and reads some.
func (r *mergedRace) next(seen uint64) ([]messages.Event, error) {
	told, err := r.store.AwaitAny(r.ctx, seen)
	if err != nil {
		return nil, err
	}
	events, err := r.log.Since(r.ctx, seen)
	if err != nil {
		return nil, err
	}
	if len(events) == 0 {
		return nil, fmt.Errorf("got nothing, it was told of %d events", told)
	}
	there, err := r.store.AwaitAny(r.ctx, 0)
	if err == nil && there < seen+uint64(len(events)) {
		err = fmt.Errorf("got %d events, the store has %d in all", len(events), there)
	}
	return events, err
}

// judge compares what all have seen, and when it was written.
func (r *mergedRace) judge() {
	order, err := readMerged(r.Context(), r.log, int(r.total))
	if err != nil || uint64(len(order)) != r.total {
		r.Fatalf("after the race: got %d events and %v, want %d", len(order), err, r.total)
	}
	for _, run := range r.runs {
		for i := range run.events {
			run.events[i] = canonicalEvent(run.events[i])
		}
		if err := goesOn(run.events, order[run.seen:]); err != nil {
			r.Fatalf("a reader from %d: %v", run.seen, err)
		}
	}
	for _, b := range r.batches {
		r.model.append(b.events...)
	}
	for id, p := range r.parts {
		r.model.partitions[id].checkpoint = p.checkpoint
	}
	r.model.merged = order
	if err := r.inTime(order); err != nil {
		r.Fatal(err)
	}
}

// inTime returns an error if a batch is behind one that was begun when it had ended.
func (r *mergedRace) inTime(order []messages.Event) error {
	type place struct {
		partition messages.PartitionID
		offset    messages.PLogOffset
	}
	at := make(map[place]int)
	for i, e := range order {
		at[place{e.Partition, e.PLogOffset}] = i
	}
	for _, a := range r.batches {
		last := a.events[len(a.events)-1]
		for _, b := range r.batches {
			first := b.events[0]
			before, after := at[place{last.Partition, last.PLogOffset}], at[place{first.Partition, first.PLogOffset}]
			if a.ended < b.begun && before > after {
				return fmt.Errorf("offset %d of partition %d was acknowledged before offset %d of partition %d was appended: got them at %d and %d of the merged log",
					last.PLogOffset, last.Partition, first.PLogOffset, first.Partition, before, after)
			}
		}
	}
	return nil
}
