package raftlog

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/hashicorp/raft"
)

// guard stands between raft and the disk. After one write has failed it refuses all: the WAL below would go on, and nobody
// knows what of the failed one is there, or what the operating system has dropped. A read that fails ends it too.
//
// Raft panics where it cannot go on without the disk. There the goroutine that asks, one of raft's, ends: its deferred calls
// answer whom it owes an answer, and do not give away what is not stored.
type guard struct {
	raft.LogStore
	stable raft.StableStore
	// fail is told the first error.
	fail func(error)

	mu  sync.Mutex
	err error
}

// wrap puts the guard around the files, and what tests have between.
func (g *guard) wrap(o Options, below *files) {
	g.LogStore, g.stable = below.wal, below.meta
	if o.store != nil {
		g.LogStore = o.store(below.wal)
	}
	if o.stable != nil {
		g.stable = o.stable(below.meta)
	}
}

// broken returns the first error, nil if there was none.
func (g *guard) broken() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// write does what writes, unless something has failed.
func (g *guard) write(what string, do func() error) error {
	if err := g.broken(); err != nil {
		return err
	}
	if err := do(); err != nil {
		return g.note(what, err)
	}
	return nil
}

// note remembers an error, and stops the node.
func (g *guard) note(what string, err error) error {
	err = fmt.Errorf("%w: %s: %w", ErrDisk, what, err)
	g.mu.Lock()
	if g.err == nil {
		g.err = err
	}
	g.mu.Unlock()
	g.fail(err)
	return err
}

// StoreLog implements [raft.LogStore].
func (g *guard) StoreLog(e *raft.Log) error { return g.StoreLogs([]*raft.Log{e}) }

// StoreLogs implements [raft.LogStore].
func (g *guard) StoreLogs(es []*raft.Log) error {
	return g.write("store entries", func() error { return g.LogStore.StoreLogs(es) })
}

// DeleteRange implements [raft.LogStore].
func (g *guard) DeleteRange(from, to uint64) error {
	return g.write("delete entries", func() error { return g.LogStore.DeleteRange(from, to) })
}

// GetLog implements [raft.LogStore].
func (g *guard) GetLog(index uint64, e *raft.Log) error {
	err := g.LogStore.GetLog(index, e)
	switch {
	case err == nil:
		return nil
	case mustApply():
		_ = g.note("read an entry that is committed", fmt.Errorf("entry %d: %w", index, err))
		runtime.Goexit()
	case !errors.Is(err, raft.ErrLogNotFound):
		return g.note("read entries", fmt.Errorf("entry %d: %w", index, err))
	}
	return err
}

// mustApply says whether raft reads an entry to apply it. It panics if it cannot. Others who read can do without.
func mustApply() bool {
	pcs := make([]uintptr, 16)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, "(*Raft).processLogs") {
			return true
		}
		if !more {
			return false
		}
	}
}

// IsMonotonic implements [raft.MonotonicLogStore]: the WAL takes no gaps.
func (g *guard) IsMonotonic() bool { return true }

// Set implements [raft.StableStore].
func (g *guard) Set(key, value []byte) error {
	return g.must(func() error { return g.stable.Set(key, value) })
}

// SetUint64 implements [raft.StableStore].
func (g *guard) SetUint64(key []byte, value uint64) error {
	return g.must(func() error { return g.stable.SetUint64(key, value) })
}

// must stores a term or a vote, or ends the goroutine.
func (g *guard) must(do func() error) error {
	if err := g.write("store a term or a vote", do); err != nil {
		runtime.Goexit()
	}
	return nil
}

// Get implements [raft.StableStore].
func (g *guard) Get(key []byte) ([]byte, error) { return g.stable.Get(key) }

// GetUint64 implements [raft.StableStore].
func (g *guard) GetUint64(key []byte) (uint64, error) { return g.stable.GetUint64(key) }
