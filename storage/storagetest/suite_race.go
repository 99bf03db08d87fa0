package storagetest

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
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
				if err := e.put(e.Context(), b); err != nil {
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
			writers[i] = func() error { return e.put(e.Context(), batches[i]) }
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
// batches that share a commit. The second batch comes too early until the first
// is there, and then finds the record taken; it never wins.
func checkRecordRace(e *env) {
	e.open()
	p := e.take(0)
	for i := range 20 {
		create := Spec{Workspace: 3, Explicit: []messages.RecordID{{Seq: SeqOrder, Number: messages.Number(i + 1)}}}
		e.oneAfterTheOther(p, p.Build(create, create), "writer of a record", storage.ErrConflict)
	}
}

// oneAfterTheOther writes the two events of a batch as batches of their own, at the same time: the second
// comes too early until the first is there, and then it is refused as is wanted.
func (e *env) oneAfterTheOther(p *Partition, both storage.Batch, what string, want error) {
	e.Helper()
	first, second := both, both
	first.Events, second.Events = both.Events[:1], both.Events[1:]
	var over atomic.Bool
	errs := race(
		func() error {
			defer over.Store(true)
			return e.put(e.Context(), first)
		},
		func() error {
			for {
				late := over.Load()
				if err := e.put(e.Context(), second); late || !errors.Is(err, storage.ErrOutOfOrder) {
					return err
				}
				runtime.Gosched()
			}
		},
	)
	if errs[0] != nil {
		e.Fatalf("the first %s: %v", what, errs[0])
	}
	p.Learn(first.Events...)
	e.model.append(first.Events...)
	e.isOneOf("the second "+what, errs[1], want)
}

// checkEpochRace: once TakeEpoch has returned, nothing of the old epoch comes.
func checkEpochRace(e *env) {
	e.open()
	for range 5 {
		w := startWriter(e, e.take(0), messages.ErrFenced)
		<-w.started
		r, err := e.store.TakeEpoch(e.Context(), 0)
		if err != nil {
			e.Errorf("TakeEpoch: %v", err)
		}
		w.finish()
		e.model.partitions[0].epoch = r.Epoch
		if want := e.model.register(0); r != want {
			e.Fatalf("TakeEpoch returned %+v, later the register is %+v", r, want)
		}
	}
}

// writerLimit is how many events a writer appends before it waits for the end:
// on a busy machine the end comes late, and comparing takes its time.
const writerLimit = 300

// writer appends in the background until it is refused.
type writer struct {
	env *env
	p   *Partition
	// until is the refusal that ends it.
	until  error
	events []messages.Event

	// started is closed at the first acknowledgement, or at the end.
	started chan struct{}
	// over is closed when no append that begins later may succeed.
	over chan struct{}
	wg   sync.WaitGroup
}

func startWriter(e *env, p *Partition, until error) *writer {
	w := &writer{env: e, p: p, until: until, started: make(chan struct{}), over: make(chan struct{})}
	w.wg.Go(w.run)
	return w
}

func (w *writer) run() {
	signal := sync.OnceFunc(func() { close(w.started) })
	defer signal()
	for {
		late := w.isOver()
		b := w.p.Build(Spec{Workspace: messages.WSID(w.p.id), Create: []messages.SeqID{SeqOrder}})
		err := w.env.put(w.env.Context(), b)
		switch {
		case err == nil && late:
			w.env.Errorf("partition %d: an append succeeded, want %v", w.p.id, w.until)
			return
		case errors.Is(err, w.until):
			return
		case err != nil:
			w.env.Errorf("partition %d: an append got %v, want %v", w.p.id, err, w.until)
			return
		}
		w.p.Learn(b.Events...)
		w.events = append(w.events, b.Events...)
		signal()
	}
}

// isOver reports whether the end has come, and waits for it at the limit.
func (w *writer) isOver() bool {
	if len(w.events) >= writerLimit {
		<-w.over
		return true
	}
	select {
	case <-w.over:
		return true
	default:
		return false
	}
}

// finish waits until the writer is refused, and takes what was acknowledged into
// the model.
func (w *writer) finish() {
	close(w.over)
	w.wg.Wait()
	w.env.model.append(w.events...)
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
				b := p.Build(plain(id)[i%2*2:]...)
				err := e.put(e.Context(), b)
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
// the log that holds at least what was acknowledged when they began. The readers
// set the pace, so that they have something to see on any machine.
func checkPrefixes(e *env) {
	e.open()
	p := e.take(0)
	h := newHistory(p, 60)
	pace := make(chan struct{}, 1)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for _, read := range []func(*env, *history) error{readPLogPrefix, readWLogPrefix, readRecordPrefix, readTailPrefix} {
		readers.Go(func() { e.readOften(h, read, pace, stop) })
	}
	e.write(h, pace)
	close(stop)
	readers.Wait()
	e.model.append(h.events...)
	e.model.partitions[0].checkpoint = p.checkpoint
}

// write appends the history, and flushes it beside the appends.
func (e *env) write(h *history, pace <-chan struct{}) {
	written := make(chan int, len(h.batches))
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(written)
		for i, b := range h.batches {
			<-pace
			if err := e.put(e.Context(), b); err != nil {
				e.Errorf("append: %v", err)
				return
			}
			h.acknowledged.Store(uint64(b.Events[len(b.Events)-1].PLogOffset))
			written <- i
		}
	})
	wg.Go(func() {
		for i := range written {
			if err := e.store.Flush(e.Context(), h.flushes[i]); err != nil {
				e.Errorf("flush: %v", err)
				return
			}
		}
	})
	wg.Wait()
}

// readOften reads until it is stopped. It gives the pace even when it has failed,
// for the writer waits for it.
func (e *env) readOften(h *history, read func(*env, *history) error, pace chan<- struct{}, stop <-chan struct{}) {
	failed := false
	for {
		if !failed {
			if err := read(e, h); err != nil {
				e.Error(err)
				failed = true
			}
		}
		select {
		case pace <- struct{}{}:
		case <-stop:
			return
		}
	}
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

// readRecordPrefix: the rows of the acknowledged events are there, 1, 2, 3 …,
// each as its event wrote it. Those behind them may be of different moments.
func readRecordPrefix(e *env, h *history) error {
	const ws = 3
	least := h.acknowledged.Load()
	rows, err := collectRows(e.store.Records(e.Context(), ws, storage.RecordRange{Seq: SeqOrder}))
	if err != nil {
		return fmt.Errorf("records: %w", err)
	}
	var all []storage.Row
	acknowledged := 0
	for i := range h.events {
		if h.events[i].Workspace == ws {
			all = putRows(all, &h.events[i])
		}
		if uint64(i)+1 == least {
			acknowledged = len(all)
		}
	}
	if len(rows) < acknowledged {
		return fmt.Errorf("records: got %d rows, want at least the %d acknowledged", len(rows), acknowledged)
	}
	previous := messages.Number(0)
	for i, row := range rows {
		n := row.ID.Number
		if n <= previous || n > messages.Number(len(all)) || i < acknowledged && n != previous+1 || !reflect.DeepEqual(row, all[n-1]) {
			return fmt.Errorf("records: row %d behind number %d is %+v, of %d acknowledged", i+1, previous, row, acknowledged)
		}
		previous = n
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
