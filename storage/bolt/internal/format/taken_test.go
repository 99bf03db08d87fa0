package format

import (
	"encoding/binary"
	"errors"
	"reflect"
	"testing"

	"github.com/partita-go/partita/messages"
)

// What was taken over from an old system takes version 3, so that earlier programs refuse it.
func TestTakenOver(t *testing.T) {
	for what, e := range map[string]messages.Event{
		"moved":   {Kind: 1, Moves: []messages.SequenceNumber{{Seq: 16, Number: 4000}, {Seq: 17, Period: 20260101, Number: 12}}},
		"brought": {Kind: 1, Brought: 1, Numbers: []messages.SequenceNumber{{Seq: 16, Number: 7}, {Seq: 16, Number: 8}}},
	} {
		value := EncodeEvent(&e)
		SealEvent(value, 1)
		var view EventView
		if err := view.Decode(1, value); err != nil || value[0] != eventPeriods {
			t.Fatalf("%s: version %d, %v", what, value[0], err)
		}
		if got := view.Event(); !reflect.DeepEqual(got, e) {
			t.Fatalf("%s: got %+v, want %+v", what, got, e)
		}
		if n := SizeHint(&e); n < len(value)-EventHeaderLen {
			t.Errorf("%s: hint of %d bytes, got %d", what, n, len(value)-EventHeaderLen)
		}
	}
}

// A section 5 that cannot be is damage, and so is a section of a version to come.
func TestTakenOverWrong(t *testing.T) {
	uvarints := func(numbers ...uint64) (b []byte) {
		for _, n := range numbers {
			b = binary.AppendUvarint(b, n)
		}
		return b
	}
	for what, sections := range map[string][]messages.Section{
		"nothing":                {{Tag: tagTaken}},
		"neither":                {{Tag: tagTaken, Data: uvarints(0)}},
		"more than the numbers":  {{Tag: tagTaken, Data: uvarints(3)}},
		"move cut short":         {{Tag: tagTaken, Data: uvarints(1, 16, 0)}},
		"sequence above 2^16":    {{Tag: tagTaken, Data: uvarints(0, 1<<16, 0, 1)}},
		"period above 2^32":      {{Tag: tagTaken, Data: uvarints(0, 16, 1<<32, 1)}},
		"twice":                  {{Tag: tagTaken, Data: uvarints(1)}, {Tag: tagTaken, Data: uvarints(1)}},
		"twice, first with move": {{Tag: tagTaken, Data: uvarints(0, 16, 0, 1)}, {Tag: tagTaken, Data: uvarints(1)}},
		"unknown":                {{Tag: messages.MaxReservedTag, Data: uvarints(1)}},
	} {
		e := messages.Event{Kind: 1, Numbers: make([]messages.SequenceNumber, 2), Sections: sections}
		var view EventView
		if err := view.Decode(1, resealedAs(eventPeriods, appendPayload(nil, &e, eventPeriods), 1)); !errors.Is(err, ErrLayout) {
			t.Errorf("%s: got %v, want %v", what, err, ErrLayout)
		}
	}
}
