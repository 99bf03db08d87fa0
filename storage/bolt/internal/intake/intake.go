package intake

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
	"github.com/partita-go/partita/storage/bolt/internal/schema"
)

// ErrOther is returned when the log that is there has other events.
var ErrOther = errors.New("the import that was cut off is of other events")

// Options say how events are taken in.
type Options struct {
	// KeepEpochs lets events keep their epochs. Else all have epoch 1.
	KeepEpochs bool
	// Placed is called with each event in its place, unless it is nil.
	Placed func(*messages.Event)
	// Tell is told how many events are done.
	Tell func(messages.LSN)
}

// Intake takes events into a log, or only checks them.
type Intake struct {
	// Events is how many there were, Found how many of them the log had.
	Events, Found uint64

	o      Options
	schema *schema.Schema
	// log is nil if nothing is to be written, else it ended at there.
	log   *logdb.Log
	there messages.LSN
	// written is the last event that was handed over, values are the next ones.
	written messages.LSN
	values  [][]byte
	bytes   int
	logs    []partitionLog
}

// partitionLog is where the log of a partition ends.
type partitionLog struct {
	last  messages.PLogOffset
	at    messages.Timestamp
	epoch messages.Epoch
	// group is the append whose events are not all there yet.
	group group
}

// group is an append of several events.
type group struct {
	ws   messages.WSID
	left uint32
	// given are the numbers of those that are there.
	given map[messages.SequenceNumber]struct{}
}

// New is an intake of an application's events.
func New(d *messages.Descriptor, o Options) *Intake {
	return &Intake{o: o, schema: schema.New(d), logs: make([]partitionLog, d.Partitions)}
}

// Check checks all events, and writes nothing.
func (in *Intake) Check(ctx context.Context, events iter.Seq2[messages.Event, error]) error {
	return in.takeAll(ctx, events)
}

// Fill brings all events to a log, which has those up to an LSN.
func (in *Intake) Fill(ctx context.Context, log *logdb.Log, there messages.LSN, events iter.Seq2[messages.Event, error]) error {
	in.log, in.there = log, there
	if err := in.takeAll(ctx, events); err != nil {
		return err
	}
	return log.Fill(in.written, nil, in.epochs())
}

// epochs are those of the partitions that have events.
func (in *Intake) epochs() (all []logdb.Epoch) {
	for i := range in.logs {
		if in.logs[i].last > 0 {
			all = append(all, logdb.Epoch{Partition: messages.PartitionID(i), Epoch: in.logs[i].epoch})
		}
	}
	return all
}

// Limits of one transaction of log.db.
const (
	maxEvents = 8192
	maxBytes  = 8 << 20
)

// MaxSize is how large an event may be by estimate. Older programs estimated some bytes less: what they have
// appended can be a little larger than what can be appended now. Whoever reads events has no limit.
const MaxSize = format.MaxEventSize + 1<<10

// firstEpoch is the epoch of events that do not keep theirs.
const firstEpoch = 1

// takeAll takes all events, and writes them.
func (in *Intake) takeAll(ctx context.Context, events iter.Seq2[messages.Event, error]) error {
	for e, err := range events {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = in.take(&e)
		}
		if err != nil {
			// What was taken before is right, and need not be written again.
			return errors.Join(err, in.write())
		}
	}
	for i := range in.logs {
		if g := &in.logs[i].group; g.left > 0 {
			return fmt.Errorf("%w: workspace %d: %d events of its last append are missing", storage.ErrInvalidEvent, g.ws, g.left)
		}
	}
	if err := in.write(); err != nil {
		return err
	}
	if in.written < in.there {
		return fmt.Errorf("%w: it has %d of them, got %d", ErrOther, in.there, in.written)
	}
	return nil
}

// take gives an event its place, and checks it there.
func (in *Intake) take(e *messages.Event) error {
	e.Kind = messages.EventBusiness
	if !in.o.KeepEpochs {
		e.Epoch = firstEpoch
	}
	e.Partition = messages.PartitionOf(e.Workspace, in.schema.Partitions)
	l := &in.logs[e.Partition]
	e.PLogOffset = l.last + 1
	if e.RegisteredAt < l.at {
		return fmt.Errorf("%w: partition %d, offset %d: got %v, want at least %v", storage.ErrTimeFell, e.Partition, e.PLogOffset, e.RegisteredAt, l.at)
	}
	if e.Epoch < max(l.epoch, 1) {
		return schema.Invalid(e, "epoch: got %d, want at least %d", e.Epoch, max(l.epoch, 1))
	}
	if err := l.group.admit(e, in.schema); err != nil {
		return err
	}
	if size := format.SizeHint(e); size > MaxSize {
		return schema.Invalid(e, "too large: got about %d bytes, want at most %d", size, MaxSize)
	}
	l.last, l.at, l.epoch = e.PLogOffset, e.RegisteredAt, e.Epoch
	in.Events++
	if in.o.Placed != nil {
		in.o.Placed(e)
	}
	return in.add(e)
}

// admit checks an event, by itself and with those that it was appended together with.
func (g *group) admit(e *messages.Event, in *schema.Schema) error {
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

func (g *group) note(numbers []messages.SequenceNumber) {
	if g.given == nil {
		g.given = make(map[messages.SequenceNumber]struct{})
	}
	for _, n := range numbers {
		g.given[n] = struct{}{}
	}
}

// add hands an event over to be written.
func (in *Intake) add(e *messages.Event) error {
	if in.log == nil {
		in.o.Tell(messages.LSN(in.Events))
		return nil
	}
	value := format.EncodeEvent(e)
	format.SealEvent(value, in.written+messages.LSN(len(in.values))+1)
	in.values, in.bytes = append(in.values, value), in.bytes+len(value)
	if len(in.values) < maxEvents && in.bytes < maxBytes {
		return nil
	}
	return in.write()
}

// write writes the next events, or compares them with those that are there.
func (in *Intake) write() error {
	n := len(in.values)
	if n == 0 {
		return nil
	}
	old := min(n, int(in.there-min(in.there, in.written)))
	if err := in.log.Has(in.written, in.values[:old]); err != nil {
		return fmt.Errorf("%w: %w", ErrOther, err)
	}
	in.Found += uint64(old)
	if old < n {
		if err := in.log.Fill(in.written+messages.LSN(old), in.values[old:], nil); err != nil {
			return err
		}
	}
	in.written += messages.LSN(n)
	clear(in.values)
	in.values, in.bytes = in.values[:0], 0
	in.o.Tell(in.written)
	return nil
}
