package storagetest

import (
	"cmp"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// model is the naive store: nothing but the events that were acknowledged, the
// epochs and the checkpoints. All else is looked up by scanning the events.
type model struct {
	desc       messages.Descriptor
	partitions []modelPartition
}

type modelPartition struct {
	epoch      messages.Epoch
	checkpoint messages.PLogOffset
	events     []messages.Event
}

func newModel(d messages.Descriptor) *model {
	m := &model{desc: d, partitions: make([]modelPartition, d.Partitions)}
	for i := range m.partitions {
		m.partitions[i].checkpoint = 1
	}
	return m
}

func (m *model) append(events ...messages.Event) {
	for _, e := range events {
		p := &m.partitions[e.Partition]
		p.events = append(p.events, canonicalEvent(e))
	}
}

func (m *model) register(id messages.PartitionID) storage.Register {
	p := &m.partitions[id]
	r := storage.Register{Epoch: p.epoch, Last: messages.PLogOffset(len(p.events)), Checkpoint: p.checkpoint}
	if r.Last > 0 {
		r.LastRegisteredAt = p.events[r.Last-1].RegisteredAt
	}
	return r
}

// observe returns what the store must show.
func (m *model) observe(others []messages.WSID) observed {
	o := observed{Workspaces: make(map[messages.WSID]observedWorkspace)}
	for _, ws := range others {
		o.Workspaces[ws] = m.workspace(ws)
	}
	for id := range m.partitions {
		p := &m.partitions[id]
		o.Registers = append(o.Registers, m.register(messages.PartitionID(id)))
		o.PLogs = append(o.PLogs, canonical(slices.Clone(p.events)))
		o.Tails = append(o.Tails, tailOf(p.events[p.checkpoint-1:]))
		for _, e := range p.events {
			if _, ok := o.Workspaces[e.Workspace]; !ok {
				o.Workspaces[e.Workspace] = m.workspace(e.Workspace)
			}
		}
	}
	return o
}

func tailOf(events []messages.Event) []messages.Numbering {
	var tail []messages.Numbering
	for i := range events {
		n := events[i].Numbering()
		n.Numbers = canonical(slices.Clone(n.Numbers))
		tail = append(tail, n)
	}
	return tail
}

func (m *model) workspace(ws messages.WSID) observedWorkspace {
	p := &m.partitions[messages.PartitionOf(ws, m.desc.Partitions)]
	w := observedWorkspace{Numbers: m.numbers(ws, p.events[:p.checkpoint-1]), IDs: make(map[messages.DedupID]messages.WLogOffset)}
	for _, e := range p.events {
		if e.Workspace == ws {
			w.WLog = append(w.WLog, e)
			w.Rows = putRows(w.Rows, &e)
			if !e.DedupID.IsZero() {
				w.IDs[e.DedupID] = e.WLogOffset
			}
		}
	}
	slices.SortFunc(w.Rows, func(a, b storage.Row) int {
		return cmp.Or(cmp.Compare(a.ID.Seq, b.ID.Seq), cmp.Compare(a.ID.Number, b.ID.Number))
	})
	return w
}

// numbers merges all that the events say about a workspace.
func (m *model) numbers(ws messages.WSID, events []messages.Event) storage.WorkspaceNumbers {
	l := make(ledger)
	for i := range events {
		if events[i].Workspace == ws {
			l.merge(&m.desc, events[i].Numbering())
		}
	}
	return l.numbers(ws)
}

// putRows replaces or adds the rows that an event writes.
func putRows(rows []storage.Row, e *messages.Event) []storage.Row {
	for _, r := range e.Records {
		row := storage.Row{ID: r.ID, Data: r.Data, Partition: e.Partition, PLogOffset: e.PLogOffset}
		i := slices.IndexFunc(rows, func(old storage.Row) bool { return old.ID == r.ID })
		if i < 0 {
			rows = append(rows, row)
		} else {
			rows[i] = row
		}
	}
	return rows
}
