package sequencer

import (
	"cmp"
	"fmt"

	"github.com/partita-go/partita/messages"
)

// waiting is a Start that waits for its turn.
type waiting struct {
	from  Requester
	start *messages.Start
	// ws is set when the numbers are loaded. It stays valid if the cache drops it:
	// until the transaction ends nobody else moves this workspace's numbers.
	ws *workspace
}

// load is a read under way, with the Starts that wait for it in order.
type load struct {
	serial uint64
	queue  []waiting
}

// retirement is a flush that has succeeded while loads were under way: they may
// have read what was there before it. It stays in the lookup until all of them
// have returned, else a stale load would give a number twice.
type retirement struct {
	pending  *pending
	lastLoad uint64
}

// lookup returns a workspace's last numbers if they are known without the store.
func (c *Core) lookup(id messages.WSID, kind *kindDef) *workspace {
	if ws := c.pinned(id); ws != nil {
		return ws
	}
	if ws, ok := c.cache.Get(id); ok {
		return ws
	}
	if !c.bornPending(id) {
		return nil
	}
	ws := newWorkspace(id, kind)
	c.overlay(ws)
	c.cache.Add(id, ws)
	return ws
}

// pinned returns the numbers of a workspace that a transaction holds or is about
// to: the cache may have dropped them, but there must never be two copies.
func (c *Core) pinned(id messages.WSID) *workspace {
	if c.txn.open && c.txn.ws.id == id {
		return c.txn.ws
	}
	for i := range c.ready {
		if ws := c.ready[i].ws; ws.id == id {
			return ws
		}
	}
	return nil
}

// bornPending reports whether the workspace's first event is in what is not
// stored yet, so that the store has nothing to add.
func (c *Core) bornPending(id messages.WSID) bool {
	if d := c.unflushed.workspaces[id]; d != nil && d.first {
		return true
	}
	if c.flight.pending != nil {
		if d := c.flight.pending.workspaces[id]; d != nil && d.first {
			return true
		}
	}
	return false
}

// overlay merges everything pending into ws, oldest first.
func (c *Core) overlay(ws *workspace) {
	for _, r := range c.retired {
		mergeInto(ws, r.pending)
	}
	if c.flight.pending != nil {
		mergeInto(ws, c.flight.pending)
	}
	mergeInto(ws, c.unflushed)
}

func mergeInto(ws *workspace, p *pending) {
	if d := p.workspaces[ws.id]; d != nil {
		ws.merge(d)
	}
}

// awaitLoad makes a Start wait until its workspace's numbers are loaded.
func (c *Core) awaitLoad(w waiting) {
	id := w.start.Workspace
	l := c.loads[id]
	if l == nil {
		c.lastLoad++
		l = &load{serial: c.lastLoad}
		c.loads[id] = l
		c.out.Reader = append(c.out.Reader, &messages.LoadNumbers{
			Generation: c.generation, Load: l.serial, Workspace: id,
		})
	}
	l.queue = append(l.queue, w)
	c.awaiting++
}

// loaded handles the reader's answer.
func (c *Core) loaded(m *messages.Loaded) {
	id := m.Numbers.Workspace
	l := c.loads[id]
	if m.Generation != c.generation || l == nil || l.serial != m.Load {
		return
	}
	delete(c.loads, id)
	c.awaiting -= len(l.queue)
	ws, err := c.assemble(m, l.queue[0].start.Kind)
	c.forgetRetired()
	for _, w := range l.queue {
		if err != nil {
			c.refuse(w.from, err)
			continue
		}
		w.ws = ws
		c.ready = append(c.ready, w)
	}
	if err == nil {
		c.cache.Add(id, ws)
	}
}

// assemble makes a workspace of what was loaded and of what is pending. One
// without events takes the kind that is wanted.
func (c *Core) assemble(m *messages.Loaded, wanted messages.WSKind) (*workspace, error) {
	if m.Err != nil {
		return nil, m.Err
	}
	stored := m.Numbers
	kind := c.kinds[cmp.Or(stored.Kind, wanted)]
	if kind == nil {
		return nil, fmt.Errorf("%w: workspace %d: stored kind %d", messages.ErrUnknownKind, stored.Workspace, stored.Kind)
	}
	ws := newWorkspace(stored.Workspace, kind)
	ws.fixed = stored.Kind != 0
	for _, n := range stored.Numbers {
		i := kind.index(n.Seq)
		if i < 0 {
			return nil, fmt.Errorf("%w: workspace %d, kind %d: sequence %d is stored with number %d",
				messages.ErrUnknownSequence, ws.id, kind.id, n.Seq, n.Number)
		}
		ws.last[i] = n.Number
	}
	if err := c.explained(ws); err != nil {
		return nil, err
	}
	c.overlay(ws)
	return ws, nil
}

// explained returns an error if the stored WLog offset is above what the newer
// events in the log say, or the stored kind is not theirs: faults that must not be
// masked by merging.
func (c *Core) explained(stored *workspace) error {
	for _, p := range []*pending{c.flight.pending, c.unflushed} {
		if p == nil {
			continue
		}
		d := p.workspaces[stored.id]
		switch {
		case d == nil:
		case d.last[wlogOffset] < stored.last[wlogOffset]:
			return fmt.Errorf("%w: workspace %d: WLog offset: stored %d, the log says %d",
				messages.ErrStoredNumber, stored.id, stored.last[wlogOffset], d.last[wlogOffset])
		case stored.fixed && d.kind != stored.kind:
			return fmt.Errorf("%w: workspace %d: kind: stored %d, the log says %d",
				messages.ErrStoredNumber, stored.id, stored.kind.id, d.kind.id)
		}
	}
	return nil
}

// forgetRetired drops the flushes that every load still under way has seen.
func (c *Core) forgetRetired() {
	oldest := c.lastLoad + 1
	for _, l := range c.loads {
		oldest = min(oldest, l.serial)
	}
	for len(c.retired) > 0 && c.retired[0].lastLoad < oldest {
		c.retired[0].pending = nil
		c.retired = c.retired[1:]
	}
}
