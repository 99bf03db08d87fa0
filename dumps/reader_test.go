package dumps

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
)

// TestLineFields: a line has the fields of a dump, what is not there is left out, and never null.
func TestLineFields(t *testing.T) {
	m := anAppend()
	m.Trace = 1<<63 - 1
	text := lineOf(t, m)
	l, err := ParseLine([]byte(text))
	check(t, err)
	if time.Since(l.Time).Abs() > time.Hour || l.Trace != m.Trace || l.Correlation != m.Request {
		t.Errorf("got %+v", l)
	}
	l.Time, l.Body = time.Time{}, nil
	want := Line{
		Group: "partition", Key: "7", Number: 1, Trace: m.Trace, Direction: In, Class: ClassRuntime, Message: "Append", Protocol: "messages",
		Kind: Request, Correlation: 1<<53 - 1,
	}
	if !reflect.DeepEqual(l, want) {
		t.Errorf("got %+v, want %+v", l, want)
	}
	bare := lineOf(t, actors.Traffic{Key: actors.Key{Group: "g"}, Message: &messages.Stop{}})
	var fields map[string]any
	check(t, json.Unmarshal([]byte(bare), &fields))
	for _, name := range []string{"k", "n", "t", "c"} {
		if _, there := fields[name]; there {
			t.Errorf("got %s, want no %s", bare, name)
		}
	}
	if strings.Contains(bare, "null") || len(fields) != 9 {
		t.Errorf("got %s", bare)
	}
}

// TestReadGoesOn: a line that is none is told with its place, and the others are read.
func TestReadGoesOn(t *testing.T) {
	good := lineOf(t, anAppend())
	text := good + "\n" + good[:20] + "\n\n" + `{"g":"x"}` + "\n" + good + "\n" + good // the last one has no end
	var places []string
	lines := 0
	for _, err := range Read(iotest.OneByteReader(strings.NewReader(text))) {
		if err != nil {
			if !errors.Is(err, ErrLine) {
				t.Fatal(err)
			}
			place, _, _ := strings.Cut(err.Error(), ":")
			places = append(places, place)
			continue
		}
		lines++
	}
	if lines != 3 || strings.Join(places, ",") != "line 2,line 4" {
		t.Errorf("got %d lines, and %q", lines, places)
	}
	broken := errors.New("broken")
	var last error
	for _, err := range Read(io.MultiReader(strings.NewReader(good+"\n"), iotest.ErrReader(broken))) {
		last = err
	}
	if !errors.Is(last, broken) {
		t.Errorf("got %v", last)
	}
	var long []error
	for _, err := range Read(io.MultiReader(strings.NewReader(strings.Repeat("x", maxLine+1) + "\n" + good + "\n"))) {
		long = append(long, err)
	}
	if len(long) != 2 || !errors.Is(long[0], ErrLine) || long[1] != nil {
		t.Errorf("got %v", long)
	}
}

// FuzzRead: whatever a file has, it is read to its end; each line of a dump is the same when it is written again.
func FuzzRead(f *testing.F) {
	good := lineOf(f, anAppend())
	f.Add([]byte(good + "\n"))
	f.Add([]byte(good[:30] + "\n" + good))
	f.Add([]byte(`{"ts":"2026-11-23T20:00:34.1Z","g":"g","s":1,"d":"Out","mk":"Regular","m":null}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		bad, lines := 0, []Line(nil)
		for l, err := range Read(bytes.NewReader(file)) {
			if err != nil {
				if !errors.Is(err, ErrLine) {
					t.Fatal(err)
				}
				bad++
				continue
			}
			again, err := json.Marshal(l)
			check(t, err)
			other, err := ParseLine(again)
			if err != nil {
				t.Fatalf("%v of %s", err, again)
			}
			if !other.Time.Equal(l.Time) {
				t.Fatalf("got %v, want %v", other.Time, l.Time)
			}
			lines = append(lines, l)
			l.Time, other.Time, l.Body, other.Body = time.Time{}, time.Time{}, nil, nil // a body may be spaced in another way
			if !reflect.DeepEqual(l, other) {
				t.Fatalf("got %+v, want %+v", other, l)
			}
		}
		if most := bytes.Count(file, []byte("\n")) + 1; bad+len(lines) > most {
			t.Fatalf("%d lines of %d", bad+len(lines), most)
		}
		SortByTime(lines)
		if exchanges := Join(lines); len(exchanges) > len(lines) {
			t.Fatalf("%d exchanges of %d lines", len(exchanges), len(lines))
		}
		Holes(lines)
	})
}
