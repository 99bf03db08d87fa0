package progress

import (
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

// clock is a clock that stands until it is moved.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

func (c *clock) move(d time.Duration) { c.now = c.now.Add(d) }

// screen is what was written, line by line, with each redrawing in a line of its
// own.
func screen(text string) []string {
	text = strings.ReplaceAll(text, "\x1b[K", "")
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\r' || r == '\n' })
}

func check(t *testing.T, got, want []string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestRedrawnLine(t *testing.T) {
	var out strings.Builder
	clock := newClock()
	p := New(Config{Writer: &out, Interactive: true, Width: 74, Now: func() time.Time { return clock.now }})
	p.Add(5) // before the first phase: nothing to show
	p.Phase("replaying", 1000)
	for range 100 { // every 10 ms: only each tenth is shown
		clock.move(10 * time.Millisecond)
		p.Add(5)
		if clock.now.Sub(p.started) > 300*time.Millisecond {
			break
		}
	}
	clock.move(1700 * time.Millisecond)
	p.Set(1000)
	p.Done()
	p.Done()
	check(t, screen(out.String()), []string{
		"replaying: 0 of 1,000, 0%, 0/s",
		"replaying: 50 of 1,000, 5%, 500/s, phase ETA 1.90s",
		"replaying: 100 of 1,000, 10%, 500/s, phase ETA 1.80s",
		"replaying: 150 of 1,000, 15%, 500/s, phase ETA 1.70s",
		"replaying: 1,000 of 1,000, 100%, 498/s",
		"replaying: 1,000 in 2.01s, 498/s",
	})
	if !strings.HasSuffix(out.String(), "\n") {
		t.Error("the last line does not end")
	}
}

func TestRedrawnLineFitsAnyWidth(t *testing.T) {
	for width := 1; width < 150; width++ {
		var out strings.Builder
		clock := newClock()
		p := New(Config{Writer: &out, Interactive: true, Width: width, Now: func() time.Time { return clock.now }})
		p.Phase("überlänge", 73990)
		clock.move(time.Second)
		p.Add(12345)
		clock.move(999 * time.Hour)
		p.Add(1)
		drawn := screen(out.String())
		for _, line := range drawn {
			if got := utf8.RuneCountInString(line); got >= width {
				t.Errorf("width %d: got %d characters: %q", width, got, line)
			}
		}
		if last := drawn[max(len(drawn)-1, 0):]; width >= 80 && !strings.Contains(last[0], "ETA") {
			t.Errorf("width %d: got %q, want everything", width, last)
		}
	}
}

func TestLines(t *testing.T) {
	var out strings.Builder
	clock := newClock()
	p := New(Config{Writer: &out, Now: func() time.Time { return clock.now }})
	p.Phase("reading", 0)
	for range 25 {
		clock.move(100 * time.Millisecond)
		p.Add(1000)
	}
	p.Phase("replaying", 73990)
	for range 45 {
		clock.move(100 * time.Millisecond)
		p.Add(1000)
	}
	p.Done()
	check(t, strings.Split(out.String(), "\n"), []string{
		"reading: 20,000, 10,000/s",
		"reading: 25,000 in 2.50s, 10,000/s",
		"replaying: 20,000 of 73,990, 27%, 10,000/s, phase ETA 5.40s",
		"replaying: 40,000 of 73,990, 54%, 10,000/s, phase ETA 3.40s",
		"replaying: 45,000 of 73,990 in 4.50s, 10,000/s",
		"",
	})
}

func TestOddCounts(t *testing.T) {
	var out strings.Builder
	clock := newClock()
	p := New(Config{Writer: &out, Interactive: true, Width: 76, Now: func() time.Time { return clock.now }})
	p.Phase("more", 10)
	clock.move(time.Second)
	p.Set(20)
	p.Phase("less", 10)
	clock.move(time.Second)
	p.Set(-5)
	p.Done()
	check(t, screen(out.String()), []string{
		"more: 0 of 10, 0%, 0/s",
		"more: 20 of 10, 100%, 20.0/s",
		"more: 20 of 10 in 1.00s, 20.0/s",
		"less: 0 of 10, 0%, 0/s",
		"less: -5 of 10, 0%, -5.00/s",
		"less: -5 of 10 in 1.00s, -5.00/s",
	})
}

// counter counts what reaches it, and fails.
type counter struct{ writes int }

func (c *counter) Write([]byte) (int, error) {
	c.writes++
	return 0, errors.New("gone")
}

func TestConcurrent(t *testing.T) {
	for _, interactive := range []bool{true, false} {
		var out counter
		p := New(Config{Writer: &out, Interactive: interactive})
		p.Phase("counting", 8000)
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for range 1000 {
					p.Add(1)
				}
			})
		}
		group.Wait()
		if p.done != 8000 {
			t.Errorf("got %d, want 8000", p.done)
		}
		p.Done()
		if out.writes == 0 {
			t.Error("nothing was written")
		}
	}
}

func TestFor(t *testing.T) {
	t.Setenv("COLUMNS", "123")
	var out strings.Builder
	c := For(&out)
	if c.Interactive || c.Width != 123 {
		t.Errorf("got %+v", c)
	}
	p := New(c)
	p.Phase("quick", 1)
	p.Add(1)
	p.Done()
	if want := regexp.MustCompile(`^quick: 1 in \S+, \S+/s\n$`); !want.MatchString(out.String()) {
		t.Errorf("got %q", out.String())
	}
}
