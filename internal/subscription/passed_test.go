package subscription

import (
	"testing"

	"github.com/partita-go/partita/messages"
)

// passing is a lane that has passed over the events 5 to 8.
func passing() *bench { return newBench(testConfig()).loaded(5, "").grown().read(9) }

// What is passed over is stored with the next batch, or when there is much of it.
func TestPassedOver(t *testing.T) {
	b := newBench(testConfig()).loaded(1, "").grown()
	b.read(maxPassed).wants(t, messages.LaneWaiting, "await 4096")
	b.grown().read(maxPassed+1).wants(t, messages.LaneStoring, "store 4097")
	b.stored().wants(t, messages.LaneWaiting, "await 4097")
	b.grown().read(5000).wants(t, messages.LaneWaiting, "await 5000")
}

// Before nobody looks at what comes next, it is stored, too.
func TestPassedOverIsStoredFirst(t *testing.T) {
	notRead := func(b *bench) *bench {
		return b.step(&messages.EventsRead{Generation: b.lane.generation, Outcome: messages.Retry, Err: errStore})
	}
	from := map[string]func(messages.LaneMessage) *bench{
		"waiting":           func(m messages.LaneMessage) *bench { return passing().step(m) },
		"reading":           func(m messages.LaneMessage) *bench { return passing().grown().step(m) },
		"retrying to read":  func(m messages.LaneMessage) *bench { return notRead(passing().grown()).step(m) },
		"retrying a batch":  func(m messages.LaneMessage) *bench { return passing().grown().read(10, 9).refused(-1).step(m) },
		"handling, refused": func(m messages.LaneMessage) *bench { return passing().grown().read(10, 9).step(m).refused(-1) },
	}
	asked := []struct {
		message messages.LaneMessage
		then    messages.LaneState
	}{
		{&messages.HoldLane{}, messages.LaneHeld},
		{&messages.StopLane{}, messages.LaneEnded},
		{&messages.ReloadLane{}, messages.LaneLoading},
	}
	for name, begin := range from {
		for _, a := range asked {
			b := begin(a.message)
			if b.work() != "store 9" || len(b.fx.Replies) > 0 {
				t.Errorf("%s, %T: got %q, %v, want it stored first", name, a.message, b.work(), b.fx.Replies)
			}
			if b.stored(); b.lane.state != a.then {
				t.Errorf("%s, %T: got %v when it was stored, want %v", name, a.message, b.lane.state, a.then)
			}
		}
	}
}

// Nobody waits for a store that cannot store it, and what changed meanwhile is not overwritten.
func TestPassedOverIsNotStored(t *testing.T) {
	b := passing().step(&messages.HoldLane{}).notStored()
	if said := b.says(messages.LaneHeld); said != "Held" {
		t.Errorf("hold: got %q", said)
	}
	b.step(&messages.StopLane{}).wants(t, messages.LaneEnded, "")

	b = passing().step(&messages.StopLane{}).notStored()
	if stopped, ok := b.fx.Replies[0].Message.(*messages.LaneStopped); !ok || stopped.Err != nil {
		t.Errorf("stop: got %v, want a clean one: nothing is delivered again", b.fx.Replies)
	}
}

// What a lane has not stored before it failed is not stored afterwards: of an event that was
// to be parked, only its position would be.
func TestFailedLaneStoresNothing(t *testing.T) {
	for _, m := range []messages.LaneMessage{&messages.HoldLane{}, &messages.StopLane{}, &messages.ReloadLane{}} {
		c := testConfig()
		c.MaxTries = 1
		b := newBench(c).loaded(5, "").grown().read(6, 5).refused(0)
		b.wants(t, messages.LaneStoring, "store 6 park 5 after 1: handler failed")
		b.step(&messages.PositionStored{Generation: b.lane.generation, Outcome: messages.Broken, Err: errStore})
		b.wants(t, messages.LaneFailed, "")
		if b.step(m); b.lane.state == messages.LaneStoring {
			t.Errorf("%T: got %q", m, b.work())
		}
	}
}
