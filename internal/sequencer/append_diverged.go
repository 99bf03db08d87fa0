package sequencer

import "github.com/partita-go/partita/messages"

// maxDiverging is how many workspaces are remembered.
const maxDiverging = 64

// diverging are workspaces whose events the log did not take, though its tail was
// replayed between the tries. Replaying it again is of no use to them.
type diverging map[messages.WSID]struct{}

// note remembers a workspace, and forgets the others if there are too many.
func (d *diverging) note(ws messages.WSID) {
	if *d == nil {
		*d = make(diverging)
	}
	if len(*d) >= maxDiverging {
		clear(*d)
	}
	(*d)[ws] = struct{}{}
}

// forget forgets the workspaces of members whose events were written.
func (d diverging) forget(members []member) {
	for i := range members {
		if len(d) == 0 {
			return
		}
		if m := &members[i]; m.fate == writes {
			delete(d, m.append.Workspace)
		}
	}
}

// writeDiverged replays the tail and then tries again. If that was of no use, it
// is the events that the log does not take, not the partition's view of it. Each
// Append's tries are counted, since others may be written meanwhile.
func (c *Core) writeDiverged(err error) {
	switch {
	case c.state == messages.StateTerminating:
		c.endBatch(unwritten)
		c.lastErr = err
		c.becomeActualizing()
	case c.refuseDiverging(err):
		c.endBatch(unwritten)
	case c.batch.diverged() < maxDivergences:
		c.endBatch(unwritten)
		c.lastErr = err
		c.becomeActualizing()
	default:
		if m := c.batch.lone(); m != nil {
			c.diverging.note(m.append.Workspace)
		}
		c.refuseSomebody(err)
	}
}

// refuseDiverging refuses the members whose workspaces are known to diverge, and
// reports whether there are any.
func (c *Core) refuseDiverging(err error) (some bool) {
	for i := range c.batch.members {
		m := &c.batch.members[i]
		if _, known := c.diverging[m.append.Workspace]; known && m.fate == writes {
			m.fate, m.err, some = refused, err, true
		}
	}
	return some
}

// diverged counts a try of the members, and returns the most tries of any.
func (a *attempt) diverged() (most int) {
	for i := range a.members {
		if m := &a.members[i]; m.fate == writes {
			m.divergences++
			most = max(most, m.divergences)
		}
	}
	return most
}
