package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"unsafe"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// files is the state of a check of an [Image]. A pass reads the log once in its order
// and remembers what it says of the workspaces and records that the sieve selects, then
// reads the projections in the order of their keys and compares. If memory does not
// allow to remember all, the sieve is narrowed and there are more passes.
type files struct {
	run
	image Image
	sieve sieve
	// pass counts from 1. What is not a workspace's or a record's is checked in the first.
	pass       int
	partitions []partition

	workspaces table[workspaceState]
	// numbers are the last numbers of all workspaces, each one's at its base.
	numbers []messages.Number
	// tails are the last numbers as of the checkpoint of the workspaces that have events
	// behind it, by hash: as few as the tail has events.
	tails map[uint64][]messages.Number
	// zones are the time zones of workspaces that have some as of the checkpoint, by hash.
	zones   map[uint64]calendar.Zones
	records table[recordState]
	periods table[period]
	ids     idSums
	// hidden are the workspaces of which damage hides records.
	hidden map[messages.WSID]bool
	// lostNumbers are the workspaces of which damage hides numbers.
	lostNumbers map[messages.WSID]bool
	// subscribed is filled in the first pass.
	subscribed subscribed
	// kindsByIndex are what workspaceState.kind refers to, from 1 on.
	kindsByIndex []*kind
	kindIndex    map[*kind]uint16

	// lastLSN is the entry of the log read last. lost counts the entries that could not be
	// read.
	lastLSN messages.LSN
	lost    uint64

	found findings
	// unreadable is what was found not to be readable to its end; later passes find it again.
	unreadable map[string]bool
	explicit   []messages.SequenceNumber
	done       uint64
	total      uint64
}

// partition is what is known of one partition.
type partition struct {
	position
	standing Standing
	// failed says that its log cannot be read wholly: what it has is not compared, since
	// that would be with half a log.
	failed bool
	// unread is the entry of the log from which on its events are not looked at, if it
	// has failed: allRead if there is none. Every pass looks at the same ones.
	unread messages.LSN
	// unknown says that nobody knows where it stands. behind says that an event was told that
	// is not projected and should be.
	unknown, behind bool
	// index stands for the entries that its index must have.
	index uint64
}

// allRead is behind every entry of a log.
const allRead messages.LSN = math.MaxUint64

// fail notes that a partition's projections cannot be compared, and that its events are not
// looked at from an entry of the log on.
func (p *partition) fail(from messages.LSN) {
	if !p.failed || from < p.unread {
		p.failed, p.unread = true, from
	}
}

// projected reports whether an event is before the checkpoint. Where that is not known nothing
// is compared, and all are: no more needs to be remembered of them then.
func (p *partition) projected(e *messages.Event) bool {
	return p.unknown || e.PLogOffset < p.register.Checkpoint
}

// written reports whether an event is in what the projections have of its workspace.
func (p *partition) written(e *messages.Event) bool {
	s := &p.standing
	return p.projected(e) || e.PLogOffset < s.Target && e.Workspace <= s.Through
}

// minRemembered is with how many workspaces and records a pass remembers all that is left of it,
// whatever memory that takes: else there would be no end of passes where not even a table fits.
const minRemembered = 64

// Files checks a store as its files show it: like [Run], and also what no event
// explains, which Run does not see. What it remembers is bounded by Options.MaxMemory, for
// a moment once more when a table is rebuilt, and what the tail holds; not by the number
// of workspaces or records. SampleEvery is not used.
func Files(ctx context.Context, image Image, o Options) (Report, error) {
	o = o.WithDefaults()
	f := &files{
		run: *newRun(image.Descriptor(), o), image: image, sieve: newSieve(rand.Uint64()), pass: 1,
		tails: make(map[uint64][]messages.Number), zones: make(map[uint64]calendar.Zones), ids: newIDSums(),
		unreadable: make(map[string]bool), hidden: make(map[messages.WSID]bool),
		lostNumbers: make(map[messages.WSID]bool), kindsByIndex: []*kind{nil}, kindIndex: make(map[*kind]uint16),
	}
	for _, k := range f.kinds {
		f.kindIndex[k] = uint16(len(f.kindsByIndex))
		f.kindsByIndex = append(f.kindsByIndex, k)
	}
	err := f.all(ctx)
	f.sayUnread()
	return f.report, err
}

func (f *files) all(ctx context.Context) error {
	if err := f.stand(ctx); err != nil {
		return err
	}
	if err := f.findSubscribed(ctx); err != nil {
		return fmt.Errorf("verify the subscriptions: %w", err)
	}
	for {
		if err := f.readLog(ctx); err != nil {
			return fmt.Errorf("verify the log: %w", err)
		}
		f.report.Workspaces += uint64(f.workspaces.used)
		if f.first() {
			if err := f.checkSubscriptions(ctx); err != nil {
				return fmt.Errorf("verify the subscriptions: %w", err)
			}
		}
		if !f.options.LogOnly {
			if err := f.compare(ctx); err != nil {
				return fmt.Errorf("verify the projections: %w", err)
			}
		}
		if !f.sieve.next() {
			return nil
		}
		f.pass++
		f.forget()
	}
}

// stand finds out where the partitions stand.
func (f *files) stand(ctx context.Context) error {
	f.partitions = make([]partition, f.desc.Partitions)
	for i := range f.partitions {
		p := &f.partitions[i]
		p.partition = messages.PartitionID(i)
		standing, err := f.image.Standing(ctx, p.partition)
		if err != nil {
			p.fail(allRead)
			p.unknown, p.register.Epoch = true, math.MaxUint64
			f.projection = errors.Is(err, storage.ErrConflict)
			if err := f.readFault(place{partition: p.partition}, "register", err); err != nil {
				return err
			}
			continue
		}
		p.standing, p.register = standing, standing.Register
	}
	return nil
}

// maxUnread is how many partitions are named that were not looked at as a whole.
const maxUnread = 10

// sayUnread says what was not looked at because partitions have failed.
func (f *files) sayUnread() {
	if !f.anyFailed() {
		return
	}
	unread, more := f.report.Unread, 0
	for i := range f.partitions {
		what := f.unreadOf(&f.partitions[i])
		switch {
		case what == "":
		case len(unread) < maxUnread:
			unread = append(unread, what)
		default:
			more++
		}
	}
	if more > 0 {
		unread = append(unread, fmt.Sprintf("the same of %d more partitions", more))
	}
	if !f.options.LogOnly {
		unread = append(unread, "the index of deduplication ids")
	}
	f.report.Unread = unread
}

// unreadOf says what was not looked at of a partition.
func (f *files) unreadOf(p *partition) string {
	switch cut := p.unread != allRead; {
	case !p.failed, f.options.LogOnly && !cut:
		return ""
	case f.options.LogOnly:
		return fmt.Sprintf("partition %d from LSN %d on", p.partition, p.unread)
	case cut:
		return fmt.Sprintf("partition %d from LSN %d on, and its projections", p.partition, p.unread)
	}
	return fmt.Sprintf("the projections of partition %d", p.partition)
}

// forget begins a new pass.
func (f *files) forget() {
	f.workspaces.clear()
	f.records.clear()
	f.periods.clear()
	f.numbers = f.numbers[:0]
	clear(f.tails)
	clear(f.zones)
	f.found = findings{}
}

// first reports whether it is the first pass.
func (f *files) first() bool { return f.pass == 1 }

// memory returns how much the tables take.
func (f *files) memory() int64 {
	return int64(len(f.workspaces.slots))*int64(unsafe.Sizeof(slot[workspaceState]{})) +
		int64(len(f.records.slots))*int64(unsafe.Sizeof(slot[recordState]{})) +
		int64(len(f.periods.slots))*periodSlotSize + int64(cap(f.numbers))*int64(unsafe.Sizeof(messages.Number(0))) +
		int64(len(f.zones))*zonesSize
}

// zonesSize is about what the time zones of a workspace take, which mostly has one.
const zonesSize = 128

// maybeNarrow narrows the sieve if a table is full and there is no memory for one twice
// as large.
func (f *files) maybeNarrow(full bool, grown int64) {
	for full && f.memory()+grown > f.options.MaxMemory && f.sieve.last > f.sieve.first {
		before := f.remembered()
		if before < minRemembered {
			return
		}
		f.sieve.narrow()
		f.found.drop(&f.report, f.sieve.last-f.sieve.first)
		f.cut()
		if f.remembered() < before {
			return
		}
	}
}

// remembered is how much the pass remembers.
func (f *files) remembered() int { return f.workspaces.used + f.records.used + f.periods.used }

// cut forgets what the sieve does not select any more.
func (f *files) cut() {
	f.records.resize(len(f.records.slots), f.sieve.selects)
	f.periods.resize(len(f.periods.slots), f.sieve.selects)
	f.workspaces.resize(len(f.workspaces.slots), f.sieve.selects)
	kept := make([]messages.Number, 0, len(f.numbers)/2)
	for i := range f.workspaces.slots {
		if w := &f.workspaces.slots[i]; !w.free() {
			base := len(kept)
			kept = append(kept, f.numbersOf(&w.value)...)
			w.value.base = uint32(base)
		}
	}
	f.numbers = kept
	for key := range f.tails {
		if !f.sieve.selects(key) {
			delete(f.tails, key)
		}
	}
	maps.DeleteFunc(f.zones, func(key uint64, _ calendar.Zones) bool { return !f.sieve.selects(key) })
}

// tell tells how far the phase is.
func (f *files) tell(phase Phase) {
	f.done++
	if f.done%progressEvery == 0 {
		f.tellNow(phase)
	}
}

func (f *files) tellNow(phase Phase) {
	if f.options.Progress == nil {
		return
	}
	f.options.Progress(Progress{
		Partitions: f.report.Partitions, Events: f.report.Events, Workspaces: f.report.Workspaces, Faults: f.report.FaultCount,
		Phase: phase, Pass: f.pass, Done: min(f.done, f.total), Total: f.total,
	})
}

// begin begins a phase of so many steps; end ends it.
func (f *files) begin(phase Phase, total uint64) {
	f.done, f.total = 0, total
	f.tellNow(phase)
}

func (f *files) end(phase Phase) {
	f.done = f.total
	f.tellNow(phase)
}
