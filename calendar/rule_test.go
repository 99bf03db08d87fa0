package calendar_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/partita-go/partita/calendar"
)

var units = []calendar.Unit{calendar.Day, calendar.Week, calendar.Month, calendar.Quarter, calendar.Year}

func TestUnit(t *testing.T) {
	for _, u := range append(units, calendar.Never) {
		if got, err := calendar.ParseUnit(u.String()); got != u || err != nil {
			t.Errorf("%v: got %v, %v", u, got, err)
		}
	}
	for _, wrong := range []string{"", "Day", "days", "unit(9)"} {
		if u, err := calendar.ParseUnit(wrong); u != calendar.Never || !errors.Is(err, calendar.ErrRule) {
			t.Errorf("%q: got %v, %v, want ErrRule", wrong, u, err)
		}
	}
	for u, want := range map[calendar.Unit]string{calendar.Year + 1: "unit(6)", 9: "unit(9)"} {
		if got := u.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, r := range []calendar.Rule{{}, {Every: calendar.Week}, {Every: calendar.Year, FirstMonth: time.January},
		{Every: calendar.Year, FirstMonth: time.December}, {Every: calendar.Quarter, FirstMonth: time.February}} {
		if err := r.Validate(); err != nil {
			t.Errorf("%v: %v", r, err)
		}
	}
	for _, r := range []calendar.Rule{{Every: 6}, {Every: calendar.Year, FirstMonth: 13}, {Every: calendar.Year, FirstMonth: -1},
		{FirstMonth: time.April}, {Every: calendar.Month, FirstMonth: time.April}, {Every: calendar.Week, FirstMonth: time.January}} {
		if err := r.Validate(); !errors.Is(err, calendar.ErrRule) {
			t.Errorf("%v: got %v, want ErrRule", r, err)
		}
	}
}

func TestPeriodOf(t *testing.T) {
	for _, c := range []struct {
		every calendar.Unit
		first time.Month
		of    calendar.Date
		want  calendar.Date
	}{
		{calendar.Never, 0, 20260329, 0},
		{calendar.Day, 0, 20240229, 20240229},
		{calendar.Day, 0, 20260229, 0},
		{calendar.Day, 0, 0, 0},
		{9, 0, 20260329, 0},
		// 2026 has a week 53, of which three days lie in 2027.
		{calendar.Week, 0, 20261227, 20261221},
		{calendar.Week, 0, 20261228, 20261228},
		{calendar.Week, 0, 20270103, 20261228},
		{calendar.Week, 0, 20270104, 20270104},
		// The first week of 2025 begins in 2024.
		{calendar.Week, 0, 20241231, 20241230},
		{calendar.Week, 0, 20240229, 20240226},
		{calendar.Week, 0, 10101, 10101},
		{calendar.Month, 0, 20240229, 20240201},
		{calendar.Month, 0, 20261231, 20261201},
		{calendar.Quarter, 0, 20260331, 20260101},
		{calendar.Quarter, 0, 20260401, 20260401},
		{calendar.Quarter, time.February, 20260430, 20260201},
		{calendar.Quarter, time.February, 20260131, 20251101},
		{calendar.Quarter, time.December, 20260331, 20260301},
		{calendar.Year, 0, 20260101, 20260101},
		{calendar.Year, 0, 20261231, 20260101},
		{calendar.Year, time.April, 20260331, 20250401},
		{calendar.Year, time.April, 20260401, 20260401},
		{calendar.Year, time.March, 20240229, 20230301},
		{calendar.Year, time.December, 20261130, 20251201},
		{calendar.Year, time.July, 10630, 10101},
		{calendar.Year, time.July, 10701, 10701},
	} {
		if got := (calendar.Rule{Every: c.every, FirstMonth: c.first}).PeriodOf(c.of); got != c.want {
			t.Errorf("every %v from %v: %v lies in %v, want %v", c.every, c.first, c.of, got, c.want)
		}
	}
}

func TestAdd(t *testing.T) {
	fiscal := calendar.Rule{Every: calendar.Year, FirstMonth: time.July}
	for _, c := range []struct {
		rule calendar.Rule
		of   calendar.Date
		n    int
		want calendar.Date
	}{
		{calendar.Rule{}, 20260329, 1, 0},
		{daily, 0, 1, 0},
		{daily, 20240228, 1, 20240229},
		{daily, 20240228, 2, 20240301},
		{daily, 20260101, -1, 20251231},
		{daily, 99991231, 1, 99991231},
		{daily, 10101, -1, 10101},
		{daily, 20260329, 1 << 62, 99991231},
		{daily, 20260329, -1 << 63, 10101},
		{calendar.Rule{Every: calendar.Week}, 20261221, 2, 20270104},
		{calendar.Rule{Every: calendar.Week}, 20270103, -1, 20261221},
		{calendar.Rule{Every: calendar.Week}, 99991231, 1, 99991227},
		{calendar.Rule{Every: calendar.Month}, 20240131, 1, 20240201},
		{calendar.Rule{Every: calendar.Month}, 20240101, -14, 20221101},
		{calendar.Rule{Every: calendar.Quarter}, 20261001, 1, 20270101},
		{fiscal, 20260701, 3, 20290701},
		{fiscal, 20260630, 0, 20250701},
		{fiscal, 10101, 1, 10701},
		{fiscal, 10701, -1, 10101},
		{fiscal, 99990701, 1, 99990701},
		{fiscal, 20260701, 1 << 62, 99990701},
	} {
		if got := c.rule.Add(c.of, c.n); got != c.want {
			t.Errorf("every %v: %v + %d: got %v, want %v", c.rule.Every, c.of, c.n, got, c.want)
		}
	}
}

// TestPeriodsAreDays: a date and the day after it lie in the same period, or the second one is the first day of the
// next one. ISO weeks are those of package time.
func TestPeriodsAreDays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := drawRule(t)
		day := time.Date(1, 1, rapid.IntRange(1, 3_652_000).Draw(t, "day"), 0, 0, 0, 0, time.UTC)
		for range 40 {
			next := day.AddDate(0, 0, 1)
			of, after := rule.PeriodOf(calendar.DateOf(day)), rule.PeriodOf(calendar.DateOf(next))
			if same := sameUnit(rule, day, next); same != (of == after) {
				t.Fatalf("%v: got %v and %v", day, of, after)
			}
			if of != after && (after != calendar.DateOf(next) || rule.Add(of, 1) != after || rule.Add(after, -1) != of) {
				t.Fatalf("%v: got %v after %v", next, after, of)
			}
			day = next
		}
	})
}

func drawRule(t *rapid.T) calendar.Rule {
	r := calendar.Rule{Every: rapid.SampledFrom(units).Draw(t, "unit")}
	if r.Every >= calendar.Quarter {
		r.FirstMonth = time.Month(rapid.IntRange(0, 12).Draw(t, "first month"))
	}
	return r
}

// sameUnit reports whether two days have the same number: of week, month, quarter or year.
func sameUnit(r calendar.Rule, a, b time.Time) bool {
	number := func(t time.Time) string {
		if r.FirstMonth > 0 {
			t = time.Date(t.Year(), t.Month()-r.FirstMonth+1, 1, 0, 0, 0, 0, time.UTC)
		}
		switch r.Every {
		case calendar.Week:
			year, week := t.ISOWeek()
			return fmt.Sprint(year, week)
		case calendar.Month:
			return t.Format("2006-01")
		case calendar.Quarter:
			return fmt.Sprint(t.Year(), (t.Month()-1)/3)
		case calendar.Year:
			return t.Format("2006")
		default:
			return t.Format(time.DateOnly)
		}
	}
	return number(a) == number(b)
}

// FuzzParse: what is read is written in the same way.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"2026-03-29", "2024-02-29", "0001-01-01", "week", "Europe/Zurich", "UTC", "Local", "right/UTC", "a//b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := calendar.ParseDate(s)
		if err == nil && (d.String() != s || !d.Valid()) || err != nil && (d != 0 || !errors.Is(err, calendar.ErrDate)) {
			t.Errorf("date %q: got %d, %v", s, d, err)
		}
		u, err := calendar.ParseUnit(s)
		if err == nil && u.String() != s || err != nil && (u != 0 || !errors.Is(err, calendar.ErrRule)) {
			t.Errorf("unit %q: got %d, %v", s, u, err)
		}
		z, err := calendar.LoadZone(s)
		if err == nil && z.String() != s || err != nil && (z != calendar.Zone{} || !errors.Is(err, calendar.ErrZone)) {
			t.Errorf("zone %q: got %v, %v", s, z, err)
		}
	})
}
