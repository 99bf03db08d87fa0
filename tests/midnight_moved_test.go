package tests

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
)

// The workspaces that move from Zurich. At 22:00 UTC of 10 June, when the day in Zurich ends, it is afternoon in New York and
// the next morning in Auckland.
var movedDates = map[messages.WSID]localDate{
	0: {
		"America/New_York", 2026_06_11,
		utc(6, 10, 22), time.Time{}, utc(6, 12, 4), 2026_06_10, 2026_06_12,
	},
	1: {
		"Pacific/Auckland", 2026_06_11,
		utc(6, 10, 22), time.Time{}, utc(6, 11, 12), 2026_06_10, 2026_06_12,
	},
}

// TestMidnightMoved is TestMidnight with two workspaces that move at noon, in the middle of the load: until the day in Zurich
// ends they go by that, and then by their own. At each midnight of each zone the clock is set back. It goes on so
// after a crash, also when state.db is rebuilt, and a replay asks no zone database.
func TestMidnightMoved(t *testing.T) {
	m := newMidnight(t, localDate{
		"Europe/Zurich", 2026_06_11,
		utc(6, 10, 22), time.Time{}, utc(6, 11, 22), 2026_06_10, 2026_06_12,
	})
	m.own = movedDates
	m.clock.Set(utc(6, 10, 12).Add(-around))
	d := m.run(t)
	m.move(t, d)
	m.pass(t, d, m.begin)
	d.crash(t)
	m.deleteState(t)
	d = m.run(t)
	m.pass(t, d, m.own[1].end)
	m.pass(t, d, m.end)
	d.crash(t)
	d = m.run(t)
	m.pass(t, d, m.own[0].end)
	last := m.checkAll(t, d.store)
	for ws, own := range m.own {
		numbers := must(d.store.Numbers(limit(t), ws))(t)
		if zone, moved := numbers.Zones.Last(); len(numbers.Zones) != 1 || !moved || zone.Zone.String() != own.zone {
			t.Errorf("workspace %d: got zones %v, want %s", ws, numbers.Zones, own.zone)
		}
	}
	d.crash(t)
	m.replayedUnderOtherZones(t)
	m.deleteState(t)
	d = m.run(t)
	m.nextDate(t, d, last)
	d.stop(t)
}

// move moves the workspaces at noon, with numbers in the same events, while the others append.
func (m *midnight) move(t *testing.T, d *deployment) {
	t.Helper()
	var movers sync.WaitGroup
	for ws, own := range m.own {
		movers.Go(func() {
			c := &midnightCaller{midnight: m, app: d.app, random: rand.New(rand.NewPCG(uint64(ws), 0))}
			first, second := c.draft(), c.draft()
			second.Zone = own.zone
			err := c.append(limit(t), ws, first, second, c.draft())
			m.mu.Lock()
			defer m.mu.Unlock()
			m.answers = append(m.answers, c.answers...)
			if err != nil {
				t.Errorf("move workspace %d: %v", ws, err)
			}
		})
	}
	m.load(t, d, utc(6, 10, 12), 0)
	movers.Wait()
}
