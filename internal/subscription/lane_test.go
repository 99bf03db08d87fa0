package subscription

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
)

// wants fails the test unless the lane is in a state and has asked for work, given as text.
func (b *bench) wants(t *testing.T, state messages.LaneState, work string) {
	t.Helper()
	if b.lane.state != state {
		t.Fatalf("got state %v, want %v", b.lane.state, state)
	}
	if got := b.work(); got != work {
		t.Fatalf("got work %q, want %q", got, work)
	}
}

// work says what was asked for.
func (b *bench) work() string {
	switch m := b.fx.Work.(type) {
	case *messages.HandleBatch:
		return "handle" + offsetsOf(m.Events)
	case *messages.StorePosition:
		said := "store " + offset(m.Next)
		if m.Park != nil {
			said += " park " + offset(m.Park.Offset) + " after " + offset(uint64(m.Park.Tries)) + ": " + m.Park.Reason
		}
		if m.Stopped != "" {
			said += " stop: " + m.Stopped
		}
		return said
	case *messages.AwaitLog:
		return "await " + offset(m.Offset)
	case *messages.ReadLog:
		return "read " + offset(m.From)
	case *messages.LoadPosition:
		return "load"
	}
	if b.fx.Arm != nil {
		return "delay"
	}
	return ""
}

func offsetsOf(all []messages.LogEvent) string {
	var s strings.Builder
	for _, e := range all {
		s.WriteString(" " + offset(e.Offset))
	}
	return s.String()
}

func offset(o uint64) string { return messages.PLogOffset(o).String() }

// An answer that is not the one to what was asked last changes nothing, in no state.
func TestOldAnswersAreIgnored(t *testing.T) {
	for _, s := range inEachState {
		for _, m := range stateMessages[5:] {
			b := s.make()
			before := b.lane.state
			b.lane.generation--
			old := m.make(b)
			b.lane.generation++
			b.step(old)
			if said := b.says(before); said != "" {
				t.Errorf("%s, old %s: got %q, want nothing", s.name, m.name, said)
			}
		}
	}
}

func TestDelivery(t *testing.T) {
	b := newBench(testConfig())
	b.wants(t, messages.LaneLoading, "load")
	b.loaded(0, "").wants(t, messages.LaneWaiting, "await 1")
	b.grown().wants(t, messages.LaneReading, "read 1")
	b.read(8, 2, 5, 6).wants(t, messages.LaneHandling, "handle 2 5 6")
	b.handled().wants(t, messages.LaneStoring, "store 8")
	b.stored().wants(t, messages.LaneWaiting, "await 8")
	if s := b.lane.Status(); s.Delivered != 3 || s.Next != 8 || s.Err != nil {
		t.Errorf("got %+v", s)
	}
}

// The handler does not say which event it was: after so many tries they come one by one.
func TestPoisonIsLookedFor(t *testing.T) {
	b := handling()
	for range 2 {
		b.refused(-1).wants(t, messages.LaneRetrying, "delay")
		b.fired().wants(t, messages.LaneHandling, "handle 5 6 7")
	}
	b.refused(-1).wants(t, messages.LaneHandling, "handle 5")
	// An innocent one may fail as well.
	b.refused(-1).wants(t, messages.LaneRetrying, "delay")
	b.fired().wants(t, messages.LaneHandling, "handle 5")
	b.handled().wants(t, messages.LaneStoring, "store 6")
	b.stored().wants(t, messages.LaneHandling, "handle 6")
	for range 2 {
		b.refused(-1).wants(t, messages.LaneRetrying, "delay")
		b.fired().wants(t, messages.LaneHandling, "handle 6")
	}
	b.refused(-1).wants(t, messages.LaneStoring, "store 7 park 6 after 6: handler failed")
	b.stored().wants(t, messages.LaneHandling, "handle 7")
	b.refused(-1).wants(t, messages.LaneRetrying, "delay") // the rest is a batch again
	b.fired().handled().wants(t, messages.LaneStoring, "store 8")
	b.stored().wants(t, messages.LaneWaiting, "await 8")
	if s := b.lane.Status(); s.Delivered != 2 || s.Parked != 1 || s.Tries != 0 || s.Err != nil {
		t.Errorf("got %+v", s)
	}
}

// Was none of them poisonous when alone, they were handled.
func TestPoisonIsNotFound(t *testing.T) {
	b := handling()
	b.refused(-1).fired().refused(-1).fired().refused(-1)
	for _, want := range []string{"store 6", "store 7", "store 8"} {
		b.handled().wants(t, messages.LaneStoring, want)
		b.stored()
	}
	b.wants(t, messages.LaneWaiting, "await 8")
}

// The handler says which event it was: those before it are stored, and only it counts tries.
func TestPoisonIsNamed(t *testing.T) {
	b := handling()
	b.refused(1).wants(t, messages.LaneStoring, "store 6")
	b.stored().wants(t, messages.LaneRetrying, "delay")
	b.fired().wants(t, messages.LaneHandling, "handle 6 7")
	b.refused(0).fired().refused(0).wants(t, messages.LaneStoring, "store 7 park 6 after 3: handler failed")
	b.stored().wants(t, messages.LaneHandling, "handle 7")
}

// An index that the batch does not have names none.
func TestPoisonIsNamedWrongly(t *testing.T) {
	for _, index := range []int{-7, 3, 1 << 40} {
		b := handling()
		b.refused(index).wants(t, messages.LaneRetrying, "delay")
		b.fired().refused(index).fired().refused(index).wants(t, messages.LaneHandling, "handle 5")
	}
}

func TestPoisonStops(t *testing.T) {
	c := testConfig()
	c.MaxTries, c.StopOnPoison = 1, true
	b := newBench(c).loaded(5, "").grown().read(8, 5, 6, 7)
	b.refused(1).wants(t, messages.LaneStoring, "store 6 stop: partition 3, offset 6, after 1 tries: handler failed")
	b.stored().wants(t, messages.LaneHalted, "")
	if !b.fx.Alert || !strings.Contains(b.lane.Status().Halted, "offset 6") {
		t.Errorf("got alert %v, %+v", b.fx.Alert, b.lane.Status())
	}
	b.step(&messages.ReloadLane{}).loaded(6, "").grown().read(8, 6, 7)
	b.wants(t, messages.LaneHandling, "handle 6 7")
	if halted := b.lane.Status().Halted; halted != "" {
		t.Errorf("got %q after it was resumed", halted)
	}
}

// Whoever holds or stops a lane while the subscription stops: the others are told.
func TestPoisonStopsWhileHeld(t *testing.T) {
	for _, m := range []messages.LaneMessage{&messages.HoldLane{}, &messages.StopLane{}, &messages.ReloadLane{}} {
		c := testConfig()
		c.MaxTries, c.StopOnPoison = 1, true
		b := newBench(c).loaded(5, "").grown().read(6, 5).refused(0).step(m).stored()
		if !b.fx.Alert {
			t.Errorf("%T: nobody was told", m)
		}
	}
}

// Who was restarted may have been the one who stopped it, before it could tell the others.
func TestRestartedTellsOfAStop(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		c := testConfig()
		c.Restarted = restarted
		b := newBench(c).loaded(0, "poison")
		b.wants(t, messages.LaneHalted, "")
		if b.fx.Alert != restarted {
			t.Errorf("restarted %v: got alert %v", restarted, b.fx.Alert)
		}
		if b.step(&messages.ReloadLane{}).loaded(0, "poison"); b.fx.Alert {
			t.Errorf("restarted %v: told again", restarted)
		}
	}
}

// Delays double up to the largest, with jitter between a half and the whole.
func TestDelays(t *testing.T) {
	c := testConfig()
	c.MaxTries = 100
	b := newBench(c).loaded(5, "").grown().read(6, 5)
	for try, tenths := range []int{1, 2, 4, 8, 10, 10, 10} {
		b.refused(-1)
		most := time.Duration(tenths) * time.Second / 10
		if got := b.fx.Arm.After; got < most/2 || got > most {
			t.Errorf("try %d: got a delay of %v, want %v to %v", try+1, got, most/2, most)
		}
		b.fired()
	}
}

// Nobody waits for a timer that is not wanted any more.
func TestTimerEnds(t *testing.T) {
	for _, m := range []messages.LaneMessage{&messages.HoldLane{}, &messages.StopLane{}, &messages.ReloadLane{}} {
		if b := handling().refused(-1).step(m); !b.fx.Disarm {
			t.Errorf("%T: the timer runs on", m)
		}
	}
}

// What the store cannot do is tried again, and what it can never do fails the lane until
// somebody resumes it.
func TestStoreFails(t *testing.T) {
	b := handling().handled()
	for range 5 {
		b.notStored().wants(t, messages.LaneRetrying, "delay")
		if !errors.Is(b.lane.Status().Err, errStore) {
			t.Fatalf("got %+v", b.lane.Status())
		}
		b.fired().wants(t, messages.LaneStoring, "store 8")
	}
	b.stored().wants(t, messages.LaneWaiting, "await 8")
	if err := b.lane.Status().Err; err != nil {
		t.Errorf("got %v after it was stored", err)
	}
	b.step(&messages.LogGrown{Generation: b.lane.generation, Outcome: messages.Broken, Err: errStore})
	b.wants(t, messages.LaneFailed, "")
	b.step(&messages.HoldLane{}).step(&messages.ReleaseLane{}).wants(t, messages.LaneLoading, "load")
}

// While the handler or the store is at work, a hold or a stop waits for it.
func TestWhatWaitsForTheHandler(t *testing.T) {
	tests := map[string]struct {
		make  func() *bench
		state messages.LaneState
		reply string
	}{
		"held when stored":             {func() *bench { return handling().step(&messages.HoldLane{}).handled().stored() }, messages.LaneHeld, "Held"},
		"held when refused":            {func() *bench { return handling().step(&messages.HoldLane{}).refused(-1) }, messages.LaneHeld, "Held"},
		"held though not stored":       {func() *bench { return handling().step(&messages.HoldLane{}).handled().notStored() }, messages.LaneHeld, "Held"},
		"held while storing":           {func() *bench { return handling().handled().step(&messages.HoldLane{}).stored() }, messages.LaneHeld, "Held"},
		"held while retrying to store": {func() *bench { return handling().handled().notStored().step(&messages.HoldLane{}).stored() }, messages.LaneHeld, "Held"},
		"stopped when stored":          {func() *bench { return handling().step(&messages.StopLane{}).handled().stored() }, messages.LaneEnded, "LaneStopped"},
		"stopped when refused":         {func() *bench { return handling().step(&messages.StopLane{}).refused(-1) }, messages.LaneEnded, "LaneStopped"},
		"stopped while retrying":       {func() *bench { return handling().refused(-1).step(&messages.StopLane{}) }, messages.LaneEnded, "LaneStopped"},
		"stopped rather than held": {func() *bench {
			return handling().step(&messages.HoldLane{}).step(&messages.StopLane{}).handled().stored()
		}, messages.LaneEnded, "actor has stopped LaneStopped"},
		"not held any more":           {func() *bench { return handling().step(&messages.HoldLane{}).step(&messages.ReleaseLane{}) }, messages.LaneHandling, "lane is not held"},
		"reloads when stored":         {func() *bench { return handling().step(&messages.ReloadLane{}).handled().stored() }, messages.LaneLoading, "LoadPosition"},
		"reloads when stored at last": {func() *bench { return handling().handled().notStored().step(&messages.ReloadLane{}).fired().stored() }, messages.LaneLoading, "LoadPosition"},
		"held rather than reloaded": {func() *bench {
			return handling().step(&messages.ReloadLane{}).step(&messages.HoldLane{}).handled().stored()
		}, messages.LaneHeld, "Held"},
		"tried, then held":              {func() *bench { return trying().handled() }, messages.LaneHeld, "Tried"},
		"tried, then released":          {func() *bench { return trying().step(&messages.ReleaseLane{}).handled() }, messages.LaneLoading, "Tried LoadPosition"},
		"tried, then reload is ignored": {func() *bench { return trying().step(&messages.ReloadLane{}).handled() }, messages.LaneHeld, "Tried"},
		"tried, then stopped":           {func() *bench { return trying().step(&messages.StopLane{}).handled() }, messages.LaneEnded, "Tried LaneStopped"},
		"tried, held again":             {func() *bench { return trying().step(&messages.ReleaseLane{}).step(&messages.HoldLane{}).handled() }, messages.LaneHeld, "Tried Held"},
	}
	for name, test := range tests {
		b := test.make()
		if said := b.says(test.state); b.lane.state != test.state || said != test.reply {
			t.Errorf("%s: got %v, %q, want %v, %q", name, b.lane.state, said, test.state, test.reply)
		}
	}
}

func trying() *bench {
	return newBench(testConfig()).step(&messages.HoldLane{}).step(&messages.TryEvent{Event: events(2)[0]})
}

// A stop says whether what was handled is stored.
func TestStopSaysWhatIsNotStored(t *testing.T) {
	b := handling().step(&messages.StopLane{}).handled().notStored()
	if stopped, ok := b.fx.Replies[0].Message.(*messages.LaneStopped); !ok || !errors.Is(stopped.Err, errStore) {
		t.Errorf("got %v", b.fx.Replies)
	}
	b = handling().step(&messages.StopLane{}).handled().stored()
	if stopped, ok := b.fx.Replies[0].Message.(*messages.LaneStopped); !ok || stopped.Err != nil {
		t.Errorf("got %v", b.fx.Replies)
	}
}

// Whoever waits is answered when the actor fails.
func TestAbort(t *testing.T) {
	b := handling().step(&messages.HoldLane{}).step(&messages.StopLane{})
	if n := len(b.lane.Abort(messages.ErrInterrupted).Replies); n != 2 {
		t.Errorf("got %d replies, want 2", n)
	}
	if n := len(trying().lane.Abort(messages.ErrInterrupted).Replies); n != 1 {
		t.Errorf("got %d replies, want 1", n)
	}
}

// A lane that is made while somebody holds it asks nobody where it stands, until it is
// released.
func TestBeginsHeld(t *testing.T) {
	c := testConfig()
	c.Held = true
	b := newBench(c)
	b.wants(t, messages.LaneHeld, "")
	b.step(&messages.ReleaseLane{}).wants(t, messages.LaneLoading, "load")
}
