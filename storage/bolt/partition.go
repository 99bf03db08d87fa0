package bolt

import (
	"sync"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/tail"
)

// partition is what the store holds in memory of one partition: everything that
// is durable, nothing that is not. The committer publishes appends and epochs, the
// flusher checkpoints; both under the lock, after their commit.
type partition struct {
	id messages.PartitionID

	mu sync.RWMutex
	// epoch is the current one; last, lastAt and lastLSN are the last event's.
	epoch   messages.Epoch
	last    messages.PLogOffset
	lastAt  messages.Timestamp
	lastLSN messages.LSN
	// checkpoint is what state.db has. The tail begins at or, while it is being
	// trimmed, before it.
	checkpoint messages.PLogOffset
	tail       tail.Tail
	ends       ends
	// failed is why nothing can be written before a repair, nil otherwise.
	failed error
	// conflicts are the lasting ones of the partition's workspaces; nil if none.
	conflicts map[format.ConflictKey]*storage.ConflictError
	// stored is the checkpoint as state.db has it, but for a flush under way. Only the flusher needs it.
	stored format.Checkpoint
	// unfinished is a flush that ended when some of its transactions were durable; nil if there is none. finished is the
	// checkpoint that the last one began at if it was finished later, else 0.
	unfinished *unfinished
	finished   messages.PLogOffset
	// flushing is closed when the flush under way has ended; nil if there is none.
	flushing chan struct{}
}

// unfinished is what is left of a flush.
type unfinished struct {
	to      messages.PLogOffset
	through messages.WSID
	// cause is why it ended.
	cause error
}

// register returns where the partition stands. The caller holds the lock.
func (p *partition) register() messages.Register {
	return messages.Register{Epoch: p.epoch, Last: p.last, LastRegisteredAt: p.lastAt, Checkpoint: p.checkpoint}
}

// replayFrom returns the LSN of the first event that the projections have not once
// the checkpoint is where the caller says, 0 if there is none.
func (p *partition) replayFrom(checkpoint messages.PLogOffset) messages.LSN {
	if checkpoint >= p.tail.End() {
		return 0
	}
	return p.tail.At(checkpoint).LSN
}

// fail marks the partition as failed, if it is not yet.
func (p *partition) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed == nil {
		p.failed = err
	}
}

// addConflict notes a conflict that lasts. The caller holds the lock.
func (p *partition) addConflict(e *storage.ConflictError) {
	if p.conflicts == nil {
		p.conflicts = make(map[format.ConflictKey]*storage.ConflictError)
	}
	k := format.ConflictKeyOf(e)
	if p.conflicts[k] == nil {
		p.conflicts[k] = e
	}
}

// conflictWith returns the lasting conflict that an event of a workspace would
// touch with its numbers and records, or nil. The caller holds the lock.
func (p *partition) conflictWith(ws messages.WSID, numbers []messages.SequenceNumber, records []tail.Record) error {
	if len(p.conflicts) == 0 {
		return nil
	}
	if e := p.conflicts[format.ConflictKey{Place: storage.PlaceWLog, Workspace: ws}]; e != nil {
		return e
	}
	for _, n := range numbers {
		if e := p.conflicts[format.ConflictKey{Place: storage.PlaceRecord, Workspace: ws, Seq: n.Seq}]; e != nil {
			return e
		}
	}
	for _, r := range records {
		if e := p.conflicts[format.ConflictKey{Place: storage.PlaceRecord, Workspace: ws, Seq: r.Seq}]; e != nil {
			return e
		}
	}
	return nil
}

// publish takes over what is durable now; lsn is the last one before it.
func (p *partition) publish(r *writeRequest, lsn messages.LSN) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.takeEpoch {
		p.epoch = r.epoch
	}
	for i := range r.events {
		n := &r.events[i]
		lsn++
		p.tail.Push(tail.Entry{LSN: lsn, Workspace: n.ws, WLog: n.wlog, At: n.at, Epoch: r.epoch, Kind: n.wsKind}, n.dedup, n.numbers, n.records)
		p.tail.PushZone(n.zone)
		p.ends.raise(n)
		p.last, p.lastAt, p.lastLSN = n.offset, n.at, lsn
	}
}
