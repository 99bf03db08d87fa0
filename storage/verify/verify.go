// Package verify checks the invariants that a store at rest can show, through
// the [storage.Store] interface only: logs without holes, numbers without gaps,
// projections that are exactly what the log says.
//
// It knows the workspaces from the partitions' logs; what a store holds under a
// workspace without events is not seen.
package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// Options say how much is checked. The zero value checks everything.
type Options struct {
	// SampleEvery reads the logs and records of every nth workspace only, in order
	// of their ids. Zero and one mean all. The partitions' logs and the numbers of
	// all workspaces are always read.
	SampleEvery int
	// LogOnly leaves out the projections, since there are none: that the log explains them,
	// and that no two events have one deduplication id, is not checked. [Files] only.
	LogOnly bool
	// MaxFaults is how many faults are kept in words; all are counted. Default 100.
	MaxFaults int
	// EachFault is called with each fault as it is found, also with those that are not kept.
	// It may get one twice where the files are read several times. Those that are not kept
	// may have no Text. Default: nobody is told.
	EachFault func(Fault)
	// MaxMemory is about how much memory [Files] may take for what it must remember
	// of workspaces and records, in bytes; with more of them it reads the files several
	// times. Default 256 MiB. A few of them are remembered in any case.
	MaxMemory int64
	// Progress is called now and then by the goroutine that runs the check, and
	// once at the end of each partition.
	Progress func(Progress)
}

// Phase is what [Files] is doing.
type Phase string

// The phases of [Files]. The last two come again for each pass over the files.
const (
	// PhasePages: whoever calls Files reads the pages before.
	PhasePages Phase = "pages"
	// PhaseLog: it reads the log.
	PhaseLog Phase = "log"
	// PhaseProjections: it compares the projections with what the log said.
	PhaseProjections Phase = "projections"
)

// Progress is how far the check has come.
type Progress struct {
	// Partition is the one under way, out of Partitions.
	Partition  messages.PartitionID
	Partitions uint32
	// Events and Workspaces count what was checked in all partitions.
	Events     uint64
	Workspaces uint64
	Faults     uint64

	// Phase, and how much of it is done, are told by [Files] only. Pass counts from 1.
	Phase Phase
	Pass  int
	// File is the one whose pages are read, in PhasePages.
	File        string
	Done, Total uint64
}

// progressEvery is how many events lie between two calls of Progress.
const progressEvery = 50_000

// WithDefaults returns a copy in which every zero field that has a default has it.
func (o Options) WithDefaults() Options {
	o.MaxFaults = cmp.Or(o.MaxFaults, 100)
	o.MaxMemory = cmp.Or(o.MaxMemory, 256<<20)
	return o
}

// Run checks the store, which must be at rest: no write is under way and none
// begins. Memory grows with the number of workspaces of one partition, and with
// the records of one workspace.
//
// Faults of the store, damaged data included, are in the report. The error is
// for not being able to look: the context has ended, the store is closed, a read
// failed. The report then holds what was seen before.
func Run(ctx context.Context, s storage.Store, o Options) (Report, error) {
	r := newRun(s.Descriptor(), o)
	r.store = s
	for p := range messages.PartitionID(r.desc.Partitions) {
		if err := r.checkPartition(ctx, p); err != nil {
			return r.report, fmt.Errorf("verify partition %d: %w", p, err)
		}
	}
	if err := r.checkStored(ctx); err != nil {
		return r.report, fmt.Errorf("verify the subscriptions: %w", err)
	}
	return r.report, nil
}

// run is the state of one check.
type run struct {
	store   storage.Store
	desc    messages.Descriptor
	options Options
	kinds   map[messages.WSKind]*kind
	seed    maphash.Seed
	report  Report
	// want serves for each workspace again.
	want []messages.SequenceNumber
	// projection says that what is checked now can be rebuilt from the log.
	projection bool
}

func newRun(d messages.Descriptor, o Options) *run {
	r := &run{desc: d, options: o, kinds: make(map[messages.WSKind]*kind, len(d.Kinds)), seed: maphash.MakeSeed()}
	r.report.Partitions = d.Partitions
	for _, k := range d.Kinds {
		r.kinds[k.ID] = newKind(k)
	}
	return r
}

// checkPartition checks a partition, and that nothing moved meanwhile.
func (r *run) checkPartition(ctx context.Context, p messages.PartitionID) error {
	before, err := r.store.Register(ctx, p)
	if err != nil {
		return r.readFault(place{partition: p}, "register", err)
	}
	if err := r.checkLog(ctx, p); err != nil {
		return err
	}
	after, err := r.store.Register(ctx, p)
	if err == nil && after != before {
		err = fmt.Errorf("%w: got %+v, was %+v", ErrNotAtRest, after, before)
	}
	return err
}

func (r *run) checkLog(ctx context.Context, p messages.PartitionID) error {
	l, err := r.readLog(ctx, p)
	if err != nil {
		return err
	}
	if l.damaged {
		// The rest would be compared with half a log.
		return nil
	}
	for i, id := range slices.Sorted(maps.Keys(l.workspaces)) {
		ws := l.workspaces[id]
		r.report.Workspaces++
		if err := r.checkNumbers(ctx, ws); err != nil {
			return err
		}
		if o := r.options.SampleEvery; o > 1 && i%o != 0 {
			continue
		}
		if err := r.checkWorkspace(ctx, ws); err != nil {
			return err
		}
	}
	r.progress(p)
	return nil
}

func (r *run) progress(p messages.PartitionID) {
	if r.options.Progress == nil {
		return
	}
	r.options.Progress(Progress{
		Partition: p, Partitions: r.report.Partitions,
		Events: r.report.Events, Workspaces: r.report.Workspaces, Faults: r.report.FaultCount,
	})
}

// fault notes a fault; its place is where.
func (r *run) fault(check Check, where place, format string, args ...any) {
	f := Fault{
		Check: check, Where: where.file, Partition: where.partition, PLogOffset: where.offset, Workspace: where.workspace,
		Projection: r.projection,
	}
	if r.options.keeps(&r.report) {
		f.Text = fmt.Sprintf(format, args...)
	}
	r.report.Add(&r.options, f)
}

// readFault turns an error of a read into a fault if it is the store's data that
// is at fault, and returns it otherwise.
func (r *run) readFault(where place, what string, err error) error {
	if errors.Is(err, storage.ErrDamaged) || errors.Is(err, storage.ErrConflict) {
		r.fault(CheckDamage, where, "%s: %v", what, err)
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// place is where a fault is. Zero fields say nothing.
type place struct {
	// file is the place in a file of what is no partition's.
	file      string
	partition messages.PartitionID
	offset    messages.PLogOffset
	workspace messages.WSID
}

func placeOf(e *messages.Event) place {
	return place{partition: e.Partition, offset: e.PLogOffset, workspace: e.Workspace}
}
