package storagetest

import (
	"context"
	"errors"
	"flag"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// mutant is a Memory with a fault planted: each hook that is set stands for the
// method. A hook's store is the faultless one inside.
type mutant struct {
	*Memory
	bug *bug
	// given is the descriptor as it was passed to Open.
	given messages.Descriptor
	// loops and waits are how many are under way.
	loops, waits atomic.Int32
	// quiet are events of which nobody is told. The disk's mutex guards it.
	quiet []messages.Event
}

// bug is one planted fault, and the checks that must find it.
type bug struct {
	name string
	by   []string

	open      func(messages.Descriptor) messages.Descriptor
	reopened  func(*disk)
	crashed   func(*disk)
	describe  func(*mutant) messages.Descriptor
	limit     func(int) int
	takeEpoch func(*mutant, context.Context, messages.PartitionID) (storage.Register, error)
	append    func(*mutant, context.Context, storage.Batch) error
	submit    func(*mutant, storage.Batch, func(error)) func(context.Context) error
	flush     func(*mutant, context.Context, storage.Flush) error
	numbers   func(*mutant, context.Context, messages.WSID, []messages.SequencePeriod) (storage.WorkspaceNumbers, error)
	register  func(*mutant, context.Context, messages.PartitionID) (storage.Register, error)
	tail      func(*mutant, context.Context, messages.PartitionID, messages.PLogOffset, int) ([]messages.Numbering, error)
	plog      func(*mutant, context.Context, messages.PartitionID, messages.PLogOffset) iter.Seq2[messages.Event, error]
	wlog      func(*mutant, context.Context, messages.WSID, messages.WLogOffset) iter.Seq2[messages.Event, error]
	find      func(*mutant, context.Context, messages.WSID, messages.DedupID) (messages.WLogOffset, error)
	records   func(*mutant, context.Context, messages.WSID, storage.RecordRange) iter.Seq2[storage.Row, error]
	close     func(*mutant, context.Context) error
	awaitPLog func(*mutant, context.Context, messages.PartitionID, messages.PLogOffset) error
	awaitWLog func(*mutant, context.Context, messages.WSID, messages.WLogOffset) error
	awaitAny  func(*mutant, context.Context, uint64) (uint64, error)
}

func (m *mutant) Descriptor() messages.Descriptor {
	if m.bug.describe != nil {
		return m.bug.describe(m)
	}
	return m.Memory.Descriptor()
}

func (m *mutant) TakeEpoch(ctx context.Context, p messages.PartitionID) (storage.Register, error) {
	if m.bug.takeEpoch != nil {
		return m.bug.takeEpoch(m, ctx, p)
	}
	return m.Memory.TakeEpoch(ctx, p)
}

func (m *mutant) Append(ctx context.Context, b storage.Batch) error {
	if m.bug.append != nil {
		return m.bug.append(m, ctx, b)
	}
	return m.Memory.Append(ctx, b)
}

// Submit does what Append does, on another goroutine.
func (m *mutant) Submit(b storage.Batch, done func(error)) (rest func(context.Context) error) {
	if m.bug.submit != nil {
		return m.bug.submit(m, b, done)
	}
	go func() { done(m.Append(context.Background(), b)) }()
	return nil
}

func (m *mutant) Flush(ctx context.Context, f storage.Flush) error {
	if m.bug.flush != nil {
		return m.bug.flush(m, ctx, f)
	}
	return m.Memory.Flush(ctx, f)
}

func (m *mutant) Numbers(ctx context.Context, ws messages.WSID, periods ...messages.SequencePeriod) (storage.WorkspaceNumbers, error) {
	if m.bug.numbers != nil {
		return m.bug.numbers(m, ctx, ws, periods)
	}
	return m.Memory.Numbers(ctx, ws, periods...)
}

func (m *mutant) Register(ctx context.Context, p messages.PartitionID) (storage.Register, error) {
	if m.bug.register != nil {
		return m.bug.register(m, ctx, p)
	}
	return m.Memory.Register(ctx, p)
}

func (m *mutant) Tail(ctx context.Context, p messages.PartitionID, from messages.PLogOffset, limit int) ([]messages.Numbering, error) {
	if m.bug.tail != nil {
		return m.bug.tail(m, ctx, p, from, limit)
	}
	return m.Memory.Tail(ctx, p, from, limit)
}

func (m *mutant) PLog(ctx context.Context, p messages.PartitionID, from messages.PLogOffset) iter.Seq2[messages.Event, error] {
	if m.bug.plog != nil {
		return m.bug.plog(m, ctx, p, from)
	}
	return m.Memory.PLog(ctx, p, from)
}

func (m *mutant) WLog(ctx context.Context, ws messages.WSID, from messages.WLogOffset) iter.Seq2[messages.Event, error] {
	if m.bug.wlog != nil {
		return m.bug.wlog(m, ctx, ws, from)
	}
	return m.Memory.WLog(ctx, ws, from)
}

func (m *mutant) Records(ctx context.Context, ws messages.WSID, r storage.RecordRange) iter.Seq2[storage.Row, error] {
	if m.bug.records != nil {
		return m.bug.records(m, ctx, ws, r)
	}
	return m.Memory.Records(ctx, ws, r)
}

func (m *mutant) Find(ctx context.Context, ws messages.WSID, id messages.DedupID) (messages.WLogOffset, error) {
	if m.bug.find != nil {
		return m.bug.find(m, ctx, ws, id)
	}
	return m.Memory.Find(ctx, ws, id)
}

func (m *mutant) Close(ctx context.Context) error {
	if m.bug.close != nil {
		return m.bug.close(m, ctx)
	}
	return m.Memory.Close(ctx)
}

// checkpoint returns the partition's checkpoint.
func (m *mutant) checkpoint(p messages.PartitionID) messages.PLogOffset {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	return m.disk.partitions[p].checkpoint
}

// mutants is the factory of stores with one bug.
type mutants struct{ bug *bug }

func (f mutants) Open(t testing.TB, d messages.Descriptor) storage.Store {
	given := d
	if f.bug.open != nil {
		d = f.bug.open(d)
	}
	m, err := NewMemory(d)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return &mutant{Memory: m, bug: f.bug, given: given}
}

func (f mutants) Reopen(t testing.TB, s storage.Store) storage.Store {
	old := s.(*mutant)
	if f.bug.reopened != nil {
		f.bug.reopened(old.disk)
	}
	return &mutant{Memory: old.Memory.Reopen(), bug: f.bug, given: old.given}
}

func (f mutants) Crash(t testing.TB, s storage.Store) storage.Store {
	old := s.(*mutant)
	if f.bug.crashed != nil {
		f.bug.crashed(old.disk)
	}
	return &mutant{Memory: old.Memory.Reopen(), bug: f.bug, given: old.given}
}

func (f mutants) OpenLimited(t testing.TB, d messages.Descriptor, events int) storage.Store {
	m := f.Open(t, d).(*mutant)
	if f.bug.limit != nil {
		events = f.bug.limit(events)
	}
	m.LimitTail(events)
	return m
}

// TestRunFindsPlantedBugs runs the checks that must find each bug.
func TestRunFindsPlantedBugs(t *testing.T) {
	for _, b := range bugs() {
		t.Run(b.name, func(t *testing.T) {
			for _, name := range b.by {
				i := slices.IndexFunc(checks(), func(c check) bool { return c.name == name })
				if i < 0 {
					t.Fatalf("no check is called %s", name)
				}
				if name == byModel {
					continue
				}
				failure := failureOf(t, checks()[i], mutants{&b})
				if failure == "" {
					t.Errorf("%s did not find the bug", name)
				}
				t.Logf("%s: %.300s", name, failure)
			}
		})
	}
}

// TestModelFindsPlantedBugs runs the random operations alone. One time in thirty they do not meet
// the rarest bug.
func TestModelFindsPlantedBugs(t *testing.T) {
	for name, value := range map[string]string{"rapid.nofailfile": "true", "rapid.shrinktime": "0s"} {
		before := flag.Lookup(name).Value.String()
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = flag.Set(name, before) })
	}
	for _, b := range bugs() {
		if slices.Contains(b.by, modelChecks[0].name) {
			t.Run(b.name, func(t *testing.T) {
				for range 20 {
					if failureOf(t, modelChecks[0], mutants{&b}) != "" {
						return
					}
				}
				t.Error("the model did not find the bug")
			})
		}
	}
}

// TestRecorderSeesNoFailure shows that the checks pass without a bug when they
// are run as above.
func TestRecorderSeesNoFailure(t *testing.T) {
	for _, c := range checks() {
		if c.name == byModel {
			continue
		}
		if failure := failureOf(t, c, mutants{&bug{}}); failure != "" {
			t.Errorf("%s: %s", c.name, failure)
		}
	}
}

// swallow returns a bug that takes a refusal of an append for success.
func swallow(name string, refusal error, by ...string) bug {
	return bug{name: name, by: by, append: func(m *mutant, ctx context.Context, b storage.Batch) error {
		if err := m.Memory.Append(ctx, b); !errors.Is(err, refusal) {
			return err
		}
		return nil
	}}
}

// swallowFlush is swallow for flushes.
func swallowFlush(name string, refusal error, by ...string) bug {
	return bug{name: name, by: by, flush: func(m *mutant, ctx context.Context, f storage.Flush) error {
		if err := m.Memory.Flush(ctx, f); !errors.Is(err, refusal) {
			return err
		}
		return nil
	}}
}

const byModel = "RandomOperationsAgreeWithModel"

// rows filters the rows of a read.
func filterRows(seq iter.Seq2[storage.Row, error], keep func(storage.Row) bool) iter.Seq2[storage.Row, error] {
	return func(yield func(storage.Row, error) bool) {
		for r, err := range seq {
			if (err != nil || keep(r)) && !yield(r, err) {
				return
			}
		}
	}
}

func filterEvents(seq iter.Seq2[messages.Event, error], keep func(*messages.Event) bool) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		for e, err := range seq {
			if (err != nil || keep(&e)) && !yield(e, err) {
				return
			}
		}
	}
}

func bugs() []bug {
	return slices.Concat(epochBugs(), appendBugs(), submitBugs(), dedupBugs(), flushBugs(), periodBugs(), takeoverBugs(), readBugs(), lifeBugs())
}

func epochBugs() []bug {
	return []bug{
		{name: "Append ignores the epoch", by: []string{"EpochFencesAppend", "RaceOfAppendAndTakeEpoch", byModel},
			append: func(m *mutant, ctx context.Context, b storage.Batch) error {
				r, err := m.Memory.Register(ctx, b.Partition)
				if err == nil {
					b.Epoch = r.Epoch
					for i := range b.Events {
						b.Events[i].Epoch = r.Epoch
					}
				}
				return m.Memory.Append(ctx, b)
			}},
		{name: "Append takes a newer epoch", by: []string{"EpochFencesAppend"},
			append: func(m *mutant, ctx context.Context, b storage.Batch) error {
				r, err := m.Memory.Register(ctx, b.Partition)
				if err == nil && b.Epoch > r.Epoch && r.Epoch > 0 {
					return nil
				}
				return m.Memory.Append(ctx, b)
			}},
		{name: "Flush ignores the epoch", by: []string{"EpochFencesFlush", byModel},
			flush: func(m *mutant, ctx context.Context, f storage.Flush) error {
				r, err := m.Memory.Register(ctx, f.Partition)
				if err == nil {
					f.Epoch = r.Epoch
				}
				return m.Memory.Flush(ctx, f)
			}},
		{name: "a repeated Flush ignores the epoch", by: []string{"EpochFencesFlush"},
			flush: func(m *mutant, ctx context.Context, f storage.Flush) error {
				if m.checkpoint(f.Partition) == f.Checkpoint && f.Epoch > 0 {
					return nil
				}
				return m.Memory.Flush(ctx, f)
			}},
		{name: "TakeEpoch does not grow", by: []string{"EpochGrows", byModel},
			takeEpoch: func(m *mutant, ctx context.Context, p messages.PartitionID) (storage.Register, error) {
				if r, err := m.Memory.Register(ctx, p); err != nil || r.Epoch > 0 {
					return r, err
				}
				return m.Memory.TakeEpoch(ctx, p)
			}},
		{name: "epochs are not durable", by: []string{"EpochIsDurable", byModel},
			reopened: func(d *disk) {
				for i := range d.partitions {
					d.partitions[i].epoch = 0
				}
			}},
		{name: "TakeEpoch forgets the time", by: []string{"TakeEpochReturnsRegister"},
			takeEpoch: func(m *mutant, ctx context.Context, p messages.PartitionID) (storage.Register, error) {
				r, err := m.Memory.TakeEpoch(ctx, p)
				r.LastRegisteredAt = 0
				return r, err
			}},
	}
}

func appendBugs() []bug {
	refuses := "AppendRefusesAndLeavesNothing"
	return []bug{
		{name: "a batch is not atomic", by: []string{refuses, byModel},
			append: func(m *mutant, ctx context.Context, b storage.Batch) error {
				for _, e := range b.Events {
					if err := m.Memory.Append(ctx, storage.Batch{Partition: b.Partition, Epoch: b.Epoch, Events: []messages.Event{e}}); err != nil {
						return err
					}
				}
				return nil
			}},
		{name: "a refused batch leaves its first record", by: []string{refuses},
			append: func(m *mutant, ctx context.Context, b storage.Batch) error {
				err := m.Memory.Append(ctx, b)
				if errors.Is(err, storage.ErrInvalidEvent) {
					m.leaveRecord(&b.Events[0])
				}
				return err
			}},
		{name: "the WLog's continuity is not checked", by: []string{refuses, "AppendRefusesTakenLogEntries"},
			append: func(m *mutant, ctx context.Context, b storage.Batch) error {
				err := m.Memory.Append(ctx, b)
				if err != nil && (errors.Is(err, storage.ErrConflict) || strings.Contains(err.Error(), "WLog")) {
					return nil
				}
				return err
			}},
		swallow("invalid events pass", storage.ErrInvalidEvent, refuses, byModel),
		swallow("explicit ids have no cap", messages.ErrExplicitID, refuses),
		swallow("kinds change", messages.ErrKindMismatch, refuses),
		swallow("foreign workspaces pass", messages.ErrWrongPartition, refuses),
		swallow("falling times pass", storage.ErrTimeFell, refuses, byModel),
		swallow("offsets are overwritten", storage.ErrOutOfOrder, refuses, "RaceForAnOffset", "AppendRefusesTakenLogEntries", byModel),
		swallow("conflicts are swallowed", storage.ErrConflict, "NewRecordNeedsFreeKey", refuses, byModel),
		swallow("the tail has no end", storage.ErrTailFull, "TailFull"),
		{name: "a conflict does not name the record", by: []string{"NewRecordNeedsFreeKey"},
			append: func(m *mutant, ctx context.Context, b storage.Batch) error {
				err := m.Memory.Append(ctx, b)
				if c := (*storage.ConflictError)(nil); errors.As(err, &c) {
					c.Record = messages.RecordID{}
				}
				return err
			}},
		{name: "new records are put at level 0", by: []string{"NewRecordNeedsFreeKey", "RaceForARecord", refuses, byModel},
			open: func(d messages.Descriptor) messages.Descriptor {
				d.TrustLevel = max(d.TrustLevel, messages.TrustRecords)
				return d
			},
			describe: func(m *mutant) messages.Descriptor { return m.given.Normalized() }},
		{name: "new records need free keys at level 1", by: []string{"NewRecordIsPut", byModel},
			open: func(d messages.Descriptor) messages.Descriptor {
				d.TrustLevel = messages.TrustNone
				return d
			},
			describe: func(m *mutant) messages.Descriptor { return m.given.Normalized() }},
		{name: "updates need a row", by: []string{"UpdateIsPut", byModel},
			append: func(m *mutant, ctx context.Context, b storage.Batch) error {
				b.Events = slices.Clone(b.Events)
				for i := range b.Events {
					b.Events[i].Records = slices.DeleteFunc(slices.Clone(b.Events[i].Records), func(r messages.Record) bool {
						return !r.New && !m.hasRow(b.Events[i].Workspace, r.ID)
					})
				}
				return m.Memory.Append(ctx, b)
			}},
		{name: "Append keeps the caller's slices", by: []string{"AppendLeavesSlicesToTheCaller"},
			append: func(m *mutant, ctx context.Context, b storage.Batch) error {
				err := m.Memory.Append(ctx, b)
				if err == nil {
					m.disk.mu.Lock()
					defer m.disk.mu.Unlock()
					p := &m.disk.partitions[b.Partition]
					for i := range b.Events {
						p.log[b.Events[i].PLogOffset-1].Body = b.Events[i].Body
					}
				}
				return err
			}},
		{name: "Append changes the caller's events", by: []string{"AppendLeavesSlicesToTheCaller"},
			append: func(m *mutant, ctx context.Context, b storage.Batch) error {
				err := m.Memory.Append(ctx, b)
				b.Events[0].Body = nil
				return err
			}},
		{name: "sections are lost", by: []string{"AppendKeepsBodiesAndSections"},
			append: func(m *mutant, ctx context.Context, b storage.Batch) error {
				for i := range b.Events {
					if len(b.Events[i].Sections) > 0 {
						b.Events = slices.Clone(b.Events)
						b.Events[i].Sections = b.Events[i].Sections[:1]
					}
				}
				return m.Memory.Append(ctx, b)
			}},
	}
}

// leaveRecord puts the event's first record.
func (m *mutant) leaveRecord(e *messages.Event) {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	if ws := m.disk.workspaces[e.Workspace]; ws != nil && len(e.Records) > 0 {
		r := e.Records[0]
		ws.rows[r.ID] = storage.Row{ID: r.ID, Data: r.Data, Partition: e.Partition, PLogOffset: e.PLogOffset}
	}
}

func (m *mutant) hasRow(ws messages.WSID, id messages.RecordID) bool {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	return m.disk.has(rowKey{workspace: ws, id: id})
}

func flushBugs() []bug {
	return []bug{
		{name: "the checkpoint is one too low", by: []string{"FlushMovesCheckpoint", byModel},
			flush: func(m *mutant, ctx context.Context, f storage.Flush) error {
				err := m.Memory.Flush(ctx, f)
				if err == nil && f.Checkpoint > f.Expected {
					m.disk.mu.Lock()
					defer m.disk.mu.Unlock()
					m.disk.partitions[f.Partition].checkpoint--
				}
				return err
			}},
		{name: "a low id lowers the counter", by: []string{"LowExplicitIDLowersNothing", byModel}, flush: (*mutant).lowerByLowIDs},
		{name: "a low number listed is stored", by: []string{"FlushMayListLowNumbers"},
			flush: func(m *mutant, ctx context.Context, f storage.Flush) error {
				return m.flushListed(ctx, f, func(ws *memWorkspace, i int, n messages.Number) error {
					ws.numbers = slices.Clone(ws.numbers)
					ws.numbers[i].Number = n
					return nil
				})
			}},
		{name: "a low number listed is refused", by: []string{"FlushMayListLowNumbers"},
			flush: func(m *mutant, ctx context.Context, f storage.Flush) error {
				return m.flushListed(ctx, f, func(*memWorkspace, int, messages.Number) error { return &storage.NumbersError{} })
			}},
		{name: "a repeated Flush is refused", by: []string{"FlushRepeatedIsHarmless", byModel},
			flush: func(m *mutant, ctx context.Context, f storage.Flush) error {
				if f.Expected != f.Checkpoint && m.checkpoint(f.Partition) == f.Checkpoint {
					return storage.ErrCheckpoint
				}
				return m.Memory.Flush(ctx, f)
			}},
		{name: "an empty Flush is refused", by: []string{"FlushOfNothing", byModel},
			flush: func(m *mutant, ctx context.Context, f storage.Flush) error {
				if f.Expected == f.Checkpoint {
					return storage.ErrCheckpoint
				}
				return m.Memory.Flush(ctx, f)
			}},
		swallowFlush("wrong checkpoints pass", storage.ErrCheckpoint, "FlushRefusesWrongCheckpoints", byModel),
		swallowFlush("wrong numbers pass", storage.ErrNumbers, "FlushRefusesWrongNumbers"),
		{name: "numbers are not compared with the log", by: []string{"FlushRefusesWrongNumbers"},
			flush: func(m *mutant, ctx context.Context, f storage.Flush) error {
				err := m.Memory.Flush(ctx, f)
				if !errors.Is(err, storage.ErrNumbers) {
					return err
				}
				m.disk.mu.Lock()
				events := m.disk.partitions[f.Partition].log[f.Expected-1 : f.Checkpoint-1]
				f.Numbers = listChanges(m.disk.derive(events))
				m.disk.mu.Unlock()
				return m.Memory.Flush(ctx, f)
			}},
		{name: "checkpoint without the numbers of the last event", by: []string{"FlushMovesCheckpoint", "NumbersAreAsOfCheckpoint", byModel},
			flush: func(m *mutant, ctx context.Context, f storage.Flush) error {
				err := m.Memory.Flush(ctx, f)
				if err == nil && f.Checkpoint > f.Expected {
					m.disk.mu.Lock()
					defer m.disk.mu.Unlock()
					last := m.disk.partitions[f.Partition].log[f.Checkpoint-2]
					ws := m.disk.workspaces[last.Workspace]
					ws.numbers = slices.Clone(ws.numbers)
					ws.numbers[0].Number--
				}
				return err
			}},
		{name: "numbers are those of the tail", by: []string{"NumbersAreAsOfCheckpoint", byModel},
			numbers: func(m *mutant, ctx context.Context, ws messages.WSID, periods []messages.SequencePeriod) (storage.WorkspaceNumbers, error) {
				n, err := m.Memory.Numbers(ctx, ws, periods...)
				m.disk.mu.Lock()
				defer m.disk.mu.Unlock()
				if w := m.disk.workspaces[ws]; w != nil && n.Kind != 0 {
					n.Numbers[0].Number = messages.Number(len(w.wlog))
				}
				return n, err
			}},
		{name: "numbers have no kind", by: []string{"FlushMovesCheckpoint", byModel},
			numbers: func(m *mutant, ctx context.Context, ws messages.WSID, periods []messages.SequencePeriod) (storage.WorkspaceNumbers, error) {
				n, err := m.Memory.Numbers(ctx, ws, periods...)
				n.Kind = 0
				return n, err
			}},
		{name: "numbers are lost at reopening", by: []string{"ReopenKeepsEverything", "FlushMovesCheckpoint", byModel},
			reopened: func(d *disk) {
				for _, ws := range d.workspaces {
					ws.numbers = ws.numbers[:0:0]
				}
			}},
	}
}

// flushListed flushes and then does something about each number that was listed
// though it is below the stored one.
func (m *mutant) flushListed(ctx context.Context, f storage.Flush, low func(ws *memWorkspace, i int, n messages.Number) error) error {
	if err := m.Memory.Flush(ctx, f); err != nil {
		return err
	}
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	for _, w := range f.Numbers {
		ws := m.disk.workspaces[w.Workspace]
		for _, n := range w.Numbers {
			if i, ok := slices.BinarySearchFunc(ws.numbers, n, messages.SequenceNumber.ComparePlace); ok && n.Number < ws.numbers[i].Number {
				if err := low(ws, i, n.Number); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// lowerByLowIDs sets a number to whatever id came last.
func (m *mutant) lowerByLowIDs(ctx context.Context, f storage.Flush) error {
	if err := m.Memory.Flush(ctx, f); err != nil || f.Checkpoint == f.Expected {
		return err
	}
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	for _, e := range m.disk.partitions[f.Partition].log[f.Expected-1 : f.Checkpoint-1] {
		ws := m.disk.workspaces[e.Workspace]
		for _, r := range e.Records {
			if i, ok := slices.BinarySearchFunc(ws.numbers, r.ID.SequenceNumber(), messages.SequenceNumber.ComparePlace); ok && r.New {
				ws.numbers = slices.Clone(ws.numbers)
				ws.numbers[i].Number = r.ID.Number
			}
		}
	}
	return nil
}

func readBugs() []bug {
	complete := "AppendIsCompleteAtAcknowledgement"
	return []bug{
		{name: "PLog without the tail", by: []string{complete, "PartitionsAppendConcurrently", "ReadersSeePrefixes", byModel},
			plog: func(m *mutant, ctx context.Context, p messages.PartitionID, from messages.PLogOffset) iter.Seq2[messages.Event, error] {
				return filterEvents(m.Memory.PLog(ctx, p, from), func(e *messages.Event) bool { return e.PLogOffset < m.checkpoint(p) })
			}},
		{name: "WLog without the tail", by: []string{complete, "ReadersSeePrefixes", byModel},
			wlog: func(m *mutant, ctx context.Context, ws messages.WSID, from messages.WLogOffset) iter.Seq2[messages.Event, error] {
				return filterEvents(m.Memory.WLog(ctx, ws, from), func(e *messages.Event) bool { return e.PLogOffset < m.checkpoint(e.Partition) })
			}},
		{name: "Records without the tail", by: []string{complete, "ReadersSeePrefixes", byModel},
			records: func(m *mutant, ctx context.Context, ws messages.WSID, r storage.RecordRange) iter.Seq2[storage.Row, error] {
				return filterRows(m.Memory.Records(ctx, ws, r), func(r storage.Row) bool { return r.PLogOffset < m.checkpoint(r.Partition) })
			}},
		{name: "PLog takes the projections before the tail", by: []string{"ReadersSeePrefixes"}, plog: (*mutant).plogWithGap},
		{name: "offset 0 is taken literally", by: []string{"LogsFromOffset", complete},
			plog: func(m *mutant, ctx context.Context, p messages.PartitionID, from messages.PLogOffset) iter.Seq2[messages.Event, error] {
				if from == 0 {
					return func(func(messages.Event, error) bool) {}
				}
				return m.Memory.PLog(ctx, p, from)
			}},
		{name: "the upper end is not in the range", by: []string{"RecordRanges"},
			records: func(m *mutant, ctx context.Context, ws messages.WSID, r storage.RecordRange) iter.Seq2[storage.Row, error] {
				return filterRows(m.Memory.Records(ctx, ws, r), func(row storage.Row) bool { return r.To == 0 || row.ID.Number < r.To })
			}},
		{name: "a range yields all sequences", by: []string{"RecordRanges", complete, byModel},
			records: func(m *mutant, ctx context.Context, ws messages.WSID, r storage.RecordRange) iter.Seq2[storage.Row, error] {
				return func(yield func(storage.Row, error) bool) {
					for _, seq := range sequencesOf(&m.disk.desc) {
						r.Seq = seq
						for row, err := range m.Memory.Records(ctx, ws, r) {
							if !yield(row, err) {
								return
							}
						}
					}
				}
			}},
		{name: "Tail goes before the checkpoint", by: []string{"Tail"},
			tail: func(m *mutant, ctx context.Context, p messages.PartitionID, from messages.PLogOffset, limit int) ([]messages.Numbering, error) {
				return m.Memory.Tail(ctx, p, max(from, m.checkpoint(p)), limit)
			}},
		{name: "Tail has no limit", by: []string{"Tail"},
			tail: func(m *mutant, ctx context.Context, p messages.PartitionID, from messages.PLogOffset, _ int) ([]messages.Numbering, error) {
				return m.Memory.Tail(ctx, p, from, 1<<30)
			}},
		{name: "Tail leaves the explicit ids out", by: []string{complete, byModel},
			tail: func(m *mutant, ctx context.Context, p messages.PartitionID, from messages.PLogOffset, limit int) ([]messages.Numbering, error) {
				tail, err := m.Memory.Tail(ctx, p, from, limit)
				m.disk.mu.Lock()
				defer m.disk.mu.Unlock()
				for i := range tail {
					tail[i].Numbers = m.disk.partitions[p].log[tail[i].PLogOffset-1].Numbers
				}
				return tail, err
			}},
		{name: "PLog yields the store's own slices", by: []string{"ReadsBelongToTheCaller"},
			plog: func(m *mutant, ctx context.Context, p messages.PartitionID, from messages.PLogOffset) iter.Seq2[messages.Event, error] {
				return func(yield func(messages.Event, error) bool) {
					for e, err := range m.Memory.PLog(ctx, p, from) {
						if err == nil {
							e.Body = m.disk.partitions[p].log[e.PLogOffset-1].Body
						}
						if !yield(e, err) {
							return
						}
					}
				}
			}},
		{name: "Numbers returns the store's own slice", by: []string{"ReadsBelongToTheCaller"},
			numbers: func(m *mutant, ctx context.Context, ws messages.WSID, periods []messages.SequencePeriod) (storage.WorkspaceNumbers, error) {
				n, err := m.Memory.Numbers(ctx, ws, periods...)
				if w := m.disk.workspaces[ws]; err == nil && w != nil {
					n.Numbers = w.numbers
				}
				return n, err
			}},
		{name: "a lock is held in the loop body", by: []string{"LoopBodyMayCallTheStore"}, plog: (*mutant).lockedPLog, append: (*mutant).refuseInLoop},
		{name: "an abandoned loop keeps its lock", by: []string{"IteratorsMayBeAbandoned"},
			plog: (*mutant).leakyPLog, append: (*mutant).refuseInLoop},
	}
}

// plogWithGap reads the projections, and the tail when a flush may have moved
// events out of it; it gives the flush some time.
func (m *mutant) plogWithGap(ctx context.Context, p messages.PartitionID, from messages.PLogOffset) iter.Seq2[messages.Event, error] {
	projected := m.checkpoint(p)
	tail := projected
	for i := 0; i < 1000 && tail == projected; i++ {
		runtime.Gosched()
		tail = m.checkpoint(p)
	}
	return filterEvents(m.Memory.PLog(ctx, p, from), func(e *messages.Event) bool { return e.PLogOffset < projected || e.PLogOffset >= tail })
}

// lockedPLog counts the loops that are under way; refuseInLoop would wait for
// them if it were a lock.
func (m *mutant) lockedPLog(ctx context.Context, p messages.PartitionID, from messages.PLogOffset) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		m.loops.Add(1)
		defer m.loops.Add(-1)
		m.Memory.PLog(ctx, p, from)(yield)
	}
}

func (m *mutant) leakyPLog(ctx context.Context, p messages.PartitionID, from messages.PLogOffset) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		m.loops.Add(1)
		for e, err := range m.Memory.PLog(ctx, p, from) {
			if !yield(e, err) {
				return
			}
		}
		m.loops.Add(-1)
	}
}

func (m *mutant) refuseInLoop(ctx context.Context, b storage.Batch) error {
	if m.loops.Load() > 0 {
		return errors.New("deadlock")
	}
	return m.Memory.Append(ctx, b)
}

func lifeBugs() []bug {
	return []bug{
		{name: "the descriptor is as it was given", by: []string{"DescriptorNormalized"},
			describe: func(m *mutant) messages.Descriptor { return m.given }},
		{name: "a crash loses the last event", by: []string{"CrashKeepsAcknowledged", byModel},
			crashed: func(d *disk) {
				for i := range d.partitions {
					if p := &d.partitions[i]; p.last() >= p.checkpoint {
						last := p.log[p.last()-1]
						ws := d.workspaces[last.Workspace]
						p.log, ws.wlog = p.log[:p.last()-1], ws.wlog[:len(ws.wlog)-1]
					}
				}
			}},
		{name: "closing does nothing", by: []string{"ClosedStoreRefusesEverything", "CloseAnswersPendingCalls"},
			close: func(*mutant, context.Context) error { return nil }},
		{name: "closing twice is an error", by: []string{"CloseTwice"},
			close: func(m *mutant, ctx context.Context) error {
				if _, err := m.Memory.Register(ctx, 0); err != nil {
					return err
				}
				return m.Memory.Close(ctx)
			}},
		{name: "Append ignores its context", by: []string{"EndedContext"},
			append: func(m *mutant, ctx context.Context, b storage.Batch) error {
				return m.Memory.Append(context.WithoutCancel(ctx), b)
			}},
		{name: "Append works and returns the context's error", by: []string{"EndedContext"},
			append: func(m *mutant, ctx context.Context, b storage.Batch) error {
				if err := m.Memory.Append(context.WithoutCancel(ctx), b); err != nil {
					return err
				}
				return ctx.Err()
			}},
		{name: "reads ignore their context", by: []string{"EndedContext"},
			wlog: func(m *mutant, ctx context.Context, ws messages.WSID, from messages.WLogOffset) iter.Seq2[messages.Event, error] {
				return m.Memory.WLog(context.WithoutCancel(ctx), ws, from)
			}},
		{name: "a loop goes on after its error", by: []string{"ContextEndsInLoop"},
			wlog: func(m *mutant, ctx context.Context, ws messages.WSID, from messages.WLogOffset) iter.Seq2[messages.Event, error] {
				return func(yield func(messages.Event, error) bool) {
					for e, err := range m.Memory.WLog(context.WithoutCancel(ctx), ws, from) {
						if !yield(e, errors.Join(err, ctx.Err())) {
							return
						}
					}
				}
			}},
		{name: "a partition too many is there", by: []string{"NoSuchPartition"},
			register: func(m *mutant, ctx context.Context, p messages.PartitionID) (storage.Register, error) {
				return m.Memory.Register(ctx, messages.PartitionID(uint32(p)%m.disk.desc.Partitions))
			}},
		{name: "somebody may write before TakeEpoch", by: []string{"EmptyStore"},
			append: func(m *mutant, ctx context.Context, b storage.Batch) error {
				if b.Epoch == 0 {
					return nil
				}
				return m.Memory.Append(ctx, b)
			}},
	}
}
