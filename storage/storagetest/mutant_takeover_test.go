package storagetest

import (
	"context"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

func takeoverBugs() []bug {
	check := "TakenOverNumbersAreProjected"
	stored := func(spoil func(*messages.Event)) func(*mutant, context.Context, storage.Batch) error {
		return func(m *mutant, ctx context.Context, b storage.Batch) error {
			if err := m.Memory.Append(ctx, b); err != nil {
				return err
			}
			m.disk.mu.Lock()
			defer m.disk.mu.Unlock()
			log := m.disk.partitions[b.Partition].log
			for _, e := range log[len(log)-len(b.Events):] {
				spoil(e)
			}
			return nil
		}
	}
	return []bug{
		{name: "moves are not stored", by: []string{check, byModel}, append: stored(func(e *messages.Event) { e.Moves = nil })},
		{name: "moves are stored as numbers given", by: []string{check, byModel}, append: stored(func(e *messages.Event) {
			e.Numbers, e.Moves = slices.Concat(e.Numbers, e.Moves), nil
		})},
		{name: "what was brought along is forgotten", by: []string{check, byModel}, append: stored(func(e *messages.Event) { e.Brought = 0 })},
		{name: "the tail knows no moves", by: []string{check, byModel},
			tail: func(m *mutant, ctx context.Context, p messages.PartitionID, from messages.PLogOffset, limit int) ([]messages.Numbering, error) {
				tail, err := m.Memory.Tail(ctx, p, from, limit)
				for i := range tail {
					e := m.disk.partitions[p].log[tail[i].PLogOffset-1]
					tail[i].Numbers = tail[i].Numbers[:len(tail[i].Numbers)-len(e.Moves)]
				}
				return tail, err
			}},
		swallow("Append takes wrong moves", storage.ErrInvalidEvent, "AppendRefusesWrongMoves"),
	}
}
