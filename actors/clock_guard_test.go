package actors_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/actors/actorstest"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/storagetest"
)

// far is the reading that pinned all later times.
var far = time.Date(292300, 1, 1, 0, 0, 0, 0, time.UTC)

// jumps lets the clock show what it should not while it is asked for two events in both ways.
func (r *rig) jumps(to time.Time) {
	r.t.Helper()
	right := r.clock.Now()
	at, last := messages.TimestampOf(to), messages.TimestampOf(right)
	r.fake.Set(to)
	_, started := r.of(7).Start(r.ctx, shop, 7)
	_, appended := r.of(7).Append(r.ctx, actors.AppendTo{Workspace: 7, Kind: shop}, messages.Draft{Wanted: []messages.Wanted{{Seq: invoices}}})
	for name, err := range map[string]error{"Start": started, "Append": appended} {
		wants(r.t, name, err, messages.ErrClock)
		var told *messages.ClockError
		if !errors.As(err, &told) || told.Got != at || told.Last < last || told.Limit != 24*time.Hour {
			r.t.Errorf("%s: got %+v, want %v after %v", name, told, at, last)
		}
	}
	if s := r.partitions[0].Status(); s.State != messages.StateAlarming || !errors.Is(s.Err, messages.ErrClock) {
		r.t.Errorf("got %+v, want it alarming", s)
	}
	r.fake.Set(right)
}

// A reading that cannot be is refused, consumes nothing, is shown, and is no time of an event to
// come. The partition goes on when the clock is right again.
func TestClockJumpIsRefused(t *testing.T) {
	for name, to := range map[string]time.Time{
		"year 292300": far, "two days ahead": time.Date(2026, 1, 3, 0, 0, 1, 0, time.UTC),
		"after 2261": time.Date(2262, 1, 2, 0, 0, 0, 0, time.UTC), "before 1970": time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		t.Run(name, func(t *testing.T) {
			r := readyRig(t, setup{})
			r.commit(7)
			r.jumps(to)
			if n := r.commit(7); n != 2 {
				t.Errorf("got number %d, want 2", n)
			}
			r.await(0, messages.StateAlarming)
			r.await(0, messages.StateNormal)
			for _, e := range r.log(0) {
				if now := messages.TimestampOf(r.clock.Now()); e.RegisteredAt > now {
					t.Errorf("got %v at %v", e.RegisteredAt, now)
				}
			}
		})
	}
}

// The first reading may be wrong as well.
func TestClockIsWrongAtTheStart(t *testing.T) {
	clock := actorstest.NewFakeClock(far)
	r := newRig(t, setup{clock: clock})
	r.await(0, messages.StateAlarming)
	_, err := r.of(7).Start(r.ctx, shop, 7)
	wants(t, "start", err, messages.ErrClock)
	clock.Set(time.Now())
	if n := r.commit(7); n != 1 {
		t.Errorf("got number %d, want 1", n)
	}
}

// Nobody needs to ask for anything to see that the clock is right again.
func TestClockHealsByItself(t *testing.T) {
	r := readyRig(t, setup{})
	right := r.clock.Now()
	r.jumps(far)
	r.fake.Set(right.Add(-time.Second))
	r.fake.Advance(time.Second)
	r.await(0, messages.StateAlarming)
	r.await(0, messages.StateNormal)
}

// A partition that was idle, or closed, for long works at once: what counts is the last reading
// and the time that has passed since, not the last event.
func TestClockAfterALongTime(t *testing.T) {
	r := readyRig(t, setup{})
	r.commit(7)
	r.stop(0)
	r.fake.Set(r.clock.Now().Add(31 * 24 * time.Hour))
	r.again()
	r.ready()
	if n := r.commit(7); n != 2 {
		t.Errorf("got number %d, want 2", n)
	}
	// A machine that was suspended: an operator raises the setting.
	later := r.clock.Now().Add(3 * 24 * time.Hour)
	r.jumps(later)
	r.fake.Set(later)
	raised := messages.Settings{ClockJump: 4 * 24 * time.Hour}.WithDefaults()
	r.check(r.partitions[0].Reconfigure(r.ctx, r.ports, raised))
	r.check(r.partitions[0].Reconfigure(r.ctx, r.ports, messages.Settings{}.WithDefaults()))
	if n := r.commit(7); n != 3 {
		t.Errorf("got number %d, want 3", n)
	}
	// One that is set back, and right again, is not ahead.
	r.fake.Set(later.Add(-10 * 24 * time.Hour))
	r.commit(7)
	r.fake.Set(later)
	r.commit(7)
	if s := r.partitions[0].Status(); strings.Contains(s.State.String(), "alarm") {
		t.Errorf("got %+v", s)
	}
}

// A clock that was behind the log when the partition began, as on a machine whose battery is empty, is
// believed when it is set right: it is ahead of what it said, but not of the last event.
func TestClockWasBehindTheLog(t *testing.T) {
	r := readyRig(t, setup{})
	right := r.clock.Now()
	r.commit(7)
	r.fake.Set(right.AddDate(-20, 0, 0))
	r.again()
	r.ready()
	r.commit(7)
	r.fake.Set(right.Add(time.Hour))
	if n := r.commit(7); n != 3 {
		t.Errorf("got number %d, want 3", n)
	}
	r.jumps(right.Add(26 * time.Hour))
}

// A jump is logged when it begins and when it ends; a first reading that is far ahead of the
// last event is trusted, with a warning.
func TestClockIsLogged(t *testing.T) {
	core, logged := observer.New(zap.InfoLevel)
	r := readyRig(t, setup{logger: zap.New(core)})
	r.commit(7)
	logged.TakeAll()
	for range 2 {
		r.jumps(far)
		r.commit(7)
	}
	if got := logged.FilterMessage("partition is alarming").Len(); got != 2 {
		t.Errorf("got %d lines about two jumps", got)
	}
	if got := logged.Len(); got != 4 {
		t.Errorf("got %d lines, want one for each change: %v", got, logged.All())
	}
	for _, years := range []int{0, 2} {
		r.fake.Set(r.clock.Now().AddDate(years, 0, 0))
		r.again()
		r.ready()
		if got := logged.FilterLevelExact(zap.WarnLevel).Len(); got != years/2 {
			t.Errorf("after %d years: got %d warnings", years, got)
		}
	}
	r.commit(7)
}

// A stop that has begun waits as long as it may, whatever the clock shows meanwhile.
func TestClockJumpDoesNotCutAStopShort(t *testing.T) {
	r := readyRig(t, setup{})
	gate := r.newGate()
	r.commit(7)
	r.store.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: storagetest.Hold(gate), Times: 1})
	r.partitions[0].BeginStop()
	r.arrives(gate)
	r.fake.Set(r.clock.Now().Add(23 * time.Hour))
	limit := messages.Settings{}.WithDefaults().StopLimit
	if left := r.partitions[0].StopLimit(); left < limit/2 {
		t.Errorf("got %v left of %v", left, limit)
	}
	gate.Release()
	if s := r.stop(0); !s.Clean {
		t.Errorf("got %+v", s)
	}
}
