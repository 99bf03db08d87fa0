package storagetest

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

var raceChecks = []check{
	{"PartitionsAppendConcurrently", eachLevel, checkConcurrentPartitions},
	{"RaceForAnOffset", eachLevel, checkOffsetRace},
	{"RaceForARecord", levelNone, checkRecordRace},
	{"RaceOfAppendAndTakeEpoch", eachLevel, checkEpochRace},
	{"PartitionsFlushConcurrently", anyLevel, checkConcurrentFlushes},
	{"ReadersSeePrefixes", eachLevel, checkPrefixes},
}

// checkConcurrentPartitions: writers of several partitions do not disturb each
// other, and each sees its own event at once.
func checkConcurrentPartitions(e *env) {
	e.open()
	var wg sync.WaitGroup
	written := make([][]messages.Event, e.desc.Partitions)
	for id := range messages.PartitionID(e.desc.Partitions) {
		p := e.take(id)
		wg.Go(func() {
			for i := range 40 {
				s := Spec{Workspace: messages.WSID(int(id) + 3*(i%5)), Create: []messages.SeqID{SeqOrder}}
				b := p.Build(s, s)
				if err := e.store.Append(e.Context(), b); err != nil {
					e.Errorf("partition %d: append: %v", id, err)
					return
				}
				p.Learn(b.Events...)
				written[id] = append(written[id], b.Events...)
				if err := e.readBack(b.Events); err != nil {
					e.Errorf("partition %d: read at acknowledgement: %v", id, err)
					return
				}
			}
		})
	}
	wg.Wait()
	for _, events := range written {
		e.model.append(events...)
	}
}

// readBack reads events and their records wherever they must be.
func (e *env) readBack(events []messages.Event) error {
	first := &events[0]
	plog, err := collectEvents(e.store.PLog(e.Context(), first.Partition, first.PLogOffset))
	if err != nil {
		return err
	}
	wlog, err := collectEvents(e.store.WLog(e.Context(), first.Workspace, first.WLogOffset))
	if err != nil {
		return err
	}
	if len(plog) < len(events) || len(wlog) < len(events) {
		return fmt.Errorf("got %d events of PLog and %d of WLog from offset %d on, want %d", len(plog), len(wlog), first.PLogOffset, len(events))
	}
	for i := range events {
		want := canonicalEvent(events[i])
		if !reflect.DeepEqual(plog[i], want) || !reflect.DeepEqual(wlog[i], want) {
			return fmt.Errorf("got %+v of PLog and %+v of WLog, want %+v", plog[i], wlog[i], want)
		}
		for _, r := range events[i].Records {
			row, err := collectRows(e.store.Records(e.Context(), want.Workspace, storage.RecordRange{Seq: r.ID.Seq, From: r.ID.Number, To: r.ID.Number}))
			if err != nil || len(row) != 1 || row[0].PLogOffset < want.PLogOffset {
				return fmt.Errorf("record %v: got %v, %w", r.ID, row, err)
			}
		}
	}
	r, err := e.store.Register(e.Context(), first.Partition)
	if err == nil && r.Last < events[len(events)-1].PLogOffset {
		err = fmt.Errorf("register ends at %d, before offset %d", r.Last, events[len(events)-1].PLogOffset)
	}
	return err
}

// race runs writers at the same time and returns their errors.
func race(writers ...func() error) []error {
	errs := make([]error, len(writers))
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i, w := range writers {
		wg.Go(func() {
			<-start
			errs[i] = w()
		})
	}
	close(start)
	wg.Wait()
	return errs
}

// checkOffsetRace: of several writers of the same offset exactly one wins, and
// its event is the one that is there.
func checkOffsetRace(e *env) {
	e.open()
	p := e.take(0)
	for round := range 20 {
		batches := make([]storage.Batch, 4)
		writers := make([]func() error, 4)
		for i := range batches {
			batches[i] = p.Build(Spec{Workspace: messages.WSID(3 * (i%2 + 1)), Body: fmt.Appendf(nil, "writer %d of round %d", i, round)})
			writers[i] = func() error { return e.store.Append(e.Context(), batches[i]) }
		}
		winners := 0
		for i, err := range race(writers...) {
			if err != nil {
				e.isOneOf("an append that lost the race", err, storage.ErrOutOfOrder)
				continue
			}
			winners++
			p.Learn(batches[i].Events...)
			e.model.append(batches[i].Events...)
		}
		if winners != 1 {
			e.Fatalf("%d of 4 writers of offset %d won, want 1", winners, p.last)
		}
	}
}

// checkRecordRace: the check for a free key is atomic with the write, also for
// batches that share a commit. The second batch comes too early or finds the
// record taken; it never wins.
func checkRecordRace(e *env) {
	e.open()
	p := e.take(0)
	for i := range 20 {
		create := Spec{Workspace: 3, Explicit: []messages.RecordID{{Seq: SeqOrder, Number: messages.Number(i + 1)}}}
		both := p.Build(create, create)
		first, second := both, both
		first.Events, second.Events = both.Events[:1], both.Events[1:]
		errs := race(
			func() error { return e.store.Append(e.Context(), first) },
			func() error { return e.store.Append(e.Context(), second) },
		)
		if errs[0] != nil {
			e.Fatalf("the first writer of a record: %v", errs[0])
		}
		p.Learn(first.Events...)
		e.model.append(first.Events...)
		e.isOneOf("the second writer of a record", errs[1], storage.ErrConflict, storage.ErrOutOfOrder)
	}
}

// checkEpochRace: once TakeEpoch has returned, nothing of the old epoch comes.
func checkEpochRace(e *env) {
	e.open()
	for range 5 {
		old := e.take(0)
		var events []messages.Event
		var wg sync.WaitGroup
		started := make(chan struct{})
		wg.Go(func() {
			signal := sync.OnceFunc(func() { close(started) })
			defer signal()
			for {
				b := old.Build(Spec{Workspace: 3})
				if err := e.store.Append(e.Context(), b); err != nil {
					if !errors.Is(err, messages.ErrFenced) {
						e.Errorf("append during a take-over: got %v, want %v", err, messages.ErrFenced)
					}
					return
				}
				old.Learn(b.Events...)
				events = append(events, b.Events...)
				signal()
			}
		})
		<-started
		r, err := e.store.TakeEpoch(e.Context(), 0)
		if err != nil {
			e.Errorf("TakeEpoch: %v", err)
		}
		wg.Wait()
		e.model.append(events...)
		e.model.partitions[0].epoch = r.Epoch
		if want := e.model.register(0); r != want {
			e.Fatalf("TakeEpoch returned %+v, later the register is %+v", r, want)
		}
	}
}

// checkConcurrentFlushes: flushes of several partitions, and appends beside them.
func checkConcurrentFlushes(e *env) {
	e.open()
	var wg sync.WaitGroup
	written := make([][]messages.Event, e.desc.Partitions)
	for id := range messages.PartitionID(e.desc.Partitions) {
		p := e.take(id)
		wg.Go(func() {
			for i := range 20 {
				b := p.Build(mixed(id)[i%2*3:]...)
				b = withoutExplicit(b)
				err := e.store.Append(e.Context(), b)
				if err == nil {
					p.Learn(b.Events...)
					written[id] = append(written[id], b.Events...)
					f := p.BuildFlush(p.last)
					if err = e.store.Flush(e.Context(), f); err == nil {
						p.Flushed(f.Checkpoint)
					}
				}
				if err != nil {
					e.Errorf("partition %d: %v", id, err)
					return
				}
			}
		})
	}
	wg.Wait()
	for id, events := range written {
		e.model.append(events...)
		e.model.partitions[id].checkpoint = e.parts[messages.PartitionID(id)].checkpoint
	}
}

// withoutExplicit drops the new records that would be created again and again.
func withoutExplicit(b storage.Batch) storage.Batch {
	for i := range b.Events {
		if len(b.Events[i].Numbers) == 0 {
			b.Events[i].Records = nil
		}
	}
	return b
}

// history is a partition's future, built before it is written, so that readers
// know what each event must be.
type history struct {
	batches []storage.Batch
	flushes []storage.Flush
	events  []messages.Event
	// acknowledged is the offset of the last event that is.
	acknowledged atomic.Uint64
}

// newHistory builds rounds of a batch of two events, each with a flush of one.
func newHistory(p *Partition, rounds int) *history {
	h := &history{}
	for i := range rounds {
		s := Spec{Workspace: messages.WSID(int(p.id) + 3*(i%3)), Create: []messages.SeqID{SeqOrder}}
		b := p.Build(s, s)
		p.Learn(b.Events...)
		h.batches = append(h.batches, b)
		f := p.BuildFlush(p.last)
		p.Flushed(p.last)
		h.flushes = append(h.flushes, f)
		for _, e := range b.Events {
			h.events = append(h.events, canonicalEvent(e))
		}
	}
	return h
}

// checkPrefixes: while one writes and another flushes, readers see a prefix of
// the log that holds at least what was acknowledged when they began.
func checkPrefixes(e *env) {
	e.open()
	p := e.take(0)
	h := newHistory(p, 60)
	var writers, readers sync.WaitGroup
	written := make(chan int, len(h.batches))
	done := make(chan struct{})
	writers.Go(func() {
		defer close(written)
		for i, b := range h.batches {
			if err := e.store.Append(e.Context(), b); err != nil {
				e.Errorf("append: %v", err)
				return
			}
			h.acknowledged.Store(uint64(b.Events[len(b.Events)-1].PLogOffset))
			written <- i
		}
	})
	writers.Go(func() {
		for i := range written {
			if err := e.store.Flush(e.Context(), h.flushes[i]); err != nil {
				e.Errorf("flush: %v", err)
				return
			}
		}
	})
	for _, read := range []func(*env, *history) error{readPLogPrefix, readWLogPrefix, readRecordPrefix, readTailPrefix} {
		readers.Go(func() {
			for {
				if err := read(e, h); err != nil {
					e.Error(err)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	e.model.append(h.events...)
	e.model.partitions[0].checkpoint = p.checkpoint
}

func readPLogPrefix(e *env, h *history) error {
	least := h.acknowledged.Load()
	got, err := collectEvents(e.store.PLog(e.Context(), 0, 1))
	if err != nil {
		return fmt.Errorf("PLog: %w", err)
	}
	return isPrefix("PLog", got, h.events, int(least))
}

func readWLogPrefix(e *env, h *history) error {
	const ws = 3
	least := h.acknowledged.Load()
	got, err := collectEvents(e.store.WLog(e.Context(), ws, 1))
	if err != nil {
		return fmt.Errorf("WLog: %w", err)
	}
	var all []messages.Event
	acknowledged := 0
	for _, ev := range h.events {
		if ev.Workspace != ws {
			continue
		}
		all = append(all, ev)
		if uint64(ev.PLogOffset) <= least {
			acknowledged++
		}
	}
	return isPrefix("WLog", got, all, acknowledged)
}

func isPrefix(what string, got, all []messages.Event, least int) error {
	if len(got) < least || len(got) > len(all) {
		return fmt.Errorf("%s: got %d events, want at least the %d acknowledged", what, len(got), least)
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], all[i]) {
			return fmt.Errorf("%s: event %d: got %+v, want %+v", what, i+1, got[i], all[i])
		}
	}
	return nil
}

// readRecordPrefix: the rows of one sequence are 1, 2, 3 …, at least those of the
// acknowledged events.
func readRecordPrefix(e *env, h *history) error {
	const ws = 3
	least := h.acknowledged.Load()
	rows, err := collectRows(e.store.Records(e.Context(), ws, storage.RecordRange{Seq: SeqOrder}))
	if err != nil {
		return fmt.Errorf("records: %w", err)
	}
	acknowledged := 0
	for _, ev := range h.events[:least] {
		if ev.Workspace == ws {
			acknowledged++
		}
	}
	if len(rows) < acknowledged {
		return fmt.Errorf("records: got %d rows, want at least the %d acknowledged", len(rows), acknowledged)
	}
	for i, row := range rows {
		if row.ID.Number != messages.Number(i+1) {
			return fmt.Errorf("records: row %d has number %d", i+1, row.ID.Number)
		}
	}
	return nil
}

// readTailPrefix: the tail from the checkpoint on, unless a flush overtakes, and
// the register, agree with the history.
func readTailPrefix(e *env, h *history) error {
	least := h.acknowledged.Load()
	r, err := e.store.Register(e.Context(), 0)
	if err != nil {
		return fmt.Errorf("register: %w", err)
	}
	if uint64(r.Last) < least || int(r.Last) > len(h.events) || r.Checkpoint > r.Last+1 {
		return fmt.Errorf("register: got %+v, want at least the %d acknowledged", r, least)
	}
	tail, err := readTail(e.Context(), e.store, 0, r.Checkpoint, 3)
	if err != nil && !errors.Is(err, storage.ErrCheckpoint) {
		return fmt.Errorf("tail: %w", err)
	}
	want := tailOf(h.events[r.Checkpoint-1:])
	if len(tail) > len(want) || len(tail) > 0 && !reflect.DeepEqual(tail, want[:len(tail)]) {
		return fmt.Errorf("tail from %d: got %+v, want a prefix of %+v", r.Checkpoint, tail, want)
	}
	return nil
}
