package memory

import (
	"fmt"

	"github.com/partita-go/partita/storage/replog"
)

// Fate is what becomes of an append.
type Fate uint8

// The fates.
const (
	// Kept: the entry is written, its answer is lost.
	Kept Fate = iota + 1
	// Lost: the entry and its answer are lost.
	Lost
	// Late: the answer is lost, and the entry is written when [Cluster.Release] is called, whoever leads then.
	Late
	// Delayed: the entry is written, and the append has its answer when Release is called, whoever leads then.
	Delayed
)

func (f Fate) String() string {
	switch f {
	case Kept:
		return "kept"
	case Lost:
		return "lost"
	case Late:
		return "late"
	case Delayed:
		return "delayed"
	}
	return fmt.Sprintf("fate %d", uint8(f))
}

// Doom says what becomes of a node's next appends, one after the other, as soon as it may append. Those behind have their
// usual fate again.
func (c *Cluster) Doom(id replog.NodeID, fates ...Fate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.members[id]
	m.fates = append(m.fates, fates...)
}

// Release writes the entries that are late, and lets the answers go that are delayed.
func (c *Cluster) Release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, entry := range c.late {
		c.write(entry)
	}
	c.late = nil
	c.released++
	c.ring()
}
