package transfer

import (
	"bytes"
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

func testDescriptor() messages.Descriptor {
	d := messages.Descriptor{Application: "shops", Partitions: 2, Kinds: []messages.Kind{{ID: 1, Name: "shop", Sequences: []messages.Sequence{
		{ID: 16, Name: "Invoice", Initial: 1, Formats: []string{"{yyyy}/{n}"}, Restart: messages.Restart{
			Rule: calendar.Rule{Every: calendar.Year, FirstMonth: 4}, Zone: "Europe/Zurich", Keep: 3, Ahead: -1,
		}},
	}}}}
	return d.Normalized()
}

// writeAll writes a file of events.
func writeAll(t testing.TB, h Header, events iter.Seq[messages.Event]) []byte {
	t.Helper()
	var out bytes.Buffer
	x, w := newFileWriter(&out), newWriter()
	line, err := h.write(w)
	if err == nil {
		err = x.first(line)
	}
	for e := range events {
		var text []byte
		if text, err = w.event(&e); err == nil {
			err = x.numbered("event", text)
		}
		if err != nil {
			break
		}
	}
	if err == nil {
		_, err = x.end()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// readAll reads a file of events.
func readAll(text []byte) (h Header, events []messages.Event, err error) {
	r, err := NewReader(bytes.NewReader(text))
	if err != nil {
		return h, nil, err
	}
	for e, err := range r.Events() {
		if err != nil {
			return r.Header, events, err
		}
		events = append(events, e)
	}
	return r.Header, events, nil
}

func fewEvents() []messages.Event {
	a, b := usual(), usual()
	b.Body, b.Date, b.Sections = []byte{0xff}, 20260329, []messages.Section{{Tag: 77}}
	return []messages.Event{a, b, a}
}

// Whatever a file is, it is refused by a line, or it is what would be written.
func FuzzReader(f *testing.F) {
	h := Header{Descriptor: testDescriptor(), Events: 3, Launches: []uint32{4}}
	sound := writeAll(f, h, slices.Values(fewEvents()))
	f.Add(sound, uint16(0), byte(0))
	f.Add(sound, uint16(400), byte(1))
	f.Add(append(bytes.Clone(sound), sound...), uint16(9), byte('\r'))
	f.Add([]byte("{}\n"), uint16(0), byte(0))
	f.Fuzz(func(t *testing.T, text []byte, at uint16, change byte) {
		if int(at) < len(text) {
			text[at] ^= change
		}
		h, events, err := readAll(text)
		if err != nil {
			if _, ok := errors.AsType[*LineError](err); !ok {
				t.Fatalf("got %v, want a line", err)
			}
			return
		}
		if again := writeAll(t, h, slices.Values(events)); !bytes.Equal(again, text) {
			t.Fatalf("got\n%s, want\n%s", text, again)
		}
	})
}

// Each byte counts: a file of which one bit is changed is refused.
func TestEachByteCounts(t *testing.T) {
	sound := writeAll(t, Header{Descriptor: testDescriptor(), Events: 3, Launches: []uint32{4}}, slices.Values(fewEvents()))
	if _, events, err := readAll(sound); err != nil || len(events) != 3 {
		t.Fatalf("got %d events, %v", len(events), err)
	}
	for i := range sound {
		changed := bytes.Clone(sound)
		changed[i] ^= 1 << (i % 8)
		line := uint64(bytes.Count(sound[:i], []byte("\n")) + 1)
		_, _, err := readAll(changed)
		wrong, ok := errors.AsType[*LineError](err)
		if !ok || wrong.Line != line {
			t.Fatalf("byte %d: got %v, want line %d", i, err, line)
		}
		if _, _, err := readAll(sound[:i]); err == nil {
			t.Fatalf("cut off at %d: got nothing wrong", i)
		}
	}
}
