package numfmt_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/internal/numfmt"
)

// Formats may follow each other unless a text of the one is another number of the other.
func TestFormatsTogether(t *testing.T) {
	for _, c := range []struct {
		rule calendar.Rule
		a, b string
		ok   bool
	}{
		{never, "{n}", "{n}", true},
		{never, "{n:04}", "{n}", true},
		{never, "{n:06}", "{n:04}", true},
		{never, "INV-{n}", "{n}", true},
		{never, "INV-{n}", "CRE-{n}", true},
		{never, "{n}-A", "{n}", true},
		{never, "0{n}", "{n}", true},
		{never, "2{n}", "{n}", false},
		{never, "{n}0", "{n}", false},
		{never, "{n}5", "{n}", false},
		{never, "0{n}", "{n:02}", false},
		{never, "A-1{n:04}", "A-{n:04}", false},
		{yearly, "INV/{yyyy}/{n:06}", "INV/{yyyy}/{n:04}", true},
		{yearly, "INV/{yyyy}/{n:04}", "RE/{yyyy}/{n:04}", true},
		{yearly, "{yyyy}-{n:04}", "{yyyy}{n:04}", true},
		{yearly, "{yyyy}/{n}", "{yyyy}-{n}", true},
		{yearly, "{yyyy}{n:04}", "{yyyy}{n:05}", true},
		{yearly, "{yyyy}/{n}", "{n}/{yyyy}", false},
		{yearly, "{n:04}{yyyy}", "{yyyy}{n:04}", false},
		{yearly, "{yyyy}{n}", "20{n}{yyyy}", false},
		{fiscal, "FY{fy}-{n}", "{yyyy}-{n}", true},
		{fiscal, "{fy}-{n}", "{yyyy}-{n}", false},
		{fiscal, "{yyyy}/{fy}-{n}", "{yyyy}-{n}", true},
		{daily, "{yyyy}-{mm}-{dd}-{n}", "{yyyy}{mm}{dd}-{n}", true},
		{daily, "{mm}/{dd}/{yyyy}-{n}", "{dd}/{mm}/{yyyy}-{n}", false},
		{daily, "{dd}.{mm}.{yyyy}-{n}", "{mm}/{dd}/{yyyy}-{n}", true},
		{monthly, "{mm}{yyyy}-{n}", "{yyyy}{mm}-{n}", false},
	} {
		other := "another " + strings.Join(fieldsOf(c.rule)[0], "") + "{n}"
		for _, patterns := range [][]string{{c.a, c.b}, {c.b, c.a}, {other, c.a, c.b}} {
			fs, err := numfmt.ParseFormats(patterns, c.rule)
			if (err == nil) != c.ok {
				t.Errorf("%q: got %v, want %v", patterns, err, c.ok)
			}
			if err != nil {
				wantErrPattern(t, err)
				continue
			}
			if f, ok := fs.Current(); !ok || f.String() != patterns[0] {
				t.Errorf("%q: got %v, %v for the current one", patterns, f, ok)
			}
		}
	}
}

func wantErrPattern(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, numfmt.ErrPattern) {
		t.Errorf("got %v, want ErrPattern", err)
	}
}

// What was printed in an older format is read, and what was printed in none is not.
func TestFormats(t *testing.T) {
	patterns := []string{"INV/{yyyy}/{n:05}", "INV/{yyyy}/{n:04}", "{yyyy}-{n}"}
	fs, err := numfmt.ParseFormats(patterns, yearly)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]uint64{"INV/2026/00007": 7, "INV/2026/0007": 7, "2026-7": 7, "INV/2026/12345": 12345} {
		if p, n, err := fs.Parse(text); err != nil || p != 20260101 || n != want {
			t.Errorf("%q: got %d of %v, %v", text, n, p, err)
		}
		checkList(t, fs, patterns, yearly, text)
	}
	_, _, err = fs.Parse("INV/2026/7")
	if !errors.Is(err, numfmt.ErrText) || !strings.Contains(err.Error(), `"INV/{yyyy}/{n:05}"`) || !strings.HasSuffix(err.Error(), "; nor is it of the 2 older formats") {
		t.Errorf("got %v", err)
	}
	if fs, err := numfmt.ParseFormats([]string{"{yyyy}-{n}", "{n}"}, yearly); err == nil || !strings.Contains(err.Error(), `"{n}": byte 3`) {
		t.Errorf("got %v, %v, want that the second is wrong", fs, err)
	}
}

// A sequence may have no format.
func TestNoFormats(t *testing.T) {
	fs, err := numfmt.ParseFormats(nil, yearly)
	if err != nil {
		t.Fatal(err)
	}
	if f, ok := fs.Current(); ok {
		t.Errorf("got %v", f)
	}
	if p, n, err := fs.Parse("7"); !errors.Is(err, numfmt.ErrText) || !strings.Contains(err.Error(), "has no format") {
		t.Errorf("got %d of %v, %v", n, p, err)
	}
}

// Of all pairs of small patterns those are refused that read a text differently, and few others.
func TestEverySmallPair(t *testing.T) {
	patterns, texts := smallPatterns(), smallTexts()
	formats, readings := make([]numfmt.Format, len(patterns)), make([]map[string]uint64, len(patterns))
	for i, pattern := range patterns {
		formats[i], readings[i] = parse(t, pattern, never), make(map[string]uint64)
		for _, text := range texts {
			if _, n, err := formats[i].Parse(text); err == nil {
				readings[i][text] = n
			}
		}
	}
	differ, careful := 0, 0
	for i, a := range readings {
		for j, b := range readings {
			_, err := numfmt.ParseFormats([]string{patterns[i], patterns[j]}, never)
			switch {
			case err == nil && contradict(a, b):
				t.Errorf("%q, %q: got no error, though they differ", patterns[i], patterns[j])
			case err == nil:
			case contradict(a, b) || contradictLater(formats[i], formats[j]) || contradictLater(formats[j], formats[i]):
				differ++
			default:
				careful++
			}
		}
	}
	if differ < 1000 || careful > differ/10 {
		t.Errorf("%d pairs that differ are refused, and %d that do not", differ, careful)
	}
	t.Logf("%d pairs that differ are refused, and %d that do not, of %d", differ, careful, len(patterns)*len(patterns))
}

// contradictLater looks at longer texts, which are too many to try all.
func contradictLater(a, b numfmt.Format) bool {
	for n := range uint64(1000) {
		if _, m, err := b.Parse(string(a.Append(nil, 0, n))); err == nil && m != n {
			return true
		}
	}
	return false
}

func contradict(a, b map[string]uint64) bool {
	for text, n := range a {
		if m, ok := b[text]; ok && m != n {
			return true
		}
	}
	return false
}

// Formats that are taken together never read a text differently, whichever of them printed it.
func TestFormatsAgree(t *testing.T) {
	taken, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		rule := rapid.SampledFrom(rules).Draw(t, "rule")
		patterns := []string{drawPattern(t, rule), drawPattern(t, rule), drawPattern(t, rule)}
		fs, err := numfmt.ParseFormats(patterns, rule)
		if err != nil {
			refused++
			patterns = slices.Compact(patterns[:1])
			if fs, err = numfmt.ParseFormats(patterns, rule); err != nil {
				t.Fatal(err)
			}
		} else {
			taken++
		}
		for _, pattern := range patterns {
			text := checkPrinted(t, parse(t, pattern, rule), drawPeriod(t, rule), drawNumber(t))
			checkList(t, fs, patterns, rule, text)
		}
	})
	if taken == 0 || refused == 0 {
		t.Errorf("%d lists taken, %d refused, want some of each", taken, refused)
	}
}
