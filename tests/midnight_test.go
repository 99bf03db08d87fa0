package tests

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita/actors/actorstest"
	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
)

// localDate is a date on which the clocks of a zone change, with what is known of it from elsewhere than from the
// zone database that the program has.
type localDate struct {
	zone string
	date calendar.Date
	// begin and end are its first instant, and the first one of the next date. changed is when the clocks change.
	begin, changed, end time.Time
	before, after       calendar.Date
}

// utc is an instant of 2026.
func utc(month time.Month, day, hour int) time.Time {
	return time.Date(2026, month, day, hour, 0, 0, 0, time.UTC)
}

var localDates = map[string]localDate{
	"23 hours": {
		"Europe/Zurich", 2026_03_29,
		utc(3, 28, 23), utc(3, 29, 1), utc(3, 29, 22), 2026_03_28, 2026_03_30,
	},
	"25 hours": {
		"Europe/Zurich", 2026_10_25,
		utc(10, 24, 22), utc(10, 25, 1), utc(10, 25, 23), 2026_10_24, 2026_10_26,
	},
	"no midnight": {
		"Africa/Cairo", 2026_04_24,
		utc(4, 23, 22), utc(4, 23, 22), utc(4, 24, 21), 2026_04_23, 2026_04_25,
	},
}

const (
	// appendsPerSecond is how many appends an emulated second has: time passes by them.
	appendsPerSecond = 5000
	// midnightCallers append at the same time, to so many workspaces on so many partitions.
	midnightCallers    = 256
	midnightWorkspaces = 24
	midnightPartitions = 8
	// around is how long the load goes on before an instant, and after it.
	around = 250 * time.Millisecond
	// stepBack is by how much the clock is set back once it has shown so much of a new date.
	stepBack = 2 * time.Second
	shown    = 100 * time.Millisecond
)

// midnightShop has sequences that restart each day and each week, beside one that never does.
func midnightShop(zone string) messages.Descriptor {
	d := shop(midnightPartitions)
	restarts := map[messages.SeqID]messages.Restart{
		seqReceipt:  {Rule: calendar.Rule{Every: calendar.Day}, Zone: zone},
		seqDelivery: {Rule: calendar.Rule{Every: calendar.Week}, Zone: zone, Keep: 1, Ahead: -1},
	}
	sequences := d.Kinds[0].Sequences
	for i := range sequences {
		sequences[i].Initial, sequences[i].Restart = 1, restarts[sequences[i].ID]
	}
	return d
}

// TestMidnight: many callers append in all ways while a date begins, while the clocks change and while it ends. Soon
// after each midnight the clock is set back to before it. There is one restart per local date. It goes on so
// after a crash, also when state.db is rebuilt, and a replay asks no zone database.
func TestMidnight(t *testing.T) {
	for name, date := range localDates {
		t.Run(name, func(t *testing.T) {
			m := newMidnight(t, date)
			d := m.run(t)
			m.pass(t, d, date.begin)
			d.crash(t)
			m.deleteState(t)
			d = m.run(t)
			if date.changed != date.begin {
				m.load(t, d, date.changed, 0)
			}
			m.pass(t, d, date.end)
			last := m.checkAll(t, d.store)
			d.crash(t)
			m.replayedUnderOtherZones(t)
			m.deleteState(t)
			d = m.run(t)
			m.nextDate(t, d, last)
			d.stop(t)
		})
	}
}

// midnight is a site on a date.
type midnight struct {
	*site
	localDate
	// own are the dates of workspaces that have moved to a zone of their own.
	own   map[messages.WSID]localDate
	rules map[messages.SeqID]messages.Restart

	mu    sync.Mutex
	clock *actorstest.FakeClock
	// stepAt is when the clock is set back, until when it goes on; zero: it is not, any more.
	stepAt, until time.Time

	answers []midnightAnswer
}

func newMidnight(t *testing.T, date localDate) *midnight {
	t.Helper()
	// Nobody waits for a flush: a caller that is told to come again would come without end while no time passes.
	m := &midnight{site: newSite(t, midnightPartitions, partition.Settings{BusyLimit: 1 << 20, BusyEvents: 1 << 20}), localDate: date}
	m.app.Descriptor = midnightShop(date.zone)
	m.bolt = bolt.Options{TailEvents: 1 << 20}
	m.clock = actorstest.NewFakeClock(date.begin.Add(-time.Hour))
	m.options.Clock, m.options.Observer = m.clock, nil
	m.rules = make(map[messages.SeqID]messages.Restart)
	for _, s := range m.app.Kinds[0].Sequences {
		m.rules[s.ID] = s.Restart
	}
	return m
}

// pass passes a midnight. Soon after it the clock is set back, and passes it again.
func (m *midnight) pass(t *testing.T, d *deployment, at time.Time) {
	t.Helper()
	m.load(t, d, at, stepBack)
	// Until the clock shows again what it was set back from, what is appended has the last time before that.
	least := int(stepBack.Seconds() * appendsPerSecond)
	if n := m.countAt(t, d.store, at, at.Add(shown)); n < least {
		t.Errorf("got %d events from midnight until the clock was set back, want at least %d", n, least)
	}
}

// load appends around an instant. If back is not zero, the clock is set back soon after the instant.
func (m *midnight) load(t *testing.T, d *deployment, at time.Time, back time.Duration) {
	t.Helper()
	m.clock.Set(at.Add(-around))
	m.until, m.stepAt = at.Add(around), time.Time{}
	if back > 0 {
		m.stepAt = at.Add(shown)
	}
	ctx := limit(t)
	commands := must(d.app.SpawnCommandProcessor(func(ctx context.Context, c *partition.CommandContext) error {
		_, err := c.Next(ctx, seqReceipt)
		return err
	}))(t)
	drafts := must(d.app.SpawnAppendProcessor(func(_ context.Context, c *partition.DraftContext) error {
		c.Want(seqReceipt)
		c.Want(seqDelivery)
		return nil
	}))(t)
	var callers sync.WaitGroup
	for i := range midnightCallers {
		callers.Go(func() {
			c := &midnightCaller{midnight: m, app: d.app, random: rand.New(rand.NewPCG(uint64(i), uint64(at.Unix()))), commands: commands, drafts: drafts}
			err := c.callUntilOver(ctx)
			m.mu.Lock()
			defer m.mu.Unlock()
			m.answers = append(m.answers, c.answers...)
			if err != nil {
				t.Errorf("caller %d: %v", i, err)
			}
		})
	}
	callers.Wait()
}

// tick lets the time of one append pass, and reports whether that is the last one.
func (m *midnight) tick() (over bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clock.Advance(time.Second / appendsPerSecond)
	now := m.clock.Now()
	if !m.stepAt.IsZero() && !now.Before(m.stepAt) {
		m.stepAt = time.Time{}
		m.clock.Set(now.Add(-stepBack))
	}
	return !now.Before(m.until)
}

// nextDate: the last date goes on in each workspace behind its last number, and the next one begins anew.
func (m *midnight) nextDate(t *testing.T, d *deployment, last map[workspacePeriod]messages.Number) {
	t.Helper()
	take := func(want func(ws messages.WSID) messages.SequenceNumber) {
		t.Helper()
		for ws := range messages.WSID(midnightWorkspaces) {
			if got := d.commit(t, ws, seqReceipt).Numbers()[0]; got != want(ws) {
				t.Errorf("workspace %d: got %v, want %v", ws, got, want(ws))
			}
		}
	}
	take(func(ws messages.WSID) messages.SequenceNumber {
		n := messages.SequenceNumber{Seq: seqReceipt, Period: m.after}
		n.Number = last[workspacePeriod{ws, n.SequencePeriod()}] + 1
		return n
	})
	m.clock.Set(m.clock.Now().Add(24 * time.Hour))
	next := calendar.Rule{Every: calendar.Day}.Add(m.after, 1)
	take(func(messages.WSID) messages.SequenceNumber {
		return messages.SequenceNumber{Seq: seqReceipt, Period: next, Number: 1}
	})
}

// countAt counts the events of all partitions that were registered from one time to another one.
func (m *midnight) countAt(t *testing.T, store storage.Store, from, to time.Time) (n int) {
	t.Helper()
	for p := range messages.PartitionID(midnightPartitions) {
		for e, err := range store.PLog(limit(t), p, 1) {
			check(t, err)
			if at := e.RegisteredAt.Time(); !at.Before(from) && !at.After(to) {
				n++
			}
		}
	}
	return n
}
