package bolt

import (
	"context"
	"errors"
	"io/fs"
	"sync/atomic"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/files"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/statedb"
	"github.com/partita-go/partita/storage/bolt/internal/subsdb"
)

// Inspection is what a store says about itself.
type Inspection struct {
	Descriptor messages.Descriptor
	// ID is drawn at random when a store is made or restored; all files carry it.
	ID string
	// Events is the last LSN of the log. Projected is the LSN before which every event is in
	// the projections: where the next open begins to read.
	Events, Projected messages.LSN
	Partitions        []PartitionInspection
	// Workspaces is how many have projections. MoreWorkspaces says that there are more:
	// counting was broken off.
	Workspaces     uint64
	MoreWorkspaces bool
	Log, State     boltfile.FileInspection
	// WAL is nil if there is no log.wal.
	WAL *WALInspection
	// Subscriptions is nil if there is no subscriptions.db.
	Subscriptions *SubscriptionsInspection
	// StateMissing says that there is no state.db, and so nothing about it.
	StateMissing bool
}

// PartitionInspection is where a partition stands.
type PartitionInspection struct {
	Partition messages.PartitionID
	messages.Register
	// Failed is why it cannot go on, nil if it can.
	Failed error
}

// Lag returns how many events the projections have not yet.
func (p *PartitionInspection) Lag() uint64 {
	if p.Checkpoint > p.Last {
		return 0
	}
	return uint64(p.Last + 1 - p.Checkpoint)
}

// SubscriptionsInspection is about subscriptions.db.
type SubscriptionsInspection struct {
	boltfile.FileInspection
	// Count is how many subscriptions there are.
	Count uint64
}

// WALInspection is about log.wal.
type WALInspection struct {
	Name string
	// Format is the file's format version.
	Format uint16
	// Size is in bytes.
	Size int64
	// Pending is how many events it has that log.db has not.
	Pending uint64
}

// Inspect returns what the store says about itself. It takes as long as opening a store,
// and a tenth of a second for the workspaces.
func (s *Store) Inspect(ctx context.Context) (Inspection, error) {
	in := Inspection{Descriptor: s.Descriptor(), ID: s.files.ID.String(), Events: messages.LSN(s.lastLSN.Load())}
	if err := s.enter(ctx); err != nil {
		return in, err
	}
	for i := range s.partitions {
		p := &s.partitions[i]
		p.mu.RLock()
		in.Partitions = append(in.Partitions, PartitionInspection{Partition: p.id, Register: p.register(), Failed: p.failed})
		p.mu.RUnlock()
	}
	var err error
	if in.Log, err = s.log.File.Inspect(format.RoleLog); err != nil {
		return in, err
	}
	if in.WAL, err = inspectWAL(s.files); err != nil {
		return in, err
	}
	if in.State, err = s.state.Inspect(format.RoleState); err != nil {
		return in, err
	}
	if in.Subscriptions, err = inspectSubscriptions(s.files); err != nil {
		return in, err
	}
	if in.Projected, err = statedb.Projected(s.state); err != nil {
		return in, err
	}
	in.Workspaces, in.MoreWorkspaces, err = statedb.CountWorkspaces(ctx, s.state)
	return in, err
}

// inspectWAL returns nil if there is no file.
func inspectWAL(files *files.Set) (*WALInspection, error) {
	info, err := files.Directory.Stat(format.WALFileName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // as said
	}
	if err != nil {
		return nil, err
	}
	_, values := files.Log.Pending()
	return &WALInspection{Name: format.WALFileName, Format: format.WALFormat, Size: info.Size(), Pending: uint64(len(values))}, nil
}

// inspectSubscriptions returns nil if there is no file.
func inspectSubscriptions(files *files.Set) (*SubscriptionsInspection, error) {
	f := files.Subscriptions.Load()
	if f == nil {
		return nil, nil //nolint:nilnil // as said
	}
	in := &SubscriptionsInspection{}
	var err error
	if in.FileInspection, err = f.Inspect(format.RoleSubscriptions); err != nil {
		return nil, err
	}
	err = subsdb.View(f, func(tx subsdb.Tx) (err error) {
		in.Count, err = tx.Count()
		return err
	})
	return in, err
}

// FileInspection tells about one bbolt file of a store.
type FileInspection = boltfile.FileInspection

// Stats are counters of a store since it was opened, and sizes as they are.
type Stats struct {
	// Events is how many events the log has, which is its last LSN.
	Events messages.LSN
	// Scanned is how many entries of the log Open read.
	Scanned uint64
	// Rebuilt is how many events Open projected.
	Rebuilt uint64
	// Commits counts transactions of log.db, Flushes those of state.db. Each may
	// serve many requests.
	Commits, Flushes uint64
	// TailEvents and TailBytes are what the tails hold; bytes are an estimate.
	TailEvents, TailBytes int64
	// StuckMerges is how many merges of runs of deduplication ids have met damage in
	// state.db. Their runs stay apart until that file is deleted and rebuilt.
	StuckMerges int64
	// LogSize and StateSize are the files' sizes in bytes, 0 if unknown.
	LogSize, StateSize int64
}

type counts struct {
	scanned, rebuilt, commits, flushes atomic.Uint64
	stuckMerges                        atomic.Int64

	// Times are in microseconds.
	commitTime, commitEvents, commitBytes, flushTime, flushEvents spread
}

// Stats returns the store's counters and sizes.
func (s *Store) Stats() Stats {
	return Stats{
		Events:      messages.LSN(s.lastLSN.Load()),
		Scanned:     s.counts.scanned.Load(),
		Rebuilt:     s.counts.rebuilt.Load(),
		Commits:     s.counts.commits.Load(),
		Flushes:     s.counts.flushes.Load(),
		TailEvents:  s.tails.events.Load(),
		TailBytes:   s.tails.bytes.Load(),
		StuckMerges: s.counts.stuckMerges.Load(),
		LogSize:     s.log.File.Size(),
		StateSize:   s.state.Size(),
	}
}
