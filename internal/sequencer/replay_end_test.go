package sequencer

import (
	"testing"

	"github.com/partita-go/partita/messages"
)

// The register says where the log ends. What a piece of the tail has behind that is
// not taken: it was not there when the epoch was.
func TestReplayEndsAtTheRegister(t *testing.T) {
	core := New(Config{
		Descriptor: messages.Descriptor{Application: "end", Partitions: 1, Kinds: []messages.Kind{{ID: 1, Name: "one"}}},
		Settings:   messages.Settings{}.WithDefaults(),
	})
	core.Begin(1)
	core.Step(nil, &messages.Taken{Generation: 1, Register: messages.Register{Epoch: 2, Last: 1, Checkpoint: 1}}, 1)
	var events []messages.Numbering
	for o := range messages.PLogOffset(2) {
		events = append(events, messages.Numbering{
			Epoch: 1, PLogOffset: o + 1, Workspace: 1, WorkspaceKind: 1, WLogOffset: messages.WLogOffset(o + 1), RegisteredAt: 1,
		})
	}
	core.Step(nil, &messages.Replayed{Generation: 1, Events: events}, 1)
	if s := core.Status(); s.State != messages.StateNormal || s.Last != 1 {
		t.Errorf("got %v at offset %d, want %v at 1", s.State, s.Last, messages.StateNormal)
	}
}
