package actors_test

import (
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
)

func contains(text, part string) bool { return strings.Contains(text, part) }

// A command that does not end is an alarm, until it ends; one after the other is none.
func TestAlarmOfACommand(t *testing.T) {
	r := readyRig(t, setup{settings: messages.Settings{TransactionLimit: time.Hour}})
	b := newBlocking()
	changes := make(chan struct{}, 100)
	p := r.spawnConfigured(actors.CommandProcessorConfig{
		Handler: b.handle, Requests: 10, AlarmAfter: alarmAfter, Restart: "always",
		StatusChanged: func() { changes <- struct{}{} },
	})
	is := func(state messages.ActorState, details string) {
		t.Helper()
		next(t, changes)
		s := p.Standing().Status()
		if s.Group != "command-processor" || s.ID != "0" || s.State != state || s.Details != details || s.Restart != "always" {
			t.Errorf("got %+v, want %v %q", s, state, details)
		}
	}
	is(messages.StateNormal, "")
	for range 5 { // each is another one at the next look
		answer := r.execute(r.ctx, p, command())
		next(t, b.arrived)
		r.fake.Advance(alarmAfter / 2)
		b.release <- struct{}{}
		r.check(next(t, answer))
	}
	answer := r.execute(r.ctx, p, command())
	next(t, b.arrived)
	r.fake.Advance(alarmAfter)
	if s := p.Standing().Status(); s.State != messages.StateNormal {
		t.Errorf("got %+v before its time", s)
	}
	r.fake.Advance(alarmAfter / 2)
	is(messages.StateAlarming, "a command of workspace 7 has not ended for 4 s")
	r.fake.Advance(alarmAfter / 2)
	is(messages.StateAlarming, "a command of workspace 7 has not ended for 6 s")
	b.release <- struct{}{}
	r.check(next(t, answer))
	is(messages.StateNormal, "")
	r.check(p.Stop(r.ctx))
	next(t, changes) // it was terminating
	is(messages.StateTerminated, "")
	if len(changes) != 0 {
		t.Errorf("%d changes more", len(changes))
	}
}
