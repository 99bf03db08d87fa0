package raftlog

import (
	"sync"

	"github.com/hashicorp/raft"

	"github.com/partita-go/partita/storage"
)

// metaData is the WAL's meta data: raft's terms and votes, and whom this node has met. The WAL closes it without a lock, although
// somebody may come later: a heartbeat, which raft takes on the goroutine of its stream, or a stream that is opened. They get
// ErrClosed.
type metaData struct {
	below raft.StableStore

	// mu is held by whoever uses it. close waits for them.
	mu     sync.RWMutex
	closed bool
}

func (m *metaData) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
}

func (m *metaData) use(do func() error) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed {
		return storage.ErrClosed
	}
	return do()
}

// Get implements [raft.StableStore].
func (m *metaData) Get(key []byte) (value []byte, err error) {
	err = m.use(func() (err error) {
		value, err = m.below.Get(key)
		return err
	})
	return value, err
}

// GetUint64 implements [raft.StableStore].
func (m *metaData) GetUint64(key []byte) (value uint64, err error) {
	err = m.use(func() (err error) {
		value, err = m.below.GetUint64(key)
		return err
	})
	return value, err
}

// Set implements [raft.StableStore].
func (m *metaData) Set(key, value []byte) error {
	return m.use(func() error { return m.below.Set(key, value) })
}

// SetUint64 implements [raft.StableStore].
func (m *metaData) SetUint64(key []byte, value uint64) error {
	return m.use(func() error { return m.below.SetUint64(key, value) })
}
