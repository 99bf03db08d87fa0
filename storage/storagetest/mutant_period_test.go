package storagetest

import (
	"context"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// afterFlush returns a hook that does something to the workspaces of each flush that is accepted.
func afterFlush(spoil func(*memWorkspace)) func(*mutant, context.Context, storage.Flush) error {
	return func(m *mutant, ctx context.Context, f storage.Flush) error {
		err := m.Memory.Flush(ctx, f)
		m.disk.mu.Lock()
		defer m.disk.mu.Unlock()
		for _, w := range f.Numbers {
			if ws := m.disk.workspaces[w.Workspace]; err == nil && ws != nil {
				ws.numbers = slices.Clone(ws.numbers)
				spoil(ws)
			}
		}
		return err
	}
}

func periodBugs() []bug {
	closing, staying, older := "PeriodsAreClosedByTheFlush", "ClosedPeriodsStayClosed", "OlderPeriodsAreFound"
	all := "NumbersOfPeriods"
	numbers := func(spoil func(*storage.WorkspaceNumbers)) func(*mutant, context.Context, messages.WSID, []messages.SequencePeriod) (storage.WorkspaceNumbers, error) {
		return func(m *mutant, ctx context.Context, ws messages.WSID, periods []messages.SequencePeriod) (storage.WorkspaceNumbers, error) {
			n, err := m.Memory.Numbers(ctx, ws, periods...)
			spoil(&n)
			return n, err
		}
	}
	return []bug{
		{name: "a flush forgets the oldest period", by: []string{all, older, byModel}, flush: afterFlush(func(ws *memWorkspace) {
			if i := slices.IndexFunc(ws.numbers, func(n messages.SequenceNumber) bool { return n.Period != 0 }); i >= 0 {
				ws.numbers = slices.Delete(ws.numbers, i, i+1)
			}
		})},
		{name: "numbers are merged across periods", by: []string{all, older, closing, byModel}, flush: afterFlush(func(ws *memWorkspace) {
			for i := range ws.numbers {
				for _, n := range ws.numbers {
					if n.Seq == ws.numbers[i].Seq {
						ws.numbers[i].Number = max(ws.numbers[i].Number, n.Number)
					}
				}
			}
		})},
		{name: "the first number of a period is lost", by: []string{all, byModel}, flush: afterFlush(func(ws *memWorkspace) {
			ws.numbers = slices.DeleteFunc(ws.numbers, func(n messages.SequenceNumber) bool { return n.Seq == SeqReceipt && n.Number == 1 })
		})},
		{name: "nobody says what is closed", by: []string{closing, staying, byModel},
			numbers: numbers(func(n *storage.WorkspaceNumbers) { n.Closed = nil })},
		{name: "what is closed is lost at reopening", by: []string{closing}, reopened: func(d *disk) {
			for _, ws := range d.workspaces {
				ws.closed = nil
			}
		}},
		{name: "a flush opens closed periods", by: []string{closing, staying, byModel},
			flush: func(m *mutant, ctx context.Context, f storage.Flush) error {
				m.disk.mu.Lock()
				for _, ws := range m.disk.workspaces {
					ws.closed = nil
				}
				m.disk.mu.Unlock()
				return m.Memory.Flush(ctx, f)
			}},
		{name: "periods are closed, but keep their numbers", by: []string{closing},
			flush: func(m *mutant, ctx context.Context, f storage.Flush) error {
				before := make(map[messages.WSID][]messages.SequenceNumber)
				m.disk.mu.Lock()
				for id, ws := range m.disk.workspaces {
					before[id] = ws.numbers
				}
				m.disk.mu.Unlock()
				return afterFlush(func(ws *memWorkspace) {
					for _, n := range before[ws.wlog[0].Workspace] {
						ws.numbers = raise(ws.numbers, n)
					}
				})(m, ctx, f)
			}},
		{name: "older periods are not found", by: []string{older},
			numbers: func(m *mutant, ctx context.Context, ws messages.WSID, _ []messages.SequencePeriod) (storage.WorkspaceNumbers, error) {
				return m.Memory.Numbers(ctx, ws)
			}},
		{name: "nobody says which have older periods", by: []string{older},
			numbers: numbers(func(n *storage.WorkspaceNumbers) { n.Older = nil })},
		{name: "a flush begins the time zones anew", by: []string{"ZonesOfWorkspaces", byModel},
			flush: func(m *mutant, ctx context.Context, f storage.Flush) error {
				m.disk.mu.Lock()
				for _, w := range f.Numbers {
					if ws := m.disk.workspaces[w.Workspace]; ws != nil {
						ws.zones = nil
					}
				}
				m.disk.mu.Unlock()
				return m.Memory.Flush(ctx, f)
			}},
		{name: "only the last time zone is kept", by: []string{"ZonesOfWorkspaces", byModel}, flush: afterFlush(func(ws *memWorkspace) {
			ws.zones = ws.zones[max(0, len(ws.zones)-1):]
		})},
		{name: "time zones are lost at reopening", by: []string{"ZonesOfWorkspaces"}, reopened: func(d *disk) {
			for _, ws := range d.workspaces {
				ws.zones = nil
			}
		}},
		swallow("Append takes wrong periods", storage.ErrInvalidEvent, "AppendRefusesWrongPeriods"),
		swallowFlush("Flush takes wrong numbers of periods", storage.ErrNumbers, "FlushChecksNumbersOfPeriods"),
	}
}
