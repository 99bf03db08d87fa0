package sequencer

import (
	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// pending holds numbers that are durable in the log but not known to be in
// SeqData. A workspace is in it if and only if an event of it is.
type pending struct {
	workspaces map[messages.WSID]*delta
	// keys counts the changed sequences, one that restarts in each period, and one more for each new workspace.
	keys int
	// serial tells one pending of a core from the others; it is not 0.
	serial uint64
}

// delta is what changed in one workspace.
type delta struct {
	kind *kindDef
	// first says that the workspace's first event is among these, so that nothing
	// of it is stored before.
	first bool
	// lasts are the last numbers that changed.
	lasts
	// changes are those of the workspace's time zone, in order.
	changes []calendar.ZoneChange
}

func newPending(serial uint64) *pending {
	return &pending{workspaces: make(map[messages.WSID]*delta), serial: serial}
}

// of returns the delta of a workspace, made if it was not there.
func (p *pending) of(ws messages.WSID, kind *kindDef) *delta {
	d := p.workspaces[ws]
	if d == nil {
		own := &struct {
			delta
			few fewNumbers
		}{}
		d = &own.delta
		d.kind, d.lasts = kind, newLasts(kind, &own.few)
		d.owned = true
		p.workspaces[ws] = d
	}
	return d
}

// raise merges a number into a delta by maximum.
func (p *pending) raise(d *delta, i int, period calendar.Date, n messages.Number) {
	if was, raised := d.lasts.raise(d.kind, i, period, n); raised && was == 0 {
		p.keys++
	}
}

// markFirst notes that a workspace's first event is among these.
func (p *pending) markFirst(d *delta) {
	if !d.first {
		d.first = true
		p.keys++
	}
}

// numbers returns everything in order of workspaces and sequences.
func (p *pending) numbers() []messages.WorkspaceNumbers {
	out := make([]messages.WorkspaceNumbers, 0, len(p.workspaces))
	flat := make([]messages.SequenceNumber, 0, p.keys)
	for _, id := range sortedIDs(p.workspaces) {
		d := p.workspaces[id]
		w := messages.WorkspaceNumbers{Workspace: id}
		if d.first {
			w.Kind = d.kind.id
		}
		begin := len(flat)
		d.each(d.kind, func(i int, period calendar.Date, n messages.Number) {
			flat = append(flat, messages.SequenceNumber{Seq: d.kind.ids[i], Period: period, Number: n})
		})
		w.Numbers = flat[begin:len(flat):len(flat)]
		out = append(out, w)
	}
	return out
}
