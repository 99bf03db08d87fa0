package numfmt_test

import (
	"errors"
	"time"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/internal/numfmt"
)

// never and the others are rules by a short name.
var (
	never    = calendar.Rule{}
	daily    = calendar.Rule{Every: calendar.Day}
	weekly   = calendar.Rule{Every: calendar.Week}
	monthly  = calendar.Rule{Every: calendar.Month}
	quarter  = calendar.Rule{Every: calendar.Quarter}
	yearly   = calendar.Rule{Every: calendar.Year}
	fiscal   = calendar.Rule{Every: calendar.Year, FirstMonth: time.April}
	april    = calendar.Rule{Every: calendar.Quarter, FirstMonth: time.April}
	february = calendar.Rule{Every: calendar.Quarter, FirstMonth: time.February}
)

// tester is a test, or one of rapid's.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func parse(t tester, pattern string, rule calendar.Rule) numfmt.Format {
	t.Helper()
	f, err := numfmt.Parse(pattern, rule)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// periodWith returns the first day of the period of a day, in the plainest way: zero where a sequence never restarts.
func periodWith(rule calendar.Rule, day time.Time) calendar.Date {
	if rule.Every == 0 {
		return 0
	}
	for !begins(rule, day) {
		day = day.AddDate(0, 0, -1)
	}
	return calendar.DateOf(day)
}

// begins reports whether a period begins with a day. With the first day of the calendar one of each rule does.
func begins(rule calendar.Rule, day time.Time) bool {
	months := int(day.Month()) - int(max(1, rule.FirstMonth)) + 12
	switch {
	case calendar.DateOf(day) == 1_01_01 || rule.Every == calendar.Day:
		return true
	case rule.Every == calendar.Week:
		return day.Weekday() == time.Monday
	case rule.Every == calendar.Month:
		return day.Day() == 1
	case rule.Every == calendar.Quarter:
		return day.Day() == 1 && months%3 == 0
	default:
		return day.Day() == 1 && months%12 == 0
	}
}

// checkPrinted fails unless the format reads what it prints.
func checkPrinted(t tester, f numfmt.Format, period calendar.Date, n uint64) string {
	t.Helper()
	text := string(f.Append(nil, period, n))
	if p, got, err := f.Parse(text); err != nil || p != period || got != n {
		t.Fatalf("%v prints %d of %v as %q: read %d of %v, %v", f, n, period, text, got, p, err)
	}
	return text
}

// checkRead fails unless what the format reads is what it prints. Other text it must refuse in the right way.
func checkRead(t tester, f numfmt.Format, text string) (ok bool) {
	t.Helper()
	p, n, err := f.Parse(text)
	switch {
	case err == nil && string(f.Append(nil, p, n)) != text:
		t.Fatalf("%v reads %q as %d of %v, and prints %q", f, text, n, p, f.Append(nil, p, n))
	case err != nil && (!errors.Is(err, numfmt.ErrText) || p != 0 || n != 0):
		t.Fatalf("%v: %q: got %d of %v, %v, want ErrText", f, text, n, p, err)
	}
	return err == nil
}

// checkList fails if formats of a list read a text as different numbers, or the list reads it in another way.
func checkList(t tester, fs numfmt.Formats, patterns []string, rule calendar.Rule, text string) {
	t.Helper()
	period, n, err := fs.Parse(text)
	if err != nil && (!errors.Is(err, numfmt.ErrText) || period != 0 || n != 0) {
		t.Fatalf("%q: %q: got %d of %v, %v, want ErrText", patterns, text, n, period, err)
	}
	for _, pattern := range patterns {
		f := parse(t, pattern, rule)
		if !checkRead(t, f, text) {
			continue
		}
		if p, m, _ := f.Parse(text); err != nil || p != period || m != n {
			t.Fatalf("%q: %q: got %d of %v, %v, but %d of %v of %q", patterns, text, n, period, err, m, p, pattern)
		}
	}
}
