package schema_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/schema"
)

const invoice messages.SeqID = 16

func testSchema() *schema.Schema {
	return schema.New(&messages.Descriptor{Partitions: 2, Kinds: []messages.Kind{
		{ID: 1, Sequences: []messages.Sequence{{ID: invoice, Initial: 1000}}},
	}})
}

// sound is an event that may be there: number 1000, and the record that it is of.
func sound() messages.Event {
	return messages.Event{
		Kind: messages.EventBusiness, Workspace: 2, WorkspaceKind: 1, PLogOffset: 1, WLogOffset: 1,
		Numbers: []messages.SequenceNumber{{Seq: invoice, Number: 1000}},
		Records: []messages.Record{{ID: messages.RecordID{Seq: invoice, Number: 1000}, New: true}},
	}
}

// Each field that contradicts the descriptor is found, and an event without one passes.
func TestCheckEvent(t *testing.T) {
	record := func(seq messages.SeqID, n messages.Number) []messages.Record {
		return []messages.Record{{ID: messages.RecordID{Seq: seq, Number: n}}}
	}
	for what, change := range map[string]func(*messages.Event){
		"event kind":       func(e *messages.Event) { e.Kind++ },
		"partition":        func(e *messages.Event) { e.Partition = 1 },
		"workspace kind":   func(e *messages.Event) { e.WorkspaceKind = 9 },
		"PLog offset":      func(e *messages.Event) { e.PLogOffset = 0 },
		"WLog offset":      func(e *messages.Event) { e.WLogOffset = 0 },
		"too many numbers": func(e *messages.Event) { e.Numbers = make([]messages.SequenceNumber, messages.MaxEventNumbers+1) },
		"section":          func(e *messages.Event) { e.Sections = []messages.Section{{Tag: messages.MaxReservedTag}} },
		"sequence":         func(e *messages.Event) { e.Numbers[0].Seq = 99 },
		"WLog sequence":    func(e *messages.Event) { e.Numbers[0].Seq = messages.SeqWLogOffset },
		"low number":       func(e *messages.Event) { e.Numbers[0].Number = 999 },
		"record sequence":  func(e *messages.Event) { e.Records = record(99, 1) },
		"record 0":         func(e *messages.Event) { e.Records = record(invoice, 0) },
		"too many moves":   func(e *messages.Event) { e.Moves = make([]messages.SequenceNumber, messages.MaxEventNumbers+1) },
		"too many brought": func(e *messages.Event) { e.Brought = 2 },
		"moved too far":    func(e *messages.Event) { e.Moves = []messages.SequenceNumber{{Seq: invoice, Number: 1 << 63}} },
		"moved too low":    func(e *messages.Event) { e.Moves = []messages.SequenceNumber{{Seq: invoice, Number: 999}} },
		"moved no period": func(e *messages.Event) {
			e.Moves = []messages.SequenceNumber{{Seq: invoice, Period: 20260101, Number: 1001}}
		},
		"created twice": func(e *messages.Event) { e.Records = append(e.Records, e.Records[0]) },
	} {
		e := sound()
		change(&e)
		if err := testSchema().CheckEvent(&e, slices.Concat(e.Numbers, e.Moves), nil); !errors.Is(err, storage.ErrInvalidEvent) {
			t.Errorf("%s: got %v, want an invalid event", what, err)
		}
	}
	e := sound()
	e.Records = append(e.Records, messages.Record{ID: e.Records[0].ID}) // written again
	e.Brought, e.Moves = 1, []messages.SequenceNumber{{Seq: invoice, Number: messages.LargestDefault}}
	if err := testSchema().CheckEvent(&e, slices.Concat(e.Numbers, e.Moves), nil); err != nil {
		t.Errorf("got %v", err)
	}
}

// An explicit id is from 1 on.
func TestExplicitID(t *testing.T) {
	e := sound()
	e.Numbers = nil
	for n, want := range map[messages.Number]error{0: messages.ErrExplicitID, 5: nil} {
		e.Records[0].ID.Number = n
		if err := testSchema().CheckEvent(&e, []messages.SequenceNumber{{Seq: invoice, Number: n}}, nil); !errors.Is(err, want) {
			t.Errorf("id %d: got %v, want %v", n, err, want)
		}
	}
}

// Events that are appended together stand beside each other, and are of one workspace.
func TestCheckTogether(t *testing.T) {
	first := messages.Event{Workspace: 2, Together: 1}
	for what, c := range map[string]struct {
		rest  []messages.Event
		sound bool
	}{
		"beside it":             {[]messages.Event{{Workspace: 2}}, true},
		"nothing":               {nil, false},
		"another workspace":     {[]messages.Event{{Workspace: 4}}, false},
		"an id of its own":      {[]messages.Event{{Workspace: 2, DedupID: messages.DedupID{1}}}, false},
		"together with a third": {[]messages.Event{{Workspace: 2, Together: 1}, {Workspace: 2}}, false},
	} {
		if err := schema.CheckTogether(append([]messages.Event{first}, c.rest...)); (err == nil) != c.sound {
			t.Errorf("%s: got %v, want sound %v", what, err, c.sound)
		}
	}
}
