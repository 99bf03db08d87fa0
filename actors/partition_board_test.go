package actors_test

import (
	"context"
	"sync"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// board keeps every status that was published.
type board struct {
	mu      sync.Mutex
	all     map[messages.PartitionID][]messages.PartitionStatus
	seen    map[messages.PartitionID]int
	changed chan struct{}
}

func newBoard() *board {
	return &board{
		all:     make(map[messages.PartitionID][]messages.PartitionStatus),
		seen:    make(map[messages.PartitionID]int),
		changed: make(chan struct{}),
	}
}

func (b *board) put(s messages.PartitionStatus) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all[s.Partition] = append(b.all[s.Partition], s)
	close(b.changed)
	b.changed = make(chan struct{})
}

// await returns the next status, not seen by an earlier await, for which holds.
func (b *board) await(ctx context.Context, p messages.PartitionID, holds func(messages.PartitionStatus) bool) (messages.PartitionStatus, error) {
	for {
		b.mu.Lock()
		changed := b.changed
		for i := b.seen[p]; i < len(b.all[p]); i++ {
			if s := b.all[p][i]; holds(s) {
				b.seen[p] = i + 1
				b.mu.Unlock()
				return s, nil
			}
		}
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return messages.PartitionStatus{}, ctx.Err()
		}
	}
}

// history returns the states that a partition has gone through, each once in a row.
func (b *board) history(p messages.PartitionID) []messages.PartitionState {
	b.mu.Lock()
	defer b.mu.Unlock()
	var states []messages.PartitionState
	for _, s := range b.all[p] {
		if len(states) == 0 || states[len(states)-1] != s.State {
			states = append(states, s.State)
		}
	}
	return states
}

// deaf is a store whose calls do not end when their context does.
type deaf struct{ *storagetest.Faulty }

func hardOfHearing(f *storagetest.Faulty) actors.PartitionStore { return deaf{f} }

func (d deaf) TakeEpoch(ctx context.Context, p messages.PartitionID) (storage.Register, error) {
	return d.Faulty.TakeEpoch(context.WithoutCancel(ctx), p)
}

func (d deaf) Tail(ctx context.Context, p messages.PartitionID, from messages.PLogOffset, limit int) ([]messages.Numbering, error) {
	return d.Faulty.Tail(context.WithoutCancel(ctx), p, from, limit)
}

func (d deaf) Numbers(ctx context.Context, ws messages.WSID, periods ...messages.SequencePeriod) (storage.WorkspaceNumbers, error) {
	return d.Faulty.Numbers(context.WithoutCancel(ctx), ws, periods...)
}

func (d deaf) Flush(ctx context.Context, f storage.Flush) error {
	return d.Faulty.Flush(context.WithoutCancel(ctx), f)
}
