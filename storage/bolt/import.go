package bolt

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/check"
	"github.com/partita-go/partita/storage/bolt/internal/copies"
	"github.com/partita-go/partita/storage/bolt/internal/files"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/intake"
	"github.com/partita-go/partita/storage/verify"
)

// ImportOptions say how a store is imported.
type ImportOptions struct {
	// DryRun checks what can be known of the events one after the other, and writes nothing. That offsets and numbers go
	// up by one, and that ids are unique, an import checks in the end.
	DryRun bool
	// Total is how many events there will be, for Progress. Zero: nobody knows.
	Total uint64
	// KeepEpochs lets events keep their epochs, which must not fall within a partition. Else all have epoch 1.
	KeepEpochs bool
	// Placed is called with each event in its place in the new store. Default: nobody is told.
	Placed func(*messages.Event)
	// Subscriptions returns those that the store will have, once all events are there. Default: none.
	Subscriptions func() ([]storage.Subscription, error)
	// Launches are those of ids.db. They give no number any more, as after [Restore].
	Launches []uint32
	// Store are the options under which the new store is opened. Its Progress is not called, and its AcceptNewer means
	// nothing: an import does not go on under less than an attempt before had.
	Store Options
	// Verify are the options of the check.
	Verify verify.Options
	// Progress is called now and then. Default: nobody is told.
	Progress func(CopyProgress)
}

// Imported is what was imported.
type Imported struct {
	// ID is the store's id, empty after a dry run.
	ID string
	// Events is how many it has, Found how many of them an import had written that was cut off.
	Events, Found uint64
	// Report is what the check of the store found, zero after a dry run.
	Report verify.Report
	// Faulty says which events, counted from 1, the faults are in that the report lists, in order. Faults that are of no
	// single event are not among them.
	Faulty []uint64
}

// Import makes a store of events: of another store, perhaps with another number of partitions. The directory must be new
// or empty. Each event keeps what its workspace knows of it: offset, time, numbers, records, body, ids. It gets its
// partition, its offset there in the order in which the events come, and epoch 1 unless KeepEpochs is set.
//
// Each event is checked as an append would check it; times must not fall within a partition. In the end the store is
// verified as a whole: no offset or number is missing or doubled, no deduplication id is there twice. The store gets its
// name only then. Until then it is in a directory DIR.import, which stays when the import fails or is killed: the next
// import to the same name compares the events with what is there, and goes on behind that. Subscriptions and launches are
// only those of the import that is finished.
//
// Errors: those of events, ErrExists, ErrDescriptor, ErrInvalidEvent, ErrTimeFell, ErrOtherImport, ErrFull, ErrLocked,
// verify.ErrFaults, those of the file system.
func Import(ctx context.Context, to string, d messages.Descriptor, events iter.Seq2[messages.Event, error], o ImportOptions) (Imported, error) {
	if err := d.Validate(); err != nil {
		return Imported{}, err
	}
	o.Store = o.Store.WithDefaults()
	o.Store.AcceptNewer = false
	if err := o.Store.Validate(); err != nil {
		return Imported{}, err
	}
	if o.Progress == nil {
		o.Progress = func(CopyProgress) {}
	}
	im := &importing{o: o, descriptor: d.Normalized()}
	phase := "import " + format.LogFileName
	if o.DryRun {
		phase = "check"
	}
	im.Intake = intake.New(&im.descriptor, intake.Options{KeepEpochs: o.KeepEpochs, Placed: o.Placed, Tell: func(done messages.LSN) {
		o.Progress(CopyProgress{Phase: phase, Done: uint64(done), Total: o.Total})
	}})
	err := im.run(ctx, to, events)
	im.result.Events, im.result.Found = im.Events, im.Found
	return im.result, err
}

// importing is an import under way.
type importing struct {
	*intake.Intake
	o          ImportOptions
	descriptor messages.Descriptor
	result     Imported
}

func (im *importing) run(ctx context.Context, to string, events iter.Seq2[messages.Event, error]) error {
	if im.o.DryRun {
		if err := copies.MayBe(to); err != nil {
			return err
		}
		return im.Check(ctx, events)
	}
	return copies.IntoKept(to, func(dir string) error {
		if err := im.build(ctx, dir, events); err != nil {
			return fmt.Errorf("%w; %s", err, advice(err, dir))
		}
		return nil
	})
}

// advice says what to do about an import that has failed.
func advice(err error, dir string) string {
	switch {
	case errors.Is(err, verify.ErrFaults):
		return "the same events would fail again: delete " + dir + ", which has them, before you import others"
	case errors.Is(err, ErrOtherImport):
		return "what it has is kept in " + dir + ": go on with its events, or delete that"
	}
	return "what is imported so far is kept in " + dir + ": once the cause is mended, the next import goes on there; or delete that"
}

func (im *importing) build(ctx context.Context, dir string, events iter.Seq2[messages.Event, error]) error {
	if err := im.fill(ctx, dir, events); err != nil {
		return err
	}
	if err := im.finish(ctx, dir); err != nil {
		return err
	}
	report, err := Verify(ctx, dir, im.o.Verify)
	if im.result.Report = report; err == nil && report.FaultCount > 0 {
		im.result.Faulty, err = eventsAtFault(ctx, dir, report.Faults)
		err = errors.Join(report.Err(), err)
	}
	return err
}

// eventsAtFault returns which events faults are in: an import has them in the order of log.db.
func eventsAtFault(ctx context.Context, dir string, faults []verify.Fault) ([]uint64, error) {
	l, err := OpenLog(ctx, dir)
	if err != nil {
		return nil, err
	}
	all, err := check.EventsAt(l.LogWithLSN(ctx, 1), faults)
	return all, errors.Join(err, l.Close())
}

// fill brings all events to log.db.
func (im *importing) fill(ctx context.Context, dir string, events iter.Seq2[messages.Event, error]) error {
	f, err := files.Fill(dir, im.descriptor, im.o.Store.ofFiles())
	if err != nil {
		return err
	}
	im.result.ID = f.ID.String()
	return errors.Join(im.Fill(ctx, f.Log, f.End, events), f.Close())
}

// finish lets the store make of its log what is derived from it, and gives it what is not.
func (im *importing) finish(ctx context.Context, dir string) error {
	o := im.o.Store
	o.Progress = func(p Progress) {
		im.o.Progress(CopyProgress{Phase: "rebuild " + format.StateFileName, Done: p.Done, Total: p.Total})
	}
	s, err := Open(ctx, dir, im.descriptor, o)
	if err != nil {
		return err
	}
	return errors.Join(im.putRest(ctx, s), s.Close(context.WithoutCancel(ctx)))
}

func (im *importing) putRest(ctx context.Context, s *Store) error {
	if err := s.launches.TakeOver(ctx, im.o.Launches); err != nil || im.o.Subscriptions == nil {
		return err
	}
	all, err := im.o.Subscriptions()
	for i := 0; err == nil && i < len(all); i++ {
		err = s.PutSubscription(ctx, all[i])
	}
	return err
}
