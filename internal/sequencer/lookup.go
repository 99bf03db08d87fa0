package sequencer

import (
	"cmp"
	"fmt"

	"github.com/partita-go/partita/messages"
)

// load is a read under way, with the requests that wait for it in order.
type load struct {
	serial uint64
	queue  []waiting
	// periods are those that it reads besides the newest ones.
	periods []messages.SequencePeriod
}

// retirement is a flush that has succeeded while loads were under way: they may
// have read what was there before it. It stays in the lookup until all of them
// have returned, else a stale load would give a number twice.
type retirement struct {
	pending  *pending
	lastLoad uint64
}

// admit lets a request wait for its turn, as soon as its workspace's numbers are
// known.
func (c *Core) admit(w waiting) {
	id := w.workspace()
	if c.loads[id] == nil {
		w.ws = c.lookup(id, w.kind)
	}
	if w.ws == nil {
		c.awaitLoad(w, nil)
		return
	}
	if periods := c.unknownPeriods(&w); len(periods) > 0 {
		c.awaitLoad(w, periods)
		return
	}
	w.ws.pins++
	c.queue.push(w)
}

// release lets go of a request's workspace.
func (c *Core) release(w *waiting) {
	if w.ws != nil {
		c.unpin(w.ws)
		w.ws = nil
	}
}

// unpin takes note that somebody needs a workspace's numbers no longer.
func (c *Core) unpin(ws *workspace) {
	ws.pins--
	if ws.pins == 0 && len(c.evicted) > 0 {
		delete(c.evicted, ws.id)
	}
}

// keepPinned is called when the cache has dropped a workspace.
func (c *Core) keepPinned(id messages.WSID, ws *workspace) {
	if ws.pins > 0 {
		c.evicted[id] = ws
	}
}

// lookup returns a workspace's last numbers if they are known without the store.
func (c *Core) lookup(id messages.WSID, kind *kindDef) *workspace {
	if ws, ok := c.cache.Get(id); ok {
		return ws
	}
	if ws := c.evicted[id]; ws != nil {
		return ws
	}
	if !c.bornPending(id) {
		return nil
	}
	ws := newWorkspace(id, kind)
	c.overlay(ws)
	c.noticeUses(ws)
	c.forgetOld(ws)
	c.cache.Add(id, ws)
	return ws
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

// awaitLoad makes a request wait until its workspace's numbers are loaded, with those of the periods that it
// needs besides the newest ones.
func (c *Core) awaitLoad(w waiting, periods []messages.SequencePeriod) {
	id := w.workspace()
	w.ws = nil
	l := c.loads[id]
	if l == nil {
		c.lastLoad++
		l = &load{serial: c.lastLoad}
		c.loads[id] = l
		c.out.Reader = append(c.out.Reader, &messages.LoadNumbers{
			Generation: c.generation, Load: l.serial, Workspace: id, Periods: periods, Trace: w.trace(),
		})
		l.periods = periods
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
	there, err := c.takeLoaded(m, l)
	c.forgetRetired()
	for _, w := range l.queue {
		if err != nil {
			c.refuseWaiter(&w, err)
			continue
		}
		c.admit(w)
	}
	// Those who waited hold what they need by now: else loads could drop what each other has brought.
	if there != nil && there.reserved == 0 && c.txn.ws != there {
		c.forgetOld(there)
	}
}

// takeLoaded puts what was loaded into the cache, and returns the workspace if that had it before.
func (c *Core) takeLoaded(m *messages.Loaded, l *load) (*workspace, error) {
	ws, err := c.assemble(m, l)
	if err != nil {
		return nil, err
	}
	if there := c.lookup(ws.id, ws.kind); there != nil {
		// It was loaded before, and more of its periods was needed.
		there.closeAs(ws)
		there.learn(ws, l.periods)
		return there, nil
	}
	if len(l.periods) == 0 { // else somebody waits for them
		c.forgetOld(ws)
	}
	c.cache.Add(ws.id, ws)
	return nil, nil
}

// assemble makes a workspace of what was loaded and of what is pending. One
// without events takes the kind that is wanted.
func (c *Core) assemble(m *messages.Loaded, l *load) (*workspace, error) {
	if m.Err != nil {
		return nil, m.Err
	}
	stored := m.Numbers
	kind := c.kinds[cmp.Or(stored.Kind, l.queue[0].kind.id)]
	if kind == nil {
		return nil, fmt.Errorf("%w: workspace %d: stored kind %d", messages.ErrUnknownKind, stored.Workspace, stored.Kind)
	}
	ws := newWorkspace(stored.Workspace, kind)
	ws.fixed = stored.Kind != 0
	for _, n := range stored.Numbers {
		i := kind.index(n.Seq)
		if i < 0 || !kind.hasPeriod(i, n.Period) {
			return nil, fmt.Errorf("%w: workspace %d, kind %d: sequence %d is stored with number %d of period %v",
				messages.ErrUnknownSequence, ws.id, kind.id, n.Seq, n.Number, n.Period)
		}
		ws.put(kind, i, n.Period, n.Number)
	}
	if err := c.explained(ws); err != nil {
		return nil, err
	}
	if last, there := stored.Zones.Last(); there {
		ws.zones = newZones(stored.Zones, last)
	}
	ws.span(&stored, l.periods)
	c.overlay(ws)
	c.noticeUses(ws)
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
