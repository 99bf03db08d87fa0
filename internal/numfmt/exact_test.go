package numfmt_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/partita-go/partita/calendar"
)

// Every period prints and is read again, and no two alike: those of the 400 years after which the calendar repeats itself,
// and of the first and the last year.
func TestEveryPeriod(t *testing.T) {
	for _, c := range []struct {
		pattern string
		rule    calendar.Rule
		want    int
	}{
		{"{yyyy}{mm}{dd}{n}", daily, 2*365 + 146097},
		{"{n}{ww}{gggg}", weekly, 20871 + 53 + 52},
		{"1{mm}{yyyy}{n}", monthly, 402 * 12},
		{"{yyyy}{q}{n}", quarter, 402 * 4},
		{"{q}{fy}{n}", quarter, 402 * 4},
		{"{yyyy}{q}{n}", april, 402 * 4},
		{"{fy}{q}{n}", april, 402 * 4},
		{"{yyyy}{fy}{q}{n}", april, 402 * 4},
		// There is one more where the calendar begins, in its middle.
		{"{yyyy}{q}{n}", february, 402*4 + 1},
		{"{fy}{q}{n}", february, 402*4 + 1},
		{"{n}{yyyy}", yearly, 402},
		{"{n}{yyyy}", fiscal, 402 + 1},
		{"{fy}{n}", fiscal, 402 + 1},
		{"{fy}{n}", yearly, 402},
	} {
		f := parse(t, c.pattern, c.rule)
		seen := make(map[string]bool)
		for y := 1; y <= 9999; y++ {
			if y == 2 || y == 2400 {
				y = map[int]int{2: 2000, 2400: 9999}[y]
			}
			for day := time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() == y; day = day.AddDate(0, 0, 1) {
				if p := calendar.DateOf(day); begins(c.rule, day) {
					seen[checkPrinted(t, f, p, uint64(p)%10)] = true
				}
			}
		}
		if len(seen) != c.want {
			t.Errorf("%v: got %d texts, want %d", f, len(seen), c.want)
		}
	}
}

// Small patterns with digits beside the number take just the texts that they print: all texts of at most 5 of a few signs
// are tried.
func TestEverySmallText(t *testing.T) {
	texts, taken := smallTexts(), 0
	for _, pattern := range smallPatterns() {
		f := parse(t, pattern, never)
		printed := make(map[string]uint64)
		for n := range uint64(100_000) {
			text := f.Append(nil, 0, n)
			if len(text) > 5 {
				break
			}
			printed[string(text)] = n
		}
		for _, text := range texts {
			want, ok := printed[text]
			if _, n, err := f.Parse(text); ok != (err == nil) || n != want {
				t.Errorf("%v: %q: got %d, %v, want %d, %v", f, text, n, err, want, ok)
			}
			if ok {
				taken++
			}
		}
	}
	if taken < 1000 {
		t.Errorf("got %d texts of numbers, want some of each pattern", taken)
	}
}

// smallPatterns are all of up to three parts of a few kinds with one number.
func smallPatterns() (patterns []string) {
	for _, n := range []string{"{n}", "{n:02}", "{n:03}"} {
		sides := []string{"", "0", "1", "-", "00", "10", "01"}
		for _, before := range sides {
			for _, after := range sides {
				patterns = append(patterns, before+n+after)
			}
		}
	}
	return patterns
}

// smallTexts are all texts of up to 5 of a few signs.
func smallTexts() []string {
	texts := []string{""}
	for from := 0; len(texts[len(texts)-1]) < 5; {
		to := len(texts)
		for _, text := range texts[from:to] {
			for _, c := range "012-" {
				texts = append(texts, text+string(c))
			}
		}
		from = to
	}
	return texts
}

// rules are those that patterns are drawn for.
var rules = []calendar.Rule{never, daily, weekly, monthly, quarter, yearly, fiscal, april, february, {Every: calendar.Year, FirstMonth: time.December}}

// fieldsOf are the ways to name a period of a rule.
func fieldsOf(rule calendar.Rule) [][]string {
	switch rule.Every {
	case calendar.Day:
		return [][]string{{"{yyyy}", "{mm}", "{dd}"}}
	case calendar.Week:
		return [][]string{{"{gggg}", "{ww}"}}
	case calendar.Month:
		return [][]string{{"{yyyy}", "{mm}"}}
	case calendar.Quarter:
		return [][]string{{"{yyyy}", "{q}"}, {"{fy}", "{q}"}, {"{yyyy}", "{fy}", "{q}"}}
	case calendar.Year:
		return [][]string{{"{yyyy}"}, {"{fy}"}, {"{yyyy}", "{fy}"}}
	default:
		return [][]string{{}}
	}
}

// drawPattern draws a pattern that is right for a rule: its fields in any order, with text between them.
func drawPattern(t *rapid.T, rule calendar.Rule) (pattern string) {
	number := rapid.SampledFrom([]string{"{n}", "{n:01}", "{n:02}", "{n:04}", "{n:09}", "{n:020}"}).Draw(t, "number")
	fields := append([]string{number}, rapid.SampledFrom(fieldsOf(rule)).Draw(t, "fields")...)
	text := rapid.SampledFrom([]string{"", "", "", "0", "1", "20", "-", "/", "A", "é", "{{", "}}", "№ 0"})
	for _, field := range rapid.Permutation(fields).Draw(t, "order") {
		pattern += text.Draw(t, "text") + field
	}
	return pattern + text.Draw(t, "text")
}

func drawNumber(t *rapid.T) uint64 {
	edge := rapid.SampledFrom([]uint64{0, 1, 9, 10, 99, 100, 999, 1000, 9999, 10_000, 1 << 63, math.MaxUint64})
	return rapid.OneOf(rapid.Uint64Max(20_000), edge, rapid.Uint64()).Draw(t, "n")
}

func drawPeriod(t *rapid.T, rule calendar.Rule) calendar.Date {
	days := rapid.OneOf(rapid.IntRange(0, 3_652_058), rapid.IntRange(730_000, 750_000)).Draw(t, "days")
	return periodWith(rule, time.Date(1, 1, 1+days, 0, 0, 0, 0, time.UTC))
}

// What any format prints it reads, and what it reads of a text that was changed somewhere it prints.
func TestExact(t *testing.T) {
	read := 0
	rapid.Check(t, func(t *rapid.T) {
		rule := rapid.SampledFrom(rules).Draw(t, "rule")
		f := parse(t, drawPattern(t, rule), rule)
		text := checkPrinted(t, f, drawPeriod(t, rule), drawNumber(t))
		if checkRead(t, f, drawChange(t, text)) {
			read++
		}
	})
	if read == 0 {
		t.Error("no changed text was read")
	}
}

// drawChange changes a text at one place, or puts something there, or takes it away.
func drawChange(t *rapid.T, text string) string {
	at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
	end := at + rapid.IntRange(0, 1).Draw(t, "gone")
	return text[:at] + rapid.SampledFrom([]string{"", "0", "1", "2", "9", "-", "+", "_", "\xff"}).Draw(t, "new") + text[end:]
}
