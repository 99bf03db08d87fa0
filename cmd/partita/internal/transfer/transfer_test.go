package transfer

import (
	"bytes"
	"errors"
	"iter"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
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

// A line of another export, which is right by itself, is not taken for the one that was there.
func TestChecksumsGoOn(t *testing.T) {
	events := fewEvents()
	h := Header{Descriptor: testDescriptor(), Events: 3}
	sound := bytes.SplitAfter(writeAll(t, h, slices.Values(events)), []byte("\n"))
	events[0].Body = []byte("other")
	sound[1] = bytes.SplitAfter(writeAll(t, h, slices.Values(events)), []byte("\n"))[1]
	_, _, err := readAll(bytes.Join(sound, nil))
	if wrong, ok := errors.AsType[*LineError](err); !ok || wrong.Line != 3 {
		t.Errorf("got %v, want line 3", err)
	}
}

// Every rule of a descriptor is in the first line.
func TestEveryRuleIsInTheHeader(t *testing.T) {
	d := testDescriptor()
	d.Kinds = append(d.Kinds, messages.Kind{ID: 2, Name: "none"})
	h := Header{Descriptor: d.Normalized(), Launches: []uint32{1, 9}, Only: bolt.Part{Workspaces: []messages.WSID{1 << 63}}}
	got, _, err := readAll(writeAll(t, h, slices.Values([]messages.Event(nil))))
	if err != nil || !reflect.DeepEqual(got, h) {
		t.Errorf("got %+v, %v, want %+v", got, err, h)
	}
	// Whoever adds a field must add it there, and here.
	for of, want := range map[reflect.Type]int{
		reflect.TypeFor[messages.Descriptor](): 4, reflect.TypeFor[messages.Kind](): 3, reflect.TypeFor[messages.Sequence](): 6,
		reflect.TypeFor[messages.Restart](): 4, reflect.TypeFor[calendar.Rule](): 2, reflect.TypeFor[storage.Subscription](): 6,
		reflect.TypeFor[storage.ParkedEvent](): 5, reflect.TypeFor[storage.SubscriptionSource](): 3,
	} {
		if of.NumField() != want {
			t.Errorf("%v: got %d fields, want %d: is the new one exported?", of, of.NumField(), want)
		}
	}
}

// A line that is too long ends the reading.
func TestLineIsTooLong(t *testing.T) {
	l := newLineReader(endless{})
	l.most = 1 << 20
	if buf, err := l.next(nil); !errors.Is(err, errTooLong) || len(buf) > 2*l.most {
		t.Errorf("got %d bytes, %v", len(buf), err)
	}
}

// endless has no line feed.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

// What cannot be read again is not written.
func TestUnwritableEvent(t *testing.T) {
	for what, change := range map[string]func(*messages.Event){
		"kind": func(e *messages.Event) { e.Kind++ },
		"time": func(e *messages.Event) { e.RegisteredAt = math.MaxInt64 },
	} {
		e := usual()
		change(&e)
		if b := encodeEvents(eventBatch{events: []messages.Event{e}}); b.err == nil {
			t.Errorf("%s: got %s", what, b.text)
		}
	}
}
