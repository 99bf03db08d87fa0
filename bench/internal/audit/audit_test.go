package audit

import (
	"strings"
	"testing"
	"time"
)

// at is an event of a log with one number as its position.
func at(log int, position int64, writer int, number uint64) Event {
	return Event{Log: log, Position: Position{position}, Writer: writer, Number: number}
}

// written are the writes of 2 writers that were acknowledged 3 events each, at the same
// time.
func written(t *testing.T, acknowledged time.Time) *Writes {
	t.Helper()
	w := NewWrites(2)
	w.begin = acknowledged.Add(-time.Hour)
	for writer := range 2 {
		for n := range uint64(3) {
			if err := w.Acknowledge(writer, n+1, acknowledged); err != nil {
				t.Fatal(err)
			}
		}
	}
	return w
}

// all is what a reader sees of them that sees everything.
func all() []Event {
	return []Event{at(0, 1, 0, 1), at(0, 2, 1, 1), at(0, 3, 1, 2), at(0, 4, 0, 2), at(0, 5, 0, 3), at(0, 6, 1, 3)}
}

func TestPlantedStreams(t *testing.T) {
	for name, tt := range map[string]struct {
		stream                         []Event
		seen, skipped, twice, disorder uint64
	}{
		"everything":                            {stream: all(), seen: 6},
		"nothing":                               {skipped: 6},
		"one left out":                          {stream: append(all()[:2], all()[3:]...), seen: 5, skipped: 1},
		"the last left out":                     {stream: all()[:5], seen: 5, skipped: 1},
		"the first left out":                    {stream: all()[1:], seen: 5, skipped: 1},
		"one twice":                             {stream: append(all(), at(0, 6, 1, 3)), seen: 6, twice: 1},
		"one twice, later and at another place": {stream: append(all(), at(0, 7, 0, 1), at(0, 7, 0, 1)), seen: 6, twice: 2},
		"one twice, another never":              {stream: append(all()[:5], at(0, 5, 0, 3)), seen: 5, skipped: 1, twice: 1},
		"one late": {
			stream: []Event{at(0, 1, 0, 1), at(0, 3, 1, 2), at(0, 4, 0, 2), at(0, 2, 1, 1), at(0, 5, 0, 3), at(0, 6, 1, 3)},
			seen:   6, disorder: 1,
		},
		"one early": {
			stream: []Event{at(0, 5, 0, 3), at(0, 1, 0, 1), at(0, 2, 1, 1), at(0, 3, 1, 2), at(0, 4, 0, 2), at(0, 6, 1, 3)},
			seen:   6, disorder: 4,
		},
		"a position for two": {
			stream: []Event{at(0, 1, 0, 1), at(0, 1, 1, 1), at(0, 3, 1, 2), at(0, 4, 0, 2), at(0, 5, 0, 3), at(0, 6, 1, 3)},
			seen:   6, disorder: 1,
		},
		"positions rise, a writer's events do not": {
			stream: []Event{at(0, 1, 0, 1), at(0, 2, 1, 2), at(0, 3, 1, 1), at(0, 4, 0, 2), at(0, 5, 0, 3), at(0, 6, 1, 3)},
			seen:   6, disorder: 1,
		},
		"two logs, each in order": {
			stream: []Event{at(0, 1, 0, 1), at(1, 1, 0, 3), at(0, 2, 0, 2), at(1, 2, 1, 2), at(0, 3, 1, 1), at(1, 3, 1, 3)},
			seen:   6,
		},
		"two logs, one out of order": {
			stream: []Event{at(0, 1, 0, 1), at(1, 2, 1, 2), at(0, 2, 0, 2), at(1, 1, 0, 3), at(0, 3, 1, 1), at(1, 3, 1, 3)},
			seen:   6, disorder: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			r := NewReader(written(t, now), now)
			for _, e := range tt.stream {
				if err := r.See(e, now); err != nil {
					t.Fatal(err)
				}
			}
			o, err := r.Outcome(0)
			if err != nil || o.Seen != tt.seen || o.Skipped != tt.skipped || o.Twice != tt.twice || o.OutOfOrder != tt.disorder {
				t.Errorf("got %d seen, %d skipped, %d twice, %d out of order, %v, want %d, %d, %d, %d",
					o.Seen, o.Skipped, o.Twice, o.OutOfOrder, err, tt.seen, tt.skipped, tt.twice, tt.disorder)
			}
			if got := uint64(o.Lags.TotalCount()); got != tt.seen {
				t.Errorf("got %d lags, want %d", got, tt.seen)
			}
		})
	}
}

// Of positions with two elements the second one counts where the first ones are equal.
func TestPositionsOfTwoElements(t *testing.T) {
	now := time.Now()
	r := NewReader(written(t, now), now)
	for i, p := range []Position{{1, 9}, {2, 1}, {2, 2}, {2, 1}, {1, 10}, {3, 0}} {
		e := Event{Position: p, Writer: i / 3, Number: uint64(i%3) + 1}
		if err := r.See(e, now); err != nil {
			t.Fatal(err)
		}
	}
	if o, err := r.Outcome(0); o.OutOfOrder != 2 || err != nil {
		t.Errorf("got %d out of order, %v, want 2", o.OutOfOrder, err)
	}
}

func TestLags(t *testing.T) {
	acknowledged := time.Now()
	for name, tt := range map[string]struct {
		from, seen time.Duration // since the acknowledgement
		event      Event
		want       time.Duration // -1: none is noted
	}{
		"later":                            {seen: 20 * time.Millisecond, event: at(0, 1, 0, 1), want: 20 * time.Millisecond},
		"before the acknowledgement":       {seen: -20 * time.Millisecond, event: at(0, 1, 0, 1), want: 0},
		"acknowledged before the window":   {from: time.Millisecond, seen: 20 * time.Millisecond, event: at(0, 1, 0, 1), want: -1},
		"not acknowledged yet":             {seen: 20 * time.Millisecond, event: at(0, 1, 0, 4), want: 0},
		"not acknowledged, before windows": {from: time.Minute, seen: 20 * time.Millisecond, event: at(0, 1, 0, 4), want: -1},
	} {
		r := NewReader(written(t, acknowledged), acknowledged.Add(tt.from))
		if err := r.See(tt.event, acknowledged.Add(tt.seen)); err != nil {
			t.Fatal(err)
		}
		if tt.want < 0 {
			if n := r.lags.TotalCount(); n != 0 {
				t.Errorf("%s: got %d lags, want none", name, n)
			}
			continue
		}
		got := time.Duration(r.lags.Max())
		if r.lags.TotalCount() != 1 || got < tt.want*999/1000 || got > tt.want*1001/1000+time.Microsecond {
			t.Errorf("%s: got %d lags, the largest %v, want %v", name, r.lags.TotalCount(), got, tt.want)
		}
	}
}

// What nobody has acknowledged may come from calls that failed, and from nowhere else.
func TestEventsThatWereNotAcknowledged(t *testing.T) {
	for failed, want := range map[uint64]string{0: "2 events that were not acknowledged", 1: "2 events", 2: ""} {
		now := time.Now()
		w := written(t, now)
		// Event 4 failed.
		if err := w.Acknowledge(0, 5, now); err != nil {
			t.Fatal(err)
		}
		r := NewReader(w, now)
		for _, e := range append(all(), at(0, 7, 0, 4), at(0, 8, 0, 5), at(0, 9, 1, 4)) {
			if err := r.See(e, now); err != nil {
				t.Fatal(err)
			}
		}
		o, err := r.Outcome(failed)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || o.Skipped != 0 {
			t.Errorf("%d failed: got %+v, %v, want %q", failed, o, err, want)
		}
	}
}

func TestWrongEvents(t *testing.T) {
	now := time.Now()
	w := written(t, now)
	r := NewReader(w, now)
	for name, err := range map[string]error{
		"acknowledged again":            w.Acknowledge(0, 3, now),
		"of no writer":                  w.Acknowledge(2, 1, now),
		"of a writer below 0":           w.Acknowledge(-1, 1, now),
		"seen, of no writer":            r.See(at(0, 1, 2, 1), now),
		"seen, of a writer below 0":     r.See(at(0, 1, -1, 1), now),
		"seen, event 0":                 r.See(at(0, 1, 0, 0), now),
		"seen, with an absurd number":   r.See(at(0, 1, 0, 1<<40), now),
		"acknowledged, with the number": w.Acknowledge(1, 0, now),
	} {
		if err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}
