package storagetest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/internal/watch"
)

// Memory is a store in memory: slices, maps and one mutex. It honours the whole
// contract of [storage.Store] and serves as its reference implementation, and
// as a store out of the way for tests and benchmarks of upper layers.
//
// What it holds outlives its handle: [Memory.Reopen] gives a new one.
type Memory struct {
	disk  *disk
	claim storage.Claim
	// closed is guarded by the disk's mutex.
	closed bool
}

var _ storage.Store = (*Memory)(nil)

// disk is what survives closing. The mutex guards everything below it; events
// and rows never change once they are in, so that readers may look at what they
// have copied the slices of without it.
type disk struct {
	desc  messages.Descriptor
	kinds map[messages.WSKind]sequences

	mu         sync.Mutex
	tailLimit  int
	partitions []memPartition
	workspaces map[messages.WSID]*memWorkspace
	// events counts those of all partitions.
	events uint64
	board  watch.Board

	subscriptions map[string]*storage.Subscription
}

// sequences are those of one kind, built-in ones included.
type sequences map[messages.SeqID]messages.Sequence

// memPartition is a partition's log, and how far the projections have come.
type memPartition struct {
	epoch      messages.Epoch
	checkpoint messages.PLogOffset
	// log[i] is the event at offset i+1.
	log []*messages.Event
}

// memWorkspace is what the log says about a workspace, except for projected and
// numbers, which are as of the partition's checkpoint.
type memWorkspace struct {
	kind messages.WSKind
	// wlog[i] is the event at offset i+1.
	wlog []*messages.Event
	rows map[messages.RecordID]storage.Row
	// ids are the offsets of the events that have a deduplication id.
	ids map[messages.DedupID]messages.WLogOffset

	// projected is the kind, 0 until an event of the workspace is before the
	// checkpoint.
	projected messages.WSKind
	// numbers are the last numbers given out, in order of the sequences' ids and
	// periods, closed which periods have none any more. The slices are replaced, never changed.
	numbers []messages.SequenceNumber
	closed  []messages.SequencePeriod
	// zones are the workspace's time zones.
	zones calendar.Zones
}

// NewMemory returns an empty store for one application. It returns a
// [messages.ErrDescriptor] if the descriptor is wrong.
func NewMemory(d messages.Descriptor) (*Memory, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	w := &disk{
		desc:       d.Normalized(),
		kinds:      make(map[messages.WSKind]sequences, len(d.Kinds)),
		partitions: make([]memPartition, d.Partitions),
		workspaces: make(map[messages.WSID]*memWorkspace),

		subscriptions: make(map[string]*storage.Subscription),
	}
	for _, k := range w.desc.Kinds {
		w.kinds[k.ID] = make(sequences)
		for _, s := range k.All() {
			w.kinds[k.ID][s.ID] = s
		}
	}
	for i := range w.partitions {
		w.partitions[i].checkpoint = 1
	}
	return &Memory{disk: w}, nil
}

// Reopen returns a new handle on what the store holds and closes this one. Called
// on an open store it is a crash without loss: whatever was acknowledged is there.
func (m *Memory) Reopen() *Memory {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	m.closed = true
	m.disk.board.RingAll()
	return &Memory{disk: m.disk}
}

// LimitTail bounds the number of a partition's events that are not in the
// projections yet; an Append that would pass it gets [storage.ErrTailFull],
// unless the tail is empty. Zero, which is the default, means no limit.
func (m *Memory) LimitTail(events int) {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	m.disk.tailLimit = events
}

// Descriptor returns the application that the store holds, normalized.
func (m *Memory) Descriptor() messages.Descriptor { return m.disk.desc.Normalized() }

// Claim implements [storage.Store].
func (m *Memory) Claim(application string) (func(), error) { return m.claim.Take(application) }

// Close closes the handle. Nothing is ever under way, so it never waits.
func (m *Memory) Close(context.Context) error {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	m.closed = true
	m.disk.board.RingAll()
	return nil
}

// TakeEpoch commits a new epoch for the partition.
func (m *Memory) TakeEpoch(ctx context.Context, id messages.PartitionID) (storage.Register, error) {
	p, unlock, err := m.partition(ctx, id)
	if err != nil {
		return storage.Register{}, err
	}
	defer unlock()
	p.epoch++
	return p.register(), nil
}

// Register returns where the partition stands.
func (m *Memory) Register(ctx context.Context, id messages.PartitionID) (storage.Register, error) {
	p, unlock, err := m.partition(ctx, id)
	if err != nil {
		return storage.Register{}, err
	}
	defer unlock()
	return p.register(), nil
}

// lock begins every operation: it locks the disk unless the context has ended or
// the store is closed.
func (m *Memory) lock(ctx context.Context) (unlock func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.disk.mu.Lock()
	if m.closed {
		m.disk.mu.Unlock()
		return nil, storage.ErrClosed
	}
	return m.disk.mu.Unlock, nil
}

// partition locks the disk and returns one of its partitions.
func (m *Memory) partition(ctx context.Context, id messages.PartitionID) (p *memPartition, unlock func(), err error) {
	if uint64(id) >= uint64(len(m.disk.partitions)) {
		return nil, nil, fmt.Errorf("%w: got partition %d, the application has %d", messages.ErrWrongPartition, id, len(m.disk.partitions))
	}
	if unlock, err = m.lock(ctx); err != nil {
		return nil, nil, err
	}
	return &m.disk.partitions[id], unlock, nil
}

// fence refuses every epoch but the current one. Epoch 0 is nobody's.
func (p *memPartition) fence(id messages.PartitionID, epoch messages.Epoch) error {
	if epoch != p.epoch || epoch == 0 {
		return fmt.Errorf("%w: partition %d: got epoch %d, current is %d", messages.ErrFenced, id, epoch, p.epoch)
	}
	return nil
}

func (p *memPartition) last() messages.PLogOffset { return messages.PLogOffset(len(p.log)) }

func (p *memPartition) register() storage.Register {
	r := storage.Register{Epoch: p.epoch, Last: p.last(), Checkpoint: p.checkpoint}
	if r.Last > 0 {
		r.LastRegisteredAt = p.log[r.Last-1].RegisteredAt
	}
	return r
}

// MemoryFactory makes [Memory] stores for [Run].
type MemoryFactory struct{}

var (
	_ Crasher     = MemoryFactory{}
	_ TailLimiter = MemoryFactory{}
)

// Open returns a new store.
func (MemoryFactory) Open(t testing.TB, d messages.Descriptor) storage.Store {
	t.Helper()
	m, err := NewMemory(d)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return m
}

// Reopen returns a new handle on the same contents.
func (MemoryFactory) Reopen(_ testing.TB, s storage.Store) storage.Store {
	return s.(*Memory).Reopen()
}

// Crash loses nothing: a memory's writes are durable at once.
func (f MemoryFactory) Crash(t testing.TB, s storage.Store) storage.Store { return f.Reopen(t, s) }

// OpenLimited returns a new store with a bounded tail.
func (f MemoryFactory) OpenLimited(t testing.TB, d messages.Descriptor, events int) storage.Store {
	t.Helper()
	m := f.Open(t, d)
	m.(*Memory).LimitTail(events)
	return m
}
