package memory

import (
	"fmt"
	"sync"

	"github.com/partita-go/partita/storage/replog"
)

// Cluster is a log that several nodes keep. All its methods may be called concurrently.
type Cluster struct {
	shard replog.Shard

	mu sync.Mutex
	// bell is closed, and made anew, whenever something has changed.
	bell    chan struct{}
	members map[replog.NodeID]*member
	// entries are what a majority has, in order.
	entries []entry
	// leader is nil if nobody leads; term counts the leaders.
	leader *member
	term   uint64
	// late are entries on their way, released counts the calls of Release.
	late     [][]byte
	released int
}

// entry is one place of the log. The engine's index of it is one more than its place in the list.
type entry struct {
	// bytes are nil where a leader begins: the term is its.
	bytes []byte
	term  uint64
}

// member is a node, whether it runs or not.
type member struct {
	id replog.NodeID
	// cut says that it hears and is heard by nobody, held that it applies nothing.
	cut, held bool
	// trimmed is the index up to which it has forgotten the entries.
	trimmed uint64
	fates   []Fate
	// log is nil while it does not run.
	log *Log
}

// NewCluster is an empty log of the nodes given. None runs, and none leads.
func NewCluster(shard replog.Shard, nodes ...replog.NodeID) *Cluster {
	c := &Cluster{shard: shard, bell: make(chan struct{}), members: make(map[replog.NodeID]*member)}
	for _, id := range nodes {
		c.members[id] = &member{id: id}
	}
	return c
}

// Log returns a node's side of the log. It is to be started; the one that the node had before must be closed by then.
func (c *Cluster) Log(id replog.NodeID) *Log {
	return &Log{c: c, m: c.members[id], changed: make(chan struct{}), ended: make(chan struct{})}
}

// Lead makes a node the leader. It begins when it has applied what is there. Whoever led before is told at once, unless
// it is cut off. It is an error if the node does not run, is cut off, or too few others run that are not.
func (c *Cluster) Lead(id replog.NodeID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lead(c.members[id])
}

func (c *Cluster) lead(m *member) error {
	if m == nil || m.log == nil || m.cut || !c.quorum() {
		return fmt.Errorf("node cannot lead: %w", errNoQuorum)
	}
	c.leader = m
	c.term++
	c.entries = append(c.entries, entry{term: c.term})
	c.tell()
	c.ring()
	return nil
}

// Cut parts a node from all others, in both directions. If it led, nobody does, and it does not know.
func (c *Cluster) Cut(id replog.NodeID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.members[id]
	m.cut = true
	if c.leader == m {
		c.leader = nil
		c.tell()
	}
	c.ring()
}

// Heal connects a node again. It learns who leads, and gets what it has missed.
func (c *Cluster) Heal(id replog.NodeID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members[id].cut = false
	c.tell()
	c.ring()
}

// Hold lets a node apply nothing more until [Cluster.Resume]. It takes part in all else.
func (c *Cluster) Hold(id replog.NodeID) { c.setHeld(id, true) }

// Resume ends what [Cluster.Hold] began.
func (c *Cluster) Resume(id replog.NodeID) { c.setHeld(id, false) }

func (c *Cluster) setHeld(id replog.NodeID, held bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members[id].held = held
	c.ring()
}

// quorum reports whether a majority of the nodes runs and is connected. The caller holds the lock.
func (c *Cluster) quorum() bool {
	n := 0
	for _, m := range c.members {
		if m.log != nil && !m.cut {
			n++
		}
	}
	return n > len(c.members)/2
}

// write adds an entry to the log, and returns its index. The caller holds the lock.
func (c *Cluster) write(bytes []byte) uint64 {
	c.entries = append(c.entries, entry{bytes: bytes})
	return uint64(len(c.entries))
}

// tell lets the nodes that are connected know who leads. The caller holds the lock.
func (c *Cluster) tell() {
	for _, m := range c.members {
		if m.log == nil || m.cut {
			continue
		}
		now := m.log.state
		now.Leader = ""
		if c.leader != nil {
			now.Leader = c.leader.id
		}
		if c.leader != m || now.Term != c.term {
			now.Term = 0
		}
		m.log.become(now)
	}
}

// ring wakes all who wait. The caller holds the lock.
func (c *Cluster) ring() {
	close(c.bell)
	c.bell = make(chan struct{})
}
