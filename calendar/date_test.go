package calendar_test

import (
	"errors"
	"testing"
	"time"

	"github.com/partita-go/partita/calendar"
)

// A date is what it says, and nothing else is one.
func TestDate(t *testing.T) {
	d, err := calendar.ParseDate("2024-02-29")
	if err != nil || d != 20240229 || d.String() != "2024-02-29" || !d.Valid() {
		t.Errorf("got %d %v, %v", d, d, err)
	}
	if d.Year() != 2024 || d.Month() != time.February || d.Day() != 29 {
		t.Errorf("got %d, %d, %d", d.Year(), d.Month(), d.Day())
	}
	for _, wrong := range []string{"", "2026-02-29", "2026-2-3", "0000-01-01", "20260329", "2026-03-29T00:00:00Z"} {
		if d, err := calendar.ParseDate(wrong); !errors.Is(err, calendar.ErrDate) {
			t.Errorf("%q: got %v, %v, want ErrDate", wrong, d, err)
		}
	}
	for _, wrong := range []calendar.Date{0, 20260229, 20261301, 20260100, 99991232, 100000101} {
		if wrong.Valid() {
			t.Errorf("%d counts as a date", wrong)
		}
	}
}

// A time's date is that of its own zone, and years that cannot be written have none.
func TestDateOf(t *testing.T) {
	late := time.Date(2026, 3, 29, 23, 30, 0, 0, time.FixedZone("", 3600))
	for _, c := range []struct {
		t    time.Time
		want calendar.Date
	}{{late, 20260329}, {late.UTC(), 20260329}, {late.Add(time.Hour), 20260330}, {time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), 0}} {
		if got := calendar.DateOf(c.t); got != c.want {
			t.Errorf("%v: got %v, want %v", c.t, got, c.want)
		}
	}
	if got := calendar.Date(0).String(); got != "none" {
		t.Errorf("got %q", got)
	}
}
