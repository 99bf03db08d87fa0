package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// verdict prints what came of the parts, and counts the kinds that do not hold and those of
// which something was skipped.
type verdict struct {
	allowSkips      bool
	stdout          io.Writer
	failed, skipped int
}

// judge prints a part's lines: one for each kind, and one for the tests that were skipped and
// count nothing.
func (v *verdict) judge(o *outcome) {
	failed, skips := v.failed, skippedTests(o.output)
	for i := range o.part.kinds {
		k := &o.part.kinds[i]
		mine := k.take(&skips)
		words, err := k.read(o.output, len(mine) > 0)
		v.line(o, k.name, words, mine, errors.Join(err, o.err))
	}
	if len(skips) > 0 {
		v.line(o, "other tests", "of "+o.part.name, skips, nil)
	}
	if v.failed > failed {
		_, _ = fmt.Fprint(v.stdout, tail(o.output, 30))
	}
}

// line prints a kind's line. What was skipped is never ok.
func (v *verdict) line(o *outcome, name, words string, skips []string, err error) {
	if len(skips) > 0 && !v.allowSkips {
		err = errors.Join(err, errors.New("tests were skipped, since something they need is not there: want all run, or -allow-skips"))
	}
	word := "ok"
	switch {
	case err != nil:
		word = "FAILED"
		v.failed++
	case len(skips) > 0:
		word = "skipped"
		v.skipped++
	}
	if len(skips) > 0 {
		words = strings.TrimSpace(words + " (skipped: " + strings.Join(skips, ", ") + ")")
	}
	_, _ = fmt.Fprintf(v.stdout, "%-7s %-16s %s  (%v, %s)\n", word, name, words, o.took.Round(time.Second), o.path)
	if err != nil {
		_, _ = fmt.Fprintf(v.stdout, "        %s\n", strings.ReplaceAll(err.Error(), "\n", "\n        "))
	}
}

var skippedTest = regexp.MustCompile(`(?m)--- SKIP: (\S+)`)

// skippedTests returns the names of the tests that were skipped.
func skippedTests(output string) (names []string) {
	for _, found := range skippedTest.FindAllStringSubmatch(output, -1) {
		names = append(names, found[1])
	}
	return names
}

// take takes those of a kind's tests from all that were skipped.
func (k *kind) take(skips *[]string) (mine []string) {
	*skips = slices.DeleteFunc(*skips, func(name string) bool {
		test, _, _ := strings.Cut(name, "/")
		own := slices.Contains(k.tests, test)
		if own {
			mine = append(mine, name)
		}
		return own
	})
	return mine
}

// tail returns the last lines of a text, indented and not too long.
func tail(text string, n int) string {
	const longest = 160
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	lines = lines[max(0, len(lines)-n):]
	var b strings.Builder
	for _, line := range lines {
		if letters := []rune(line); len(letters) > longest {
			line = string(letters[:longest]) + " …"
		}
		b.WriteString("        | " + line + "\n")
	}
	return b.String()
}
