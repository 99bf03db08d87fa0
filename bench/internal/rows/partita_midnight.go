package rows

import (
	"context"
	"time"

	"github.com/partita-go/partita/bench/internal/measure"
	"github.com/partita-go/partita/bench/internal/report"
	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// midnightZone is the time zone of the daily sequence.
const midnightZone = "Europe/Zurich"

// dayClock is a clock with a midnight of midnightZone each dayLength. Time passes over each midnight as it does on the
// machine. Half a dayLength after it the clock is set forward, to as long before the next one.
type dayClock struct {
	start time.Time
	loc   *time.Location
}

func newDayClock() (*dayClock, error) {
	loc, err := time.LoadLocation(midnightZone)
	return &dayClock{start: time.Now(), loc: loc}, err
}

// Now implements [partition.Clock].
func (c *dayClock) Now() time.Time { return dayAt(time.Since(c.start), c.loc) }

// AfterFunc implements [partition.Clock]: whoever waits, waits as long as on the machine.
func (c *dayClock) AfterFunc(d time.Duration, f func()) interface{ Stop() bool } {
	return time.AfterFunc(d, f)
}

// dayAt is what a dayClock shows so long after its start.
func dayAt(elapsed time.Duration, loc *time.Location) time.Time {
	midnight := (elapsed + dayLength/2).Truncate(dayLength)
	return time.Date(2026, 1, 1+int(midnight/dayLength), 0, 0, 0, 0, loc).Add(elapsed - midnight)
}

// partitaMidnight is a row of partita with a sequence that restarts each day, in one workspace. What is rolled back is a
// transaction that takes a number and is cancelled.
type partitaMidnight struct {
	*partita
	rollbacks rollbacks
}

func newPartitaMidnight(s measure.Settings) measure.Row {
	return &partitaMidnight{newPartita(shape{partitions: 1, workspaces: 1, daily: true}, s), newRollbacks(s.Callers)}
}

// noDeadline is a context without its deadline. A deadline is handed on as a time of the partition's clock, and
// passes when that is set forward to the next day.
type noDeadline struct{ context.Context }

func (noDeadline) Deadline() (time.Time, bool) { return time.Time{}, false }

func (p *partitaMidnight) Do(ctx context.Context, caller int) error {
	ctx = noDeadline{ctx}
	for p.rollbacks.next(caller) {
		if err := whileBusy(ctx, func() error { return p.rollBack(ctx) }); err != nil {
			return err
		}
	}
	return p.partita.Do(ctx, caller)
}

func (p *partitaMidnight) rollBack(ctx context.Context) error {
	sequencer, err := p.app.SequencerOf(0)
	if err != nil {
		return err
	}
	tx, err := sequencer.StartWaiting(ctx, kindTenant, 0)
	if err != nil {
		return err
	}
	if _, err := tx.Next(ctx, seqOrder); err != nil {
		return err
	}
	return tx.Cancel(ctx)
}

// Numbering implements [measure.Numbered].
func (p *partitaMidnight) Numbering(ctx context.Context) (report.Numbering, error) {
	counts := make(days)
	for e, err := range p.store.WLog(ctx, 0, 1) {
		if err != nil {
			return report.Numbering{}, err
		}
		for _, n := range e.Numbers {
			if err := counts.add(int64(n.Period), uint64(n.Number)); err != nil {
				return report.Numbering{}, err
			}
		}
	}
	return counts.numbering(), nil
}

func (p *partitaMidnight) Note() string {
	return p.partita.Note() + "; ClockJump raised; a sequence that restarts each day; a clock that shows a midnight each second"
}

// dailySequence restarts each day, and keeps two of them.
var dailySequence = messages.Restart{Rule: calendar.Rule{Every: calendar.Day}, Zone: midnightZone, Keep: 2}

// dailyOptions are those of a daily row: its clock may be further ahead than a day, if nobody asks it for a while.
func dailyOptions() (partition.Options, partition.Settings, error) {
	clock, err := newDayClock()
	return partition.Options{Clock: clock}, partition.Settings{ClockJump: 10 * 366 * 24 * time.Hour}, err
}
