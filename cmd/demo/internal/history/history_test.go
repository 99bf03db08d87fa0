package history

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/calendar"
)

const line = `{"ts":1301662084,"tz":"+0200","repo":"apache/pekko","author":"44fcba60c6","commit":"384332da392b","files":1,"add":34,"del":23}`

func TestCommits(t *testing.T) {
	var last time.Time
	repos, authors, ids := make(map[string]int), make(map[uint64]int), make(map[string]bool)
	nights := 0
	for c, err := range Commits() {
		if err != nil {
			t.Fatal(err)
		}
		if c.At.Before(last) {
			t.Fatalf("commit %s of %v comes after one of %v", c.ID, c.At, last)
		}
		last = c.At
		repos[c.Repo]++
		authors[c.Workspace()]++
		ids[c.ID] = true
		if c.Night() {
			nights++
		}
	}
	for _, tt := range []struct {
		what      string
		got, want int
	}{
		{"commits", len(ids), Count},
		{"repositories", len(repos), 20},
		{"commits of apache/pekko", repos["apache/pekko"], 16468},
		{"authors", len(authors), 4030},
		{"authors 0", authors[0], 0},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.what, tt.got, tt.want)
		}
	}
	if nights < Count/20 || nights > Count/3 {
		t.Errorf("got %d commits at night of %d", nights, Count)
	}
}

func TestCommitsTwiceAndStop(t *testing.T) {
	seq := Commits()
	for range 2 {
		n := 0
		for c, err := range seq {
			if err != nil {
				t.Fatal(err)
			}
			if want := "384332da392b"; n == 0 && c.ID != want {
				t.Fatalf("first commit: got %s, want %s", c.ID, want)
			}
			if n++; n == 3 {
				break
			}
		}
	}
}

func TestParse(t *testing.T) {
	got, err := newInterned().parse([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	if _, offset := got.At.Zone(); offset != 7200 || got.At.Unix() != 1301662084 || got.At.Hour() != 14 {
		t.Errorf("got time %v", got.At)
	}
	if got.Date() != 20110401 {
		t.Errorf("got date %v", got.Date())
	}
	got.At = time.Time{}
	want := Commit{Repo: "apache/pekko", Author: "44fcba60c6", ID: "384332da392b", Files: 1, Added: 34, Deleted: 23}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := want.Workspace(), uint64(0x44fcba60c6); got != want {
		t.Errorf("got workspace %x, want %x", got, want)
	}
}

func TestNight(t *testing.T) {
	for hour, want := range map[int]bool{21: false, 22: true, 23: true, 0: true, 5: true, 6: false, 12: false} {
		at := time.Date(2020, 1, 1, hour, 59, 0, 0, time.FixedZone("-0700", -7*3600))
		if got := (Commit{At: at}).Night(); got != want {
			t.Errorf("%v: got %v, want %v", at, got, want)
		}
	}
}

// The date is that of the author's clock.
func TestDate(t *testing.T) {
	for hours, want := range map[int]calendar.Date{-12: 20191231, 0: 20200101, 14: 20200101, 24: 20200102} {
		at := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).In(time.FixedZone("", hours*3600))
		if got := (Commit{At: at}).Date(); got != want {
			t.Errorf("%v: got %v, want %v", at, got, want)
		}
	}
}

func zipped(t testing.TB, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestDamaged(t *testing.T) {
	good := line + "\n"
	whole := zipped(t, strings.Repeat(good, 3))
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-5] ^= 1 // the checksum
	change := func(from, to string) []byte {
		return zipped(t, good+strings.Replace(good, from, to, 1)+good)
	}
	for _, tt := range []struct {
		name  string
		input []byte
		good  int
		want  string
	}{
		{"not gzipped", []byte(good), 0, "history: not gzipped"},
		{"empty", nil, 0, "history: not gzipped"},
		{"cut off", whole[:len(whole)-12], 3, "history: line 4: unexpected EOF"},
		{"checksum", flipped, 3, "history: line 4: gzip: invalid checksum"},
		{"line cut off", zipped(t, good+good[:40]), 1, "line 2: syntax: at byte 41"},
		{"empty line", zipped(t, good+"\n"+good), 1, `line 2: syntax: at byte 1: got "", want "{\"ts\":"`},
		{"line too long", zipped(t, good+strings.Repeat("x", 1<<17)), 1, "line 2: bufio.Scanner: token too long"},
		{"no number", change(`"ts":1301662084`, `"ts":x`), 1, "at byte 7: got \"x,"},
		{"huge number", change(`"add":34`, `"add":1234567890123456789`), 1, `want ",\"del\":"`},
		{"negative", change(`"files":1`, `"files":-1`), 1, "want a number"},
		{"zone", change("+0200", "+0260"), 1, "line 2: time zone: got \"+0260\""},
		{"zone", change("+0200", "+1500"), 1, "time zone"},
		{"zone", change("+0200", "00200"), 1, "time zone"},
		{"zone", change("+0200", "+02x0"), 1, "time zone"},
		{"author", change("44fcba60c6", "44fcba60g6"), 1, "want 10 hexadecimal digits"},
		{"author too short", change("44fcba60c6", "44fcba60c"), 1, "want 10 hexadecimal digits"},
		{"commit too long", change("384332da392b", "384332da392bb"), 1, `got "b\",`},
		{"repo", change("apache/pekko", ""), 1, "want a text"},
		{"repo escaped", change("apache/pekko", `apache\/pekko`), 1, `want "\",\"author\":\""`},
		{"more", change(`23}`, `23} `), 1, "want the end of the line"},
	} {
		n := 0
		var last error
		for _, err := range Decode(bytes.NewReader(tt.input)) {
			if last != nil {
				t.Fatalf("%s: the sequence goes on after an error", tt.name)
			}
			if last = err; err == nil {
				n++
			}
		}
		if n != tt.good || last == nil || !strings.Contains(last.Error(), tt.want) {
			t.Errorf("%s: got %d commits and %v, want %d and an error with %q", tt.name, n, last, tt.good, tt.want)
		}
	}
}

// FuzzParse: nothing panics, and what is accepted says the same when it is
// written again.
func FuzzParse(f *testing.F) {
	f.Add([]byte(line))
	f.Add([]byte(strings.Replace(line, "+0200", "-1130", 1)))
	f.Add([]byte(line[:50]))
	f.Fuzz(func(t *testing.T, input []byte) {
		c, err := newInterned().parse(input)
		if err != nil {
			return
		}
		text := fmt.Sprintf(`{"ts":%d,"tz":"%s","repo":"%s","author":"%s","commit":"%s","files":%d,"add":%d,"del":%d}`,
			c.At.Unix(), c.At.Location(), c.Repo, c.Author, c.ID, c.Files, c.Added, c.Deleted)
		again, err := newInterned().parse([]byte(text))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if !again.At.Equal(c.At) {
			t.Errorf("got %v, want %v", again.At, c.At)
		}
		again.At = c.At
		if again != c {
			t.Errorf("got %+v, want %+v", again, c)
		}
	})
}

func BenchmarkCommits(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for _, err := range Commits() {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != Count {
			b.Fatalf("got %d commits, want %d", n, Count)
		}
	}
	b.ReportMetric(Count*float64(b.N)/b.Elapsed().Seconds(), "commits/s")
}
