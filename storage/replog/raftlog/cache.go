package raftlog

import (
	"sync"

	"github.com/hashicorp/raft"
)

// cache has the last entries of the log in memory, so many and of so many bytes: raft's own counts them only. Raft reads
// them to apply them, and for nodes that follow closely.
type cache struct {
	*guard
	backlog *backlog

	mu sync.RWMutex
	// entries stand one behind the other.
	entries []*raft.Log
	bytes   int
}

// GetLog implements [raft.LogStore].
func (c *cache) GetLog(index uint64, e *raft.Log) error {
	c.mu.RLock()
	if n := len(c.entries); n > 0 && index >= c.entries[0].Index && index-c.entries[0].Index < uint64(n) {
		*e = *c.entries[index-c.entries[0].Index]
		c.mu.RUnlock()
		return nil
	}
	c.mu.RUnlock()
	return c.guard.GetLog(index, e)
}

// StoreLog implements [raft.LogStore].
func (c *cache) StoreLog(e *raft.Log) error { return c.StoreLogs([]*raft.Log{e}) }

// StoreLogs implements [raft.LogStore].
func (c *cache) StoreLogs(es []*raft.Log) error {
	if err := c.guard.StoreLogs(es); err != nil {
		return err
	}
	c.backlog.stored(es)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range es {
		if n := len(c.entries); n > 0 && e.Index != c.entries[n-1].Index+1 {
			c.forget()
		}
		c.entries = append(c.entries, e)
		c.bytes += len(e.Data)
	}
	first := 0
	for ; len(c.entries)-first > cachedEntries || c.bytes > cachedBytes; first++ {
		c.bytes -= len(c.entries[first].Data)
		c.entries[first] = nil
	}
	c.entries = c.entries[first:]
	return nil
}

// DeleteRange implements [raft.LogStore].
func (c *cache) DeleteRange(from, to uint64) error {
	c.mu.Lock()
	c.forget()
	c.mu.Unlock()
	c.backlog.deleted(from, to)
	return c.guard.DeleteRange(from, to)
}

func (c *cache) forget() { c.entries, c.bytes = nil, 0 }
