package bolt

import (
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
	"github.com/partita-go/partita/storage/bolt/internal/statedb"
	"github.com/partita-go/partita/storage/bolt/internal/tail"
)

// What goes into packs is read back from the log. By workspaces each event would be a search from the root of log.db's
// tree, in memory that nobody has touched for a while. But a flush has nearly all events of a range of the log. So its
// rows are read before, in the order of the log, as many as their share of memory takes, and lie there until the turn of
// their workspaces.

// sweepStep is how many events are read in one transaction of log.db.
const sweepStep = 1024

// sweep reads the rows of the first of the events: of the workspaces that probably get packs. What cannot be read is left
// to whoever needs it.
func (p *projection) sweep(events []flushEvent) {
	size := p.plan(events)
	if p.rows = p.rows[:0]; cap(p.rows) < size {
		p.rows = nil // first: both would be more than the share
		p.rows = make([]byte, 0, size)
	}
	p.sortKeys()
	var view format.EventView
	for keys := p.keys; len(keys) > 0; {
		step := keys[:min(len(keys), sweepStep)]
		_ = p.s.log.Read(func(log *logdb.Reader) error {
			for _, at := range step {
				p.readRows(log, &events[at.at], &view)
			}
			return nil
		})
		keys = keys[len(step):]
		p.s.yield(0)
	}
}

// plan finds out which of the events are read: those of whole transactions, as many as there is room for. It returns how
// much data their records have.
func (p *projection) plan(events []flushEvent) (size int) {
	p.keys, p.swept = p.keys[:0], 0
	for p.swept < len(events) && (p.swept == 0 || size+int(p.s.shares.rangeBytes) <= p.s.shares.swept) {
		for end := p.swept + p.s.shares.nextRange(events[p.swept:]); p.swept < end; {
			size += p.planWorkspace(events, size)
		}
	}
	return size
}

// planWorkspace lets the events of the next workspace be read, if that is worth it and there is room beside what the others
// have. It returns how much data their records have then.
func (p *projection) planWorkspace(events []flushEvent, size int) int {
	first := p.swept
	p.swept += workspaceEvents(events[first:])
	records, bytes := 0, 0
	for i := first; i < p.swept; i++ {
		records += int(events[i].records)
		bytes += int(events[i].size)
	}
	if records < statedb.PackedBy || size+bytes > p.s.shares.swept {
		return 0
	}
	for i := first; i < p.swept; i++ {
		p.keys = append(p.keys, sortKey{uint64(events[i].lsn), uint32(i)})
	}
	return bytes
}

// readRows reads the rows of an event, if it is what the tail says of it.
func (p *projection) readRows(log *logdb.Reader, f *flushEvent, view *format.EventView) {
	value := log.Value(f.lsn)
	if value == nil || view.Decode(f.lsn, value) != nil || view.Workspace != f.ws ||
		view.Belongs(f.r.partition.id, f.offset()) != nil || !slices.EqualFunc(view.Records, f.recordsOf(), isWrite) {
		return
	}
	first := len(p.rows)
	for i := range view.Records {
		p.rows = append(p.rows, view.Records[i].Data...)
	}
	f.rows = uint32(first) + 1 // last: a file can fail under the copy
}

// isWrite reports whether a record is the one that the tail says.
func isWrite(rec messages.Record, want tail.Record) bool {
	return rec.ID == want.ID() && len(rec.Data) == int(want.Size)
}
