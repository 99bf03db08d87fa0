package bolt

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/copies"
	"github.com/partita-go/partita/storage/bolt/internal/files"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
	"github.com/partita-go/partita/storage/bolt/internal/schema"
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
	// Store are the options under which the new store is opened. Its Progress is not called.
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
	if err := o.Store.Validate(); err != nil {
		return Imported{}, err
	}
	if o.Progress == nil {
		o.Progress = func(CopyProgress) {}
	}
	im := newImporting(d.Normalized(), o)
	if o.DryRun {
		if err := copies.MayBe(to); err != nil {
			return im.result, err
		}
		return im.result, im.takeAll(ctx, events)
	}
	err := copies.IntoKept(to, func(dir string) error {
		if err := im.build(ctx, dir, events); err != nil {
			return fmt.Errorf("%w; what is imported so far is kept in %s: run it again to go on, or delete that", err, dir)
		}
		return nil
	})
	return im.result, err
}

// importing is an import under way.
type importing struct {
	o          ImportOptions
	descriptor messages.Descriptor
	schema     *schema.Schema
	result     Imported
	// log is nil if nothing is to be written, else it ends at there.
	log   *logdb.Log
	there messages.LSN
	// written is the last event that was handed over, values are the next ones.
	written messages.LSN
	values  [][]byte
	bytes   int
	logs    []importLog
}

// importLog is where the log of a partition ends.
type importLog struct {
	last  messages.PLogOffset
	at    messages.Timestamp
	epoch messages.Epoch
	// group is the append whose events are not all there yet.
	group importGroup
}

// importGroup is an append of several events.
type importGroup struct {
	ws   messages.WSID
	left uint32
	// given are the numbers of those that are there.
	given map[messages.SequenceNumber]struct{}
}

func newImporting(d messages.Descriptor, o ImportOptions) *importing {
	return &importing{o: o, descriptor: d, schema: schema.New(&d), logs: make([]importLog, d.Partitions)}
}

func (im *importing) build(ctx context.Context, dir string, events iter.Seq2[messages.Event, error]) error {
	if err := im.fill(ctx, dir, events); err != nil {
		return err
	}
	if err := im.finish(ctx, dir); err != nil {
		return err
	}
	report, err := Verify(ctx, dir, im.o.Verify)
	if im.result.Report = report; err == nil {
		err = report.Err()
	}
	return err
}

// fill brings all events to log.db.
func (im *importing) fill(ctx context.Context, dir string, events iter.Seq2[messages.Event, error]) error {
	f, err := files.Fill(dir, im.descriptor, im.o.Store.ofFiles())
	if err != nil {
		return err
	}
	im.result.ID = f.ID.String()
	im.log, im.there = f.Log, f.End
	err = im.takeAll(ctx, events)
	if err == nil {
		err = im.log.Fill(im.written, nil, im.epochs())
	}
	return errors.Join(err, f.Close())
}

// epochs are those of the partitions that have events.
func (im *importing) epochs() (all []logdb.Epoch) {
	for i := range im.logs {
		if im.logs[i].last > 0 {
			all = append(all, logdb.Epoch{Partition: messages.PartitionID(i), Epoch: im.logs[i].epoch})
		}
	}
	return all
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
	if err := s.takeOverLaunches(ctx, im.o.Launches); err != nil || im.o.Subscriptions == nil {
		return err
	}
	all, err := im.o.Subscriptions()
	for i := 0; err == nil && i < len(all); i++ {
		err = s.PutSubscription(ctx, all[i])
	}
	return err
}

// Limits of one transaction of log.db.
const (
	maxImportEvents = 8192
	maxImportBytes  = 8 << 20
)

// maxImportSize is how large an event may be by estimate. Older programs estimated some bytes less: what they have
// appended can be a little larger than what can be appended now. Whoever reads events has no limit.
const maxImportSize = format.MaxEventSize + 1<<10

// importEpoch is the epoch of events that do not keep theirs.
const importEpoch = 1

// takeAll takes all events, and writes them.
func (im *importing) takeAll(ctx context.Context, events iter.Seq2[messages.Event, error]) error {
	for e, err := range events {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = im.take(&e)
		}
		if err != nil {
			// What was taken before is right, and need not be written again.
			return errors.Join(err, im.write())
		}
	}
	for i := range im.logs {
		if g := &im.logs[i].group; g.left > 0 {
			return fmt.Errorf("%w: workspace %d: %d events of its last append are missing", storage.ErrInvalidEvent, g.ws, g.left)
		}
	}
	if err := im.write(); err != nil {
		return err
	}
	if im.written < im.there {
		return fmt.Errorf("%w: it has %d of them, got %d", ErrOtherImport, im.there, im.written)
	}
	return nil
}

// take gives an event its place, and checks it there.
func (im *importing) take(e *messages.Event) error {
	e.Kind = messages.EventBusiness
	if !im.o.KeepEpochs {
		e.Epoch = importEpoch
	}
	e.Partition = messages.PartitionOf(e.Workspace, im.schema.Partitions)
	l := &im.logs[e.Partition]
	e.PLogOffset = l.last + 1
	if e.RegisteredAt < l.at {
		return fmt.Errorf("%w: partition %d, offset %d: got %v, want at least %v", storage.ErrTimeFell, e.Partition, e.PLogOffset, e.RegisteredAt, l.at)
	}
	if e.Epoch < max(l.epoch, 1) {
		return schema.Invalid(e, "epoch: got %d, want at least %d", e.Epoch, max(l.epoch, 1))
	}
	if err := l.group.admit(e, im.schema); err != nil {
		return err
	}
	if size := format.SizeHint(e); size > maxImportSize {
		return schema.Invalid(e, "too large: got about %d bytes, want at most %d", size, maxImportSize)
	}
	l.last, l.at, l.epoch = e.PLogOffset, e.RegisteredAt, e.Epoch
	im.result.Events++
	if im.o.Placed != nil {
		im.o.Placed(e)
	}
	return im.add(e)
}

// admit checks an event, by itself and with those that it was appended together with.
func (g *importGroup) admit(e *messages.Event, in *schema.Schema) error {
	within := g.left > 0
	switch {
	case within && (e.Workspace != g.ws || !e.DedupID.IsZero() || e.Together != 0):
		return schema.Invalid(e, "among events appended together: got workspace %d, id %v, together %d, want workspace %d and neither",
			e.Workspace, e.DedupID, e.Together, g.ws)
	case within:
		g.left--
	default:
		clear(g.given)
		g.ws, g.left = e.Workspace, e.Together
	}
	given := func(n messages.SequenceNumber) bool { _, ok := g.given[n]; return ok }
	if err := in.CheckEvent(e, e.Numbering().Numbers, given); err != nil {
		return err
	}
	if g.left > 0 {
		g.note(e.Numbers)
	}
	return nil
}

func (g *importGroup) note(numbers []messages.SequenceNumber) {
	if g.given == nil {
		g.given = make(map[messages.SequenceNumber]struct{})
	}
	for _, n := range numbers {
		g.given[n] = struct{}{}
	}
}

// add hands an event over to be written.
func (im *importing) add(e *messages.Event) error {
	if im.log == nil {
		im.tell(messages.LSN(im.result.Events))
		return nil
	}
	value := format.EncodeEvent(e)
	format.SealEvent(value, im.written+messages.LSN(len(im.values))+1)
	im.values, im.bytes = append(im.values, value), im.bytes+len(value)
	if len(im.values) < maxImportEvents && im.bytes < maxImportBytes {
		return nil
	}
	return im.write()
}

// write writes the next events, or compares them with those that are there.
func (im *importing) write() error {
	n := len(im.values)
	if n == 0 {
		return nil
	}
	old := min(n, int(im.there-min(im.there, im.written)))
	if err := im.log.Has(im.written, im.values[:old]); err != nil {
		return fmt.Errorf("%w: %w", ErrOtherImport, err)
	}
	im.result.Found += uint64(old)
	if old < n {
		if err := im.log.Fill(im.written+messages.LSN(old), im.values[old:], nil); err != nil {
			return err
		}
	}
	im.written += messages.LSN(n)
	clear(im.values)
	im.values, im.bytes = im.values[:0], 0
	im.tell(im.written)
	return nil
}

func (im *importing) tell(done messages.LSN) {
	phase := "import " + format.LogFileName
	if im.log == nil {
		phase = "check"
	}
	im.o.Progress(CopyProgress{Phase: phase, Done: uint64(done), Total: im.o.Total})
}
