package numfmt_test

import (
	"testing"
	"time"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/internal/numfmt"
)

// FuzzPattern: a pattern is refused, or the format reads what it prints.
func FuzzPattern(f *testing.F) {
	for i, pattern := range []string{
		"{n}", "{yyyy}{mm}{dd}-{n}", "{gggg}-W{ww}-{n:03}", "{n}{mm}{yyyy}", "{yyyy}Q{q}{n}", "INV/{yyyy}/{n:04}", "{yyyy}/{fy}{n}", "{{{n}}}", "{n:021}", "{", "é{n}\x00",
	} {
		f.Add(pattern, uint8(i), uint8(0), uint32(730_000+i), uint64(i))
	}
	f.Fuzz(func(t *testing.T, pattern string, every, first uint8, days uint32, n uint64) {
		rule := calendar.Rule{Every: calendar.Unit(every % 7), FirstMonth: time.Month(first % 14)}
		format, err := numfmt.Parse(pattern, rule)
		if err != nil {
			wantErrPattern(t, err)
			return
		}
		period := periodWith(rule, time.Date(1, 1, 1+int(days%3_652_059), 0, 0, 0, 0, time.UTC))
		checkPrinted(t, format, period, n)
		if again := parse(t, format.String(), rule); string(again.Append(nil, period, n)) != string(format.Append(nil, period, n)) {
			t.Errorf("%q: prints something else when its text is parsed", pattern)
		}
	})
}

// FuzzText: a text is refused by a list of formats, or is what a number prints, whichever of them reads it.
func FuzzText(f *testing.F) {
	lists := []struct {
		rule     calendar.Rule
		patterns []string
	}{
		{never, []string{"{n:04}", "{n}", "INV-{n}", "{n}-{{}}"}},
		{daily, []string{"{yyyy}{mm}{dd}-{n}", "{yyyy}-{mm}-{dd}/{n:03}", "{dd}.{mm}.{yyyy} {n}"}},
		{weekly, []string{"{gggg}W{ww}{n}", "{gggg}-W{ww}-{n:02}"}},
		{fiscal, []string{"{yyyy}/{fy}-{n}", "{yyyy}-{n:04}", "FY{fy}-{n}"}},
	}
	for i, text := range []string{"0001", "20260329-1", "2026W531", "2025/2026-1", "FY0000-1", "+1", "18446744073709551616"} {
		f.Add(uint8(i), text)
	}
	f.Fuzz(func(t *testing.T, which uint8, text string) {
		list := lists[int(which)%len(lists)]
		fs, err := numfmt.ParseFormats(list.patterns, list.rule)
		if err != nil {
			t.Fatal(err)
		}
		checkList(t, fs, list.patterns, list.rule, text)
	})
}
