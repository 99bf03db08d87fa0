package partitiontest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// The faults below are those that programs meet. A fault says how often it has struck (Injected), and ends by its
// Heal, by [App.Heal], by a Crash or a Restart. Other faults can be planted in App.Store.

// Heal ends all faults, and releases whoever is held.
func (a *App) Heal() {
	a.Store.Heal()
	a.memory.arm(false, Lost)
	for _, g := range a.gates {
		g.Release()
	}
	a.gates = nil
}

// FailFlushes lets the next n flushes fail: those of the projections, which follow the log. What is appended counts all
// the same, and the partition is Alarming. A flush is tried again when the clock has been moved by Settings.RetryDelay.
func (a *App) FailFlushes(n int) *storagetest.Planted {
	return a.plant(storagetest.OpFlush, storagetest.Fail(errInjected), n)
}

// Full lets the disk be full until it is healed: whatever would be written is refused with ErrFull of package storage.
func (a *App) Full() *storagetest.Planted {
	return a.plant(storagetest.OpAppend, storagetest.Full(), 0)
}

// Busy lets the next n writes be refused because too much is not flushed yet. An append is answered with ErrBusy, the
// write of an interactive transaction with ErrTailFull of package storage. Appends that wait at the same time can be
// one write.
func (a *App) Busy(n int) *storagetest.Planted {
	return a.plant(storagetest.OpAppend, storagetest.Fail(fmt.Errorf("%w: %w", storage.ErrTailFull, errInjected)), n)
}

// LoseAnswer lets the store do the next write and not say so. The partition looks into its log, so that the caller
// learns the truth: use [App.CrashInNextWrite] for an outcome that stays unknown.
func (a *App) LoseAnswer() *storagetest.Planted {
	return a.plant(storagetest.OpAppend, storagetest.UnknownDone(), 1)
}

// LoseWrite lets the store not do the next write and not say so.
func (a *App) LoseWrite() *storagetest.Planted {
	return a.plant(storagetest.OpAppend, storagetest.UnknownNotDone(), 1)
}

func (a *App) plant(op storagetest.Op, do storagetest.Effect, times int) *storagetest.Planted {
	return a.Store.Plant(storagetest.Fault{Op: op, Do: do, Times: times})
}

// HoldWrites holds all writes before they are done. The gate says when one has arrived, and lets them go.
func (a *App) HoldWrites() *storagetest.Gate { return a.hold(storagetest.OpAppend) }

// HoldFlushes holds all flushes before they are done: with a low Settings.BusyEvents the partition gets busy.
func (a *App) HoldFlushes() *storagetest.Gate { return a.hold(storagetest.OpFlush) }

func (a *App) hold(op storagetest.Op) *storagetest.Gate {
	g := storagetest.NewGate()
	a.gates = append(a.gates, g)
	a.plant(op, storagetest.Hold(g), 0)
	return g
}

// Fate is what a crash makes of the write that is under way.
type Fate uint8

const (
	// Lost: nothing of it is there.
	Lost Fate = iota
	// Written: it is there, and nobody was told.
	Written
)

func (f Fate) String() string {
	if f == Written {
		return "written"
	}
	return "lost"
}

// CrashInNextWrite lets the process crash in the middle of the next write. Its callers get ErrOutcomeUnknown, as the
// client of a server would that is gone. All else fails from then on. [App.Restart] starts the application again.
func (a *App) CrashInNextWrite(fate Fate) { a.memory.arm(true, fate) }

// crashing is a store in memory that can end in the middle of a write.
type crashing struct {
	*storagetest.Memory

	mu    sync.Mutex
	armed bool
	fate  Fate
	over  bool
}

func (c *crashing) arm(armed bool, fate Fate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed, c.fate = armed, fate
}

func (c *crashing) crashed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

// strikes reports whether this write is the one.
func (c *crashing) strikes(b *storage.Batch) (fate Fate, now bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.armed || len(b.Events) == 0 {
		return 0, false
	}
	c.armed, c.over = false, true
	return c.fate, true
}

// Append implements [storage.Store].
func (c *crashing) Append(ctx context.Context, b storage.Batch) error {
	fate, now := c.strikes(&b)
	if !now {
		return c.Memory.Append(ctx, b)
	}
	err := errInjected
	if fate == Written {
		err = c.Memory.Append(ctx, b)
	}
	_ = c.Close(ctx) // it has nothing under way
	return errors.Join(messages.ErrOutcomeUnknown, err)
}
