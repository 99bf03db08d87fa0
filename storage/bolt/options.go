package bolt

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/files"
	"github.com/partita-go/partita/storage/replog"
)

// Options are the settings of a store. The zero value of each field means its
// default.
type Options struct {
	// ReadOnly opens the store without changing a byte of any file. TakeEpoch,
	// Append and Flush return [ErrReadOnly]. Without state.db, or with one of an older
	// format, there is nothing to open, since it cannot be rebuilt. What a process that was killed has written last may
	// not be on the disk: a loss of power can take it back until a store is opened that may write.
	ReadOnly bool

	// Create lets Open make a new store if there is none in the directory, which it makes too. Without it Open returns
	// ErrNotFound then: a path that was mistyped, or a volume that is not mounted, must not begin at number 1 again. So
	// set it when a store is to be made, as by a flag of the first start, not always. It means nothing with ReadOnly,
	// and where a store is.
	Create bool

	// AcceptNewer lets an older program have a store that a newer one has extended: with kinds and sequences that the
	// descriptor has not, or with larger limits, Largest and Ahead of a sequence. The store is open under its own
	// descriptor then, so numbers go on up to its limits, not up to those of the program. It is for the time of a
	// rollback: with it a descriptor from which something was taken away by mistake is accepted too. Without it Open
	// returns ErrDescriptor, which names the first difference. It means nothing where the descriptor has all that the
	// store has.
	AcceptNewer bool

	// Progress is called while Open scans or rebuilds, at most about ten times a
	// second, and once at the end of each phase. Default: nobody is told.
	Progress func(Progress)

	// TailEvents is how many events of one partition may be in the log and not yet
	// in the projections; above it Append is refused with ErrTailFull. A partition
	// found with more is projected by Open itself. Default 131,072.
	TailEvents int

	// Memory bounds what the store has in memory of events that are on their way into state.db, in bytes, as estimated;
	// it does not grow with the store. A quarter is for the tails of all partitions, which a flush is hurried for when
	// half of that is used, and, for each partition, for the data of records that are not flushed: above that Append is
	// refused with ErrTailFull, but a batch that finds nothing there may exceed it. The rest is for flushes, which are
	// cut into transactions, for what log.wal has and log.db has not yet, for where the
	// keys of workspaces end, and, a sixteenth, for a filter of the deduplication ids in state.db: above two a byte, an
	// append with one takes some microseconds more. A process takes up to twice as much, as Go collects garbage. Less than
	// 32 MiB is slow. Default 256 MiB.
	Memory int64

	// LockTimeout is how long to wait for another process to release a file.
	// Default 1 s.
	LockTimeout time.Duration

	// MmapSize is how much address space is reserved for each file, in bytes. Until
	// a file grows beyond it no writer waits for readers. Default 8 GiB, and
	// 256 MiB on 32-bit machines.
	MmapSize int64

	// MaxSize is the largest size of log.db in bytes. An Append is refused with ErrFull once
	// log.db cannot take what was appended before, of which log.wal keeps up to 64 MiB.
	// Default: no limit.
	MaxSize int64

	// StateMaxSize is the same for state.db and Flush.
	StateMaxSize int64

	// Log takes the place of log.wal, unless it is nil: a commit is an entry of it, and what it accepts, on whichever node
	// that was written, is what the store has. The store starts it, and closes it. This store is a replica from then on:
	// without Log it opens for reading only. Methods that need the owner return [replog.ErrNotOwner] elsewhere, but for reads
	// with a context of [replog.Local].
	// It is an error with ReadOnly.
	Log replog.Log

	// NoGenerators lets NextGenerator return [errors.ErrUnsupported]: another store numbers the generators of the
	// application, of which this one has some partitions.
	NoGenerators bool

	// SubscriptionsMaxSize is the same for subscriptions.db and the writes of
	// subscriptions.
	SubscriptionsMaxSize int64
}

// WithDefaults returns a copy in which every zero field has its default.
func (o Options) WithDefaults() Options {
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	o.TailEvents = cmp.Or(o.TailEvents, 131_072)
	o.Memory = cmp.Or(o.Memory, 256<<20)
	o.LockTimeout = cmp.Or(o.LockTimeout, time.Second)
	if math.MaxInt > math.MaxInt32 {
		o.MmapSize = cmp.Or(o.MmapSize, 8<<30)
	}
	o.MmapSize = cmp.Or(o.MmapSize, 256<<20)
	return o
}

// Validate returns a [messages.ErrSettings] that names the first wrong option, or
// nil. It expects defaults to be filled in.
func (o Options) Validate() error {
	for _, n := range []struct {
		name             string
		got, least, most int64
	}{
		{"TailEvents", int64(o.TailEvents), 1, math.MaxInt32},
		{"Memory", o.Memory, 1, math.MaxInt64},
		{"LockTimeout", int64(o.LockTimeout), 1, math.MaxInt64},
		{"MmapSize", o.MmapSize, 1, math.MaxInt},
		{"MaxSize", o.MaxSize, 0, math.MaxInt},
		{"StateMaxSize", o.StateMaxSize, 0, math.MaxInt},
		{"SubscriptionsMaxSize", o.SubscriptionsMaxSize, 0, math.MaxInt},
	} {
		if n.got < n.least || n.got > n.most {
			return fmt.Errorf("%w: %s: got %d, want %d to %d", messages.ErrSettings, n.name, n.got, n.least, n.most)
		}
	}
	if o.Log != nil && o.ReadOnly {
		return fmt.Errorf("%w: Log: got one with ReadOnly", messages.ErrSettings)
	}
	return nil
}

// shares say how Options.Memory is shared out.
type shares struct {
	// tail is for the tails of all partitions, and for the data of one partition's records.
	tail int64
	// pending is for what log.wal has and log.db has not yet.
	pending int64
	// flushEvents is how many events are flushed together at most: what comes behind waits for the next flush.
	flushEvents int
	// rangeEvents and rangeBytes are how many events one transaction of state.db takes, and how much data of records. A
	// workspace is never cut. Larger ones touch fewer leaves; but the ranges of two transactions share none.
	rangeEvents int
	rangeBytes  int64
	// periodBytes is what a head takes for the periods that it has, by the workspace's kind; nil if no sequence
	// restarts.
	periodBytes map[messages.WSKind]int64
	// swept is how much data of records a flush reads back at a time before it writes it.
	swept int
	// tables is what the tables of a flush may take to be kept for the next one.
	tables int64
	// ends is how many ends of keys all partitions remember in a generation.
	ends int
	// known is what a filter of the deduplication ids in state.db takes at most.
	known int64
}

func (o *Options) shares() shares {
	m := o.Memory
	return shares{
		tail:        max(m/4, 1),
		pending:     max(m/8, 1<<20),
		flushEvents: int(min(max(m/1024, 1024), math.MaxInt32)),
		rangeEvents: int(min(max(m/16384, 16), math.MaxInt32)),
		rangeBytes:  max(m/32, 1<<10),
		swept:       int(min(max(m/8, 1<<10), math.MaxInt32)),
		tables:      m / 8,
		ends:        int(min(max(m/1024, 64), math.MaxInt32)),
		known:       m / 16,
	}
}

// besideAppends bounds the transactions of state.db: a commit waits while the disk writes one. While a store is opened nobody
// commits, and larger ones have fewer syncs.
func (o *shares) besideAppends() {
	o.rangeEvents, o.rangeBytes = min(o.rangeEvents, 2048), min(o.rangeBytes, 1<<20)
}

func (o *Options) ofFiles() files.Options {
	return files.Options{
		ReadOnly: o.ReadOnly, Create: o.Create, AcceptNewer: o.AcceptNewer, LockTimeout: o.LockTimeout, MmapSize: o.MmapSize,
		MaxSize: o.MaxSize, StateMaxSize: o.StateMaxSize, SubscriptionsMaxSize: o.SubscriptionsMaxSize,
	}
}

// reading are the options of whoever only reads the files of a store.
func reading() files.Options {
	o := Options{ReadOnly: true}.WithDefaults()
	return o.ofFiles()
}

// Phase is what Open is doing.
type Phase uint8

// The phases of Open.
const (
	// PhaseScan: it reads what the projections have not yet.
	PhaseScan Phase = iota + 1
	// PhaseRebuild: it reads the log and writes the projections.
	PhaseRebuild
)

func (p Phase) String() string {
	switch p {
	case PhaseScan:
		return "scan"
	case PhaseRebuild:
		return "rebuild"
	}
	return fmt.Sprintf("phase %d", uint8(p))
}

// Progress says how far Open has come.
type Progress struct {
	Phase Phase
	// Done and Total are events.
	Done, Total uint64
}
