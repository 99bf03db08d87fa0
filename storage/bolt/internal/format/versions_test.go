package format

// This test looks inside: nobody else needs the versions of values and the tags of the runtime.

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/partita-go/partita/messages"
)

// Values with the runtime's sections are of a version of their own: in others the same tags
// are an application's.
func TestEventVersions(t *testing.T) {
	plain := messages.Event{Kind: 1, PLogOffset: 1, Sections: []messages.Section{{Tag: tagDedup, Data: []byte("short")}, {Tag: tagTogether}}}
	value := EncodeEvent(&plain)
	SealEvent(value, 1)
	var view EventView
	if err := view.Decode(1, value); err != nil || len(view.Event().Sections) != 2 || value[0] != eventVersion {
		t.Fatalf("version %d: got %+v, %v", value[0], view.Event(), err)
	}
	for _, e := range []messages.Event{{Date: 20260329}, {Zone: "UTC"}} {
		if value := EncodeEvent(&e); value[0] != eventPeriods {
			t.Fatalf("got version %d, want %d", value[0], eventPeriods)
		}
	}
	for _, e := range []messages.Event{{DedupID: messages.DedupID{1}}, {Together: 1}, {Trace: 1}} {
		if value := EncodeEvent(&e); value[0] != eventReserved {
			t.Fatalf("got version %d, want %d", value[0], eventReserved)
		}
	}
	id := bytes.Repeat([]byte{7}, 16)
	for name, sections := range map[string][]messages.Section{
		"a short id":           {{Tag: tagDedup, Data: id[:15]}},
		"a long id":            {{Tag: tagDedup, Data: append(id, 7)}},
		"the zero id":          {{Tag: tagDedup, Data: make([]byte, 16)}},
		"two ids":              {{Tag: tagDedup, Data: id}, {Tag: tagDedup, Data: id}},
		"together nothing":     {{Tag: tagTogether}},
		"together 0":           {{Tag: tagTogether, Data: []byte{0}}},
		"together and more":    {{Tag: tagTogether, Data: []byte{1, 1}}},
		"together twice":       {{Tag: tagTogether, Data: []byte{1}}, {Tag: tagTogether, Data: []byte{1}}},
		"together cut short":   {{Tag: tagTogether, Data: []byte{0x80}}},
		"together above 2^32":  {{Tag: tagTogether, Data: binary.AppendUvarint(nil, 1<<32)}},
		"together above 2^64":  {{Tag: tagTogether, Data: bytes.Repeat([]byte{0xff}, 10)}},
		"a short trace":        {{Tag: tagTrace, Data: id[:7]}},
		"a long trace":         {{Tag: tagTrace, Data: id[:9]}},
		"the zero trace":       {{Tag: tagTrace, Data: make([]byte, 8)}},
		"two traces":           {{Tag: tagTrace, Data: id[:8]}, {Tag: tagTrace, Data: id[:8]}},
		"right and then wrong": {{Tag: tagDedup, Data: id}, {Tag: tagTogether}},
	} {
		payload := EncodeEvent(&messages.Event{Sections: sections})[EventHeaderLen:]
		if err := view.Decode(1, resealedAs(eventReserved, payload, 1)); !errors.Is(err, ErrLayout) {
			t.Errorf("%s: got %v, %+v", name, err, view.Event())
		}
	}
}

// The name of a zone stands there once, and is one that a zone can have.
func TestZoneSections(t *testing.T) {
	zone := func(names ...string) (sections []messages.Section) {
		for _, name := range names {
			sections = append(sections, messages.Section{Tag: tagZone, Data: []byte(name)})
		}
		return sections
	}
	for name, c := range map[string]struct {
		version  byte
		sections []messages.Section
		zone     string
		want     error
	}{
		"a zone":                 {eventPeriods, zone("Europe/Zurich"), "Europe/Zurich", nil},
		"one that is not known":  {eventPeriods, zone("Mars/Olympus_Mons"), "Mars/Olympus_Mons", nil},
		"no name":                {eventPeriods, zone(""), "", ErrLayout},
		"a bad name":             {eventPeriods, zone("../zone"), "", ErrLayout},
		"a long name":            {eventPeriods, zone("A" + string(bytes.Repeat([]byte{'a'}, 64))), "", ErrLayout},
		"two":                    {eventPeriods, zone("UTC", "Europe/Zurich"), "", ErrLayout},
		"an older version":       {eventReserved, zone("UTC"), "", ErrVersion},
		"a newer program's":      {eventPeriods, []messages.Section{{Tag: messages.MaxReservedTag}}, "", ErrVersion},
		"an application's":       {eventPeriods, []messages.Section{{Tag: messages.MaxReservedTag + 1}}, "", nil},
		"one that nobody can be": {eventPeriods, []messages.Section{{}}, "", nil},
	} {
		payload := EncodeEvent(&messages.Event{Sections: c.sections})[EventHeaderLen:]
		var view EventView
		if err := view.Decode(1, resealedAs(c.version, payload, 1)); !errors.Is(err, c.want) || err == nil && view.Zone != c.zone {
			t.Errorf("%s: got %q, %v, want %q, %v", name, view.Zone, err, c.zone, c.want)
		}
	}
}
