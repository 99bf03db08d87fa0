package numfmt_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/internal/numfmt"
)

// Numbers are printed as their patterns say, and read again.
func TestFormat(t *testing.T) {
	for _, c := range []struct {
		pattern string
		rule    calendar.Rule
		period  calendar.Date
		n       uint64
		want    string
	}{
		{"{n}", never, 0, 0, "0"},
		{"{n}", never, 0, math.MaxUint64, "18446744073709551615"},
		{"{n:020}", never, 0, 1, "00000000000000000001"},
		{"{n:01}", never, 0, 10, "10"},
		{"2{n}", never, 0, 2, "22"},
		{"{n}0", never, 0, 100, "1000"},
		{"00{n:02}00", never, 0, 0, "000000"},
		{"№ {n}", never, 0, 7, "№ 7"},
		{"{{n}}{{{n}}}", never, 0, 7, "{n}{7}"},
		{"INV/{yyyy}/{n:04}", yearly, 20260101, 42, "INV/2026/0042"},
		{"INV/{yyyy}/{n:04}", yearly, 20260101, 12345, "INV/2026/12345"},
		{"{yyyy}{n:04}", yearly, 20260101, 7, "20260007"},
		{"{n}{yyyy}", yearly, 10101, 2026, "20260001"},
		{"{yyyy}{mm}{dd}-{n}", daily, 20260329, 1, "20260329-1"},
		{"{dd}.{mm}.{yyyy}/{n}", daily, 20240229, 1, "29.02.2024/1"},
		{"{gggg}-W{ww}-{n}", weekly, 20201228, 3, "2020-W53-3"},
		{"{gggg}-W{ww}-{n}", weekly, 20241230, 3, "2025-W01-3"},
		{"{yyyy}{mm}{n:03}", monthly, 20261101, 3, "202611003"},
		{"{yyyy}Q{q}-{n}", quarter, 20261001, 3, "2026Q4-3"},
		{"{yyyy}-{n}", fiscal, 20260401, 3, "2026-3"},
		{"FY{fy}-{n}", fiscal, 20260401, 3, "FY2027-3"},
		{"{yyyy}/{fy}-{n}", fiscal, 20260401, 3, "2026/2027-3"},
		{"FY{fy}-{n}", yearly, 20260101, 3, "FY2026-3"},
		{"FY{fy}-{n}", calendar.Rule{Every: calendar.Year, FirstMonth: time.January}, 20260101, 3, "FY2026-3"},
		{"FY{fy}-{n}", fiscal, 99990401, 3, "FY0000-3"},
		{"{yyyy}/{fy}-{n}", fiscal, 10101, 3, "0000/0001-3"},
		{"{yyyy}Q{q}-{n}", april, 20260401, 3, "2026Q1-3"},
		{"{yyyy}Q{q}-{n}", april, 20270101, 3, "2026Q4-3"},
		{"FY{fy}Q{q}-{n}", april, 20270101, 3, "FY2027Q4-3"},
		{"FY{fy}Q{q}-{n}", february, 20261101, 3, "FY2027Q4-3"},
		{"FY{fy}Q{q}-{n}", quarter, 20261001, 3, "FY2026Q4-3"},
	} {
		f := parse(t, c.pattern, c.rule)
		if f.String() != c.pattern {
			t.Errorf("got %v, want %s", f, c.pattern)
		}
		if got := checkPrinted(t, f, c.period, c.n); got != c.want {
			t.Errorf("%v: got %q, want %q", f, got, c.want)
		}
	}
}

// Text that nobody printed is refused, and what is told is what would be right.
func TestFormatRefusesText(t *testing.T) {
	for _, c := range []struct {
		pattern string
		rule    calendar.Rule
		text    string
		want    string
	}{
		{"{n}", never, "", "want 1 to 20 bytes"},
		{"{n}", never, "007", `want "7", as that number is printed`},
		{"{n}", never, "+7", "want from byte 0 to 2 the digits of {n}"},
		{"{n}", never, "1_0", "digits of {n}"},
		{"{n}", never, "٣", "digits of {n}"},
		{"{n}", never, "18446744073709551616", "digits of {n}"},
		{"{n}", never, "000000000000000000001", "want 1 to 20 bytes"},
		{"{n:04}", never, "00012", `want "0012"`},
		{"{n:04}", never, "012", "want 4 to 20 bytes"},
		{"A{n}", never, "a1", `want "A1"`},
		{"A{n}", never, "A", "want 2 to 21 bytes"},
		{"{yyyy}{n:04}", yearly, "2026007", "want 8 to 24 bytes"},
		{"{yyyy}-{n}", yearly, "0000-1", `want "0001-1"`},
		{"{yyyy}-{n}", yearly, "+026-1", "want from byte 0 to 4 the digits of {yyyy}"},
		{"{yyyy}{mm}-{n}", monthly, "202613-1", "want a period of the calendar"},
		{"{yyyy}{mm}{dd}-{n}", daily, "20260229-1", "want a period of the calendar"},
		{"{yyyy}Q{q}-{n}", quarter, "2026Q0-1", `want "2025Q4-1"`},
		{"{yyyy}Q{q}-{n}", quarter, "2026Q5-1", `want "2027Q1-1"`},
		{"{gggg}W{ww}-{n}", weekly, "2026W54-1", `want "2027W01-1"`},
		{"{gggg}W{ww}-{n}", weekly, "2025W53-1", `want "2026W01-1"`},
		{"{gggg}W{ww}-{n}", weekly, "2026W00-1", `want "2025W52-1"`},
		{"{gggg}W{ww}-{n}", weekly, "0000W52-1", "want a period of the calendar"},
		{"{yyyy}/{fy}-{n}", fiscal, "2026/2028-1", `want "2026/2027-1"`},
		{"{fy}Q{q}-{n}", april, "0000Q4-1", "want a period of the calendar"},
		{"{yyyy}/{fy}Q{q}-{n}", april, "2026/2026Q4-1", `want "2026/2027Q4-1"`},
		{"{fy}-{n}", yearly, "0000-1", `want "0001-1"`},
	} {
		f := parse(t, c.pattern, c.rule)
		if p, n, err := f.Parse(c.text); !errors.Is(err, numfmt.ErrText) || !strings.Contains(err.Error(), c.want) || p != 0 || n != 0 {
			t.Errorf("%v: %q: got %d of %v, %v: %s", f, c.text, n, p, err, c.want)
		}
	}
}

// A format that does not tell every number of every period apart is refused, at the byte where it is wrong.
func TestParseRefuses(t *testing.T) {
	strange := calendar.Rule{Every: calendar.Year + 1}
	for _, c := range []struct {
		pattern string
		rule    calendar.Rule
		want    string
	}{
		{"", never, "byte 0: got no {n}"},
		{"INV", never, "byte 3: got no {n}, want {n} of a sequence that restarts: never"},
		{"{n}{n}", never, "byte 3: got {n} again, want it once"},
		{"{n}-{n:04}", never, "byte 4: got {n} again"},
		{"{n", never, "byte 0: got { without }"},
		{"{n}}", never, "byte 3: got }, want }}"},
		{"é{N}", never, "byte 2: got {N}, want one of the fields {n} {yyyy}"},
		{"{}", never, "byte 0: got {}"},
		{"{yy}-{n}", yearly, "byte 0: got {yy}"},
		{"{n:4}", never, "byte 0: got {n:4}"},
		{"{n:}", never, "byte 0: got {n:}"},
		{"{n:0}", never, "byte 0: got {n:0}, want 1 to 20 digits"},
		{"{n:00}", never, "byte 0: got {n:00}"},
		{"{n:004}", never, "byte 0: got {n:004}"},
		{"{n:0+4}", never, "byte 0: got {n:0+4}"},
		{"{n:021}", never, "byte 0: got {n:021}"},
		{"{yyyy:04}-{n}", yearly, "byte 0: got {yyyy:04}"},
		{"A\n{n}", never, `byte 1: got '\n'`},
		{"A\x00{n}", never, `byte 1: got '\x00'`},
		{"A\u200b{n}", never, `byte 1: got '\u200b'`},
		{"A\u00a0{n}", never, `byte 1: got '\u00a0'`},
		{"A\xff{n}", never, `byte 1: got "\xff", want UTF-8`},
		{strings.Repeat("A", numfmt.MaxPattern-2) + "{n}", never, "byte 64: got 65 bytes, want at most 64"},
		{"{yyyy}-{n}", never, "byte 0: got {yyyy}, want {n} of"},
		{"{n}-{yyyy}{mm}", daily, "byte 14: got no {dd}, want {n} {yyyy} {mm} {dd} of a sequence that restarts: day"},
		{"{gggg}{ww}-{n}", daily, "byte 0: got {gggg}"},
		{"{yyyy}W{ww}-{n}", weekly, "byte 0: got {yyyy}, want {n} {gggg} {ww} of a sequence that restarts: week"},
		{"{gggg}-{n}", weekly, "byte 10: got no {ww}"},
		{"{yyyy}{mm}{dd}-{n}", monthly, "byte 10: got {dd}"},
		{"{yyyy}-{n}", monthly, "byte 10: got no {mm}"},
		{"{mm}-{n}", monthly, "byte 8: got no {yyyy}"},
		{"{yyyy}{mm}-{n}", quarter, "byte 6: got {mm}"},
		{"{yyyy}-{n}", quarter, "byte 10: got no {q}, want {n} {yyyy} {q} {fy}"},
		{"{q}-{n}", quarter, "byte 7: got no {yyyy} {fy}"},
		{"{fy}{mm}-{n}", monthly, "byte 0: got {fy}"},
		{"{yyyy}{mm}-{n}", fiscal, "byte 6: got {mm}"},
		{"{n}", yearly, "byte 3: got no {yyyy} {fy}"},
		{"{yyyy}{yyyy}{n}", yearly, "byte 6: got {yyyy} again"},
		{"{yyyy}{fy}", yearly, "byte 10: got no {n}"},
		{"{n}", strange, "byte 0: got a restart each unit(6)"},
		{"{yyyy}{n}", calendar.Rule{Every: calendar.Year, FirstMonth: 13}, "from month 13 on"},
		{"{yyyy}{n}", calendar.Rule{Every: calendar.Year, FirstMonth: -1}, "from month -1 on"},
	} {
		f, err := numfmt.Parse(c.pattern, c.rule)
		if !errors.Is(err, numfmt.ErrPattern) || !strings.Contains(err.Error(), c.want) || f.String() != "" {
			t.Errorf("%q: got %v, %v: %s", c.pattern, f, err, c.want)
		}
	}
	parse(t, strings.Repeat("A", numfmt.MaxPattern-3)+"{n}", never)
}

// The zero format is none.
func TestZeroFormat(t *testing.T) {
	var f numfmt.Format
	for _, text := range []string{"", "0", "7"} {
		if p, n, err := f.Parse(text); !errors.Is(err, numfmt.ErrText) {
			t.Errorf("%q: got %d of %v, %v", text, n, p, err)
		}
	}
	if got := f.Append(nil, 20260329, 7); len(got) > 0 || f.String() != "" {
		t.Errorf("got %q, %v", got, f)
	}
}

// What is appended to stays, and a date that is no period prints something, and not a panic.
func TestAppend(t *testing.T) {
	if got := string(parse(t, "{yyyy}-{n}", yearly).Append([]byte("No. "), 20260101, 7)); got != "No. 2026-7" {
		t.Errorf("got %q", got)
	}
	for _, f := range []numfmt.Format{
		parse(t, "{yyyy}{mm}{dd}-{n}", daily), parse(t, "{gggg}{ww}-{n}", weekly), parse(t, "{yyyy}{q}-{n}", quarter), parse(t, "{yyyy}{fy}-{n}", fiscal),
	} {
		for _, d := range []calendar.Date{0, 1, 20261399, math.MaxUint32} {
			checkRead(t, f, string(f.Append(nil, d, 1)))
		}
	}
}

// Neither printing nor reading allocates.
func TestAllocations(t *testing.T) {
	for _, c := range []struct {
		pattern string
		rule    calendar.Rule
		period  calendar.Date
	}{{"INV/{yyyy}/{n:04}", yearly, 20260101}, {"{gggg}-W{ww}-{n}", weekly, 20260323}, {"{n}", never, 0}} {
		f := parse(t, c.pattern, c.rule)
		dst := make([]byte, 0, 64)
		if n := testing.AllocsPerRun(100, func() { dst = f.Append(dst[:0], c.period, math.MaxUint64) }); n > 0 {
			t.Errorf("%v: got %v allocations for Append", f, n)
		}
		text := string(dst)
		if n := testing.AllocsPerRun(100, func() {
			if _, _, err := f.Parse(text); err != nil {
				t.Error(err)
			}
		}); n > 0 {
			t.Errorf("%v: got %v allocations for Parse", f, n)
		}
	}
}
