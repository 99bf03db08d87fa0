package bolt

import (
	"context"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/files"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/statedb"
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
	// IDs is nil if there is no ids.db.
	IDs *IDsInspection
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
	if in.WAL, err = s.files.InspectWAL(); err != nil {
		return in, err
	}
	if in.State, err = s.state.Inspect(format.RoleState); err != nil {
		return in, err
	}
	if in.Subscriptions, err = s.files.InspectSubscriptions(); err != nil {
		return in, err
	}
	err = s.launches.Read(ctx, func(f *boltfile.File) (err error) {
		in.IDs, err = files.InspectIDs(f)
		return err
	})
	if err != nil {
		return in, err
	}
	if in.Projected, err = statedb.Projected(s.state); err != nil {
		return in, err
	}
	in.Workspaces, in.MoreWorkspaces, err = statedb.CountWorkspaces(ctx, s.state)
	return in, err
}

// FileInspection is about one bbolt file of a store.
type FileInspection = boltfile.FileInspection

// SubscriptionsInspection is about subscriptions.db: the file, and how many subscriptions there are.
type SubscriptionsInspection = files.SubscriptionsInspection

// IDsInspection is about ids.db: the file, and the last number of each launch.
type IDsInspection = files.IDsInspection

// WALInspection is about log.wal: the file, and how many events it has that log.db has not.
type WALInspection = files.WALInspection

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

// Stats returns the store's counters and sizes.
func (s *Store) Stats() Stats {
	return Stats{
		Events:      messages.LSN(s.lastLSN.Load()),
		Scanned:     s.meter.Scanned.Load(),
		Rebuilt:     s.meter.Rebuilt.Load(),
		Commits:     s.meter.Commits.Load(),
		Flushes:     s.meter.Flushes.Load(),
		TailEvents:  s.tails.Events.Load(),
		TailBytes:   s.tails.Bytes.Load(),
		StuckMerges: s.meter.StuckMerges.Load(),
		LogSize:     s.log.File.Size(),
		StateSize:   s.state.Size(),
	}
}

var _ storage.Measured = (*Store)(nil)

// Figures implements [storage.Measured].
func (s *Store) Figures(ctx context.Context) (storage.Figures, error) {
	f := storage.Figures{
		Events:          messages.LSN(s.lastLSN.Load()),
		UnflushedEvents: s.tails.Events.Load(),
		UnflushedBytes:  s.tails.Bytes.Load(),
	}
	if f.UnflushedEvents > 0 {
		f.Oldest = oldest(s.partitions)
	}
	s.meter.Tell(&f)
	if err := s.enter(ctx); err != nil {
		return f, err
	}
	var err error
	f.Files, err = s.files.Figures()
	return f, err
}

// oldest returns when the first event of all was registered that the projections have not, 0 if they have all.
func oldest(all []partition) (first messages.Timestamp) {
	for i := range all {
		if at := all[i].oldest(); at != 0 && (first == 0 || at < first) {
			first = at
		}
	}
	return first
}

func (p *partition) oldest() messages.Timestamp {
	p.mu.RLock()
	defer p.mu.RUnlock()
	first := max(p.checkpoint, p.tail.First())
	if first >= p.tail.End() {
		return 0
	}
	return p.tail.At(first).At
}

// FileFormat is the format version of a file, by the file's name.
type FileFormat struct {
	File   string
	Format int
}

// Formats returns the formats of the files that this version writes. docs/format.md says what each version has.
func Formats() []FileFormat {
	return []FileFormat{
		{format.LogFileName, format.Version}, {format.WALFileName, format.WALFormat}, {format.StateFileName, format.StateFormat},
		{format.SubscriptionsFileName, format.SubscriptionsFormat}, {format.IDsFileName, format.IDsFormat},
	}
}
