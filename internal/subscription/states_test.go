package subscription

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
)

var (
	errHandler = errors.New("handler failed")
	errStore   = errors.New("store failed")
)

func testConfig() Config {
	return Config{Partition: 3, MinDelay: 100 * time.Millisecond, MaxDelay: time.Second, MaxTries: 3, Seed: 1}
}

// bench is a lane under test, and what it wanted last.
type bench struct {
	lane *Lane
	fx   *Effects
}

func newBench(c Config) *bench {
	b := &bench{lane: New(c)}
	b.fx = b.lane.Begin()
	return b
}

// step sends a message. A requester is there for those that are answered.
func (b *bench) step(m messages.LaneMessage) *bench {
	b.fx = b.lane.Step("somebody", m)
	return b
}

func events(offsets ...uint64) []messages.LogEvent {
	all := make([]messages.LogEvent, 0, len(offsets))
	for _, o := range offsets {
		all = append(all, messages.LogEvent{Offset: o})
	}
	return all
}

// The next messages are the answers to what is under way.

func (b *bench) loaded(next uint64, stopped string) *bench {
	return b.step(&messages.PositionLoaded{Generation: b.lane.generation, Next: next, Stopped: stopped})
}

func (b *bench) grown() *bench { return b.step(&messages.LogGrown{Generation: b.lane.generation}) }

func (b *bench) read(next uint64, all ...uint64) *bench {
	return b.step(&messages.EventsRead{Generation: b.lane.generation, Events: events(all...), Next: next})
}

func (b *bench) handled() *bench {
	return b.step(&messages.BatchHandled{Generation: b.lane.generation, Failed: -1, At: 99})
}

func (b *bench) refused(failed int) *bench {
	return b.step(&messages.BatchHandled{Generation: b.lane.generation, Failed: failed, Err: errHandler, At: 99})
}

func (b *bench) stored() *bench {
	return b.step(&messages.PositionStored{Generation: b.lane.generation})
}

func (b *bench) notStored() *bench {
	return b.step(&messages.PositionStored{Generation: b.lane.generation, Outcome: messages.Retry, Err: errStore})
}

func (b *bench) fired() *bench { return b.step(&messages.RetryFired{Generation: b.lane.generation}) }

// handling is a lane whose handler has the events 5 to 7.
func handling() *bench { return newBench(testConfig()).loaded(5, "").grown().read(8, 5, 6, 7) }

// inEachState makes a lane in each state; some states have a past that matters.
var inEachState = []struct {
	name string
	make func() *bench
}{
	{"loading", func() *bench { return newBench(testConfig()) }},
	{"waiting", func() *bench { return newBench(testConfig()).loaded(5, "") }},
	{"reading", func() *bench { return newBench(testConfig()).loaded(5, "").grown() }},
	{"handling", handling},
	{"trying", func() *bench {
		return newBench(testConfig()).step(&messages.HoldLane{}).step(&messages.TryEvent{Event: events(2)[0]})
	}},
	{"storing", func() *bench { return handling().handled() }},
	{"retrying", func() *bench { return handling().refused(-1) }},
	{"retrying to store", func() *bench { return handling().handled().notStored() }},
	{"halted", func() *bench { return newBench(testConfig()).loaded(5, "paused") }},
	{"failed", func() *bench {
		b := newBench(testConfig())
		return b.step(&messages.PositionLoaded{Generation: b.lane.generation, Outcome: messages.Broken, Err: errStore})
	}},
	{"held", func() *bench { return newBench(testConfig()).step(&messages.HoldLane{}) }},
	{"ended", func() *bench { return newBench(testConfig()).step(&messages.StopLane{}) }},
}

// says is what a step has brought about: replies, work, and the next state if it is another.
func (b *bench) says(before messages.LaneState) string {
	var said []string
	for _, r := range b.fx.Replies {
		if refused, ok := r.Message.(*messages.Refused); ok {
			said = append(said, refused.Err.Error())
			continue
		}
		said = append(said, strings.TrimPrefix(fmt.Sprintf("%T", r.Message), "*messages."))
	}
	if b.fx.Work != nil {
		said = append(said, strings.TrimPrefix(fmt.Sprintf("%T", b.fx.Work), "*messages."))
	}
	if b.fx.EndWait {
		said = append(said, "end wait")
	}
	if b.fx.Arm != nil {
		said = append(said, "timer")
	}
	if after := b.lane.state; after != before {
		said = append(said, ">"+after.String())
	}
	return strings.Join(said, " ")
}

// stateMessages is every message that a lane takes, with what it brings about in each state.
var stateMessages = []struct {
	name string
	make func(b *bench) messages.LaneMessage
	want string
}{
	{"HoldLane", func(*bench) messages.LaneMessage { return &messages.HoldLane{} }, "Held >held | Held end wait >held | Held >held | - | - | - | Held >held | StorePosition >storing | Held >held | Held >held | Held | actor has stopped"},
	{"ReleaseLane", func(*bench) messages.LaneMessage { return &messages.ReleaseLane{} }, "- | - | - | - | - | - | - | - | - | - | LoadPosition >loading | -"},
	{"ReloadLane", func(*bench) messages.LaneMessage { return &messages.ReloadLane{} }, "LoadPosition | LoadPosition end wait >loading | LoadPosition >loading | - | - | - | LoadPosition >loading | - | LoadPosition >loading | LoadPosition >loading | - | -"},
	{"TryEvent", func(*bench) messages.LaneMessage { return &messages.TryEvent{Event: events(1)[0]} }, "lane is not held | lane is not held | lane is not held | lane is not held | lane is not held | lane is not held | lane is not held | lane is not held | lane is not held | lane is not held | HandleBatch >handling | actor has stopped"},
	{"StopLane", func(*bench) messages.LaneMessage { return &messages.StopLane{} }, "LaneStopped >ended | LaneStopped end wait >ended | LaneStopped >ended | - | - | - | LaneStopped >ended | StorePosition >storing | LaneStopped >ended | LaneStopped >ended | LaneStopped >ended | LaneStopped"},
	{"PositionLoaded", func(b *bench) messages.LaneMessage {
		return &messages.PositionLoaded{Generation: b.lane.generation, Next: 9}
	}, "AwaitLog >waiting | - | - | - | - | - | - | - | - | - | - | -"},
	{"LogGrown", func(b *bench) messages.LaneMessage { return &messages.LogGrown{Generation: b.lane.generation} }, "- | ReadLog end wait >reading | - | - | - | - | - | - | - | - | - | -"},
	{"EventsRead", func(b *bench) messages.LaneMessage {
		return &messages.EventsRead{Generation: b.lane.generation, Events: events(5), Next: 6}
	}, "- | - | HandleBatch >handling | - | - | - | - | - | - | - | - | -"},
	{"BatchHandled", func(b *bench) messages.LaneMessage {
		return &messages.BatchHandled{Generation: b.lane.generation, Failed: -1}
	}, "- | - | - | StorePosition >storing | Tried >held | - | - | - | - | - | - | -"},
	{"PositionStored", func(b *bench) messages.LaneMessage {
		return &messages.PositionStored{Generation: b.lane.generation}
	}, "- | - | - | - | - | AwaitLog >waiting | - | - | - | - | - | -"},
	{"RetryFired", func(b *bench) messages.LaneMessage {
		return &messages.RetryFired{Generation: b.lane.generation}
	}, "- | - | - | - | - | - | HandleBatch >handling | StorePosition >storing | - | - | - | -"},
	{"PositionLoaded, failed", func(b *bench) messages.LaneMessage {
		return &messages.PositionLoaded{Generation: b.lane.generation, Outcome: messages.Retry, Err: errStore}
	}, "timer >retrying | - | - | - | - | - | - | - | - | - | - | -"},
	{"LogGrown, failed", func(b *bench) messages.LaneMessage {
		return &messages.LogGrown{Generation: b.lane.generation, Outcome: messages.Retry, Err: errStore}
	}, "- | end wait timer >retrying | - | - | - | - | - | - | - | - | - | -"},
	{"EventsRead, broken", func(b *bench) messages.LaneMessage {
		return &messages.EventsRead{Generation: b.lane.generation, Outcome: messages.Broken, Err: errStore}
	}, "- | - | >failed | - | - | - | - | - | - | - | - | -"},
	{"BatchHandled, failed", func(b *bench) messages.LaneMessage {
		return &messages.BatchHandled{Generation: b.lane.generation, Failed: -1, Err: errHandler}
	}, "- | - | - | timer >retrying | Tried >held | - | - | - | - | - | - | -"},
	{"PositionStored, failed", func(b *bench) messages.LaneMessage {
		return &messages.PositionStored{Generation: b.lane.generation, Outcome: messages.Retry, Err: errStore}
	}, "- | - | - | - | - | timer >retrying | - | - | - | - | - | -"},
	{"PositionStored, broken", func(b *bench) messages.LaneMessage {
		return &messages.PositionStored{Generation: b.lane.generation, Outcome: messages.Broken, Err: errStore}
	}, "- | - | - | - | - | >failed | - | - | - | - | - | -"},
}

func TestEveryMessageInEveryState(t *testing.T) {
	for _, m := range stateMessages {
		var got []string
		for _, s := range inEachState {
			b := s.make()
			before := b.lane.state
			b.step(m.make(b))
			said := b.says(before)
			if said == "" {
				said = "-"
			}
			got = append(got, said)
		}
		if line := strings.Join(got, " | "); line != m.want {
			t.Errorf("%s: got\n%s\nwant\n%s", m.name, line, m.want)
		}
	}
}
