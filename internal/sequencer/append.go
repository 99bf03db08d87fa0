package sequencer

import "github.com/partita-go/partita/messages"

// inFlight is what the partition was asked to append and has not answered yet,
// wherever it waits.
type inFlight struct{ events, bytes int }

// append takes an Append. What is wrong with it whatever the state of its
// workspace is refused at once.
func (c *Core) append(from Requester, m *messages.Append) {
	w := waiting{from: from, append: m}
	if err := c.checkAppend(&w); err != nil {
		c.refuse(from, err)
		return
	}
	c.inFlight.events += len(m.Drafts)
	c.inFlight.bytes += w.bytes
	if c.state == messages.StateInitializing {
		c.queue.push(w)
		return
	}
	c.admit(w)
}

// answered forgets an Append that gets its answer now.
func (c *Core) answered(w *waiting) {
	c.release(w)
	if w.append != nil {
		c.inFlight.events -= len(w.append.Drafts)
		c.inFlight.bytes -= w.bytes
	}
}

// refuseWaiter answers a request that waited.
func (c *Core) refuseWaiter(w *waiting, err error) {
	c.refuse(w.from, err)
	c.answered(w)
}
