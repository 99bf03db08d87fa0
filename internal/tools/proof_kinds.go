package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// kind is one thing that is counted.
type kind struct {
	name string
	// tests are those that count it and may be skipped; empty: none.
	tests []string
	// line selects the lines of the part's output that the counts are on.
	line   *regexp.Regexp
	counts []count
}

// count is a number on lines; it is the sum if there are several.
type count struct {
	label string
	// number has the number as its group, perhaps several times, or in several groups. Nil:
	// the lines are counted.
	number *regexp.Regexp
	// least and most bound it.
	least, most int
	// same is the label of an earlier count of the kind that it must be equal to; empty: none.
	same string
}

// unbounded is the bound of what may be large.
const unbounded = int(^uint(0) >> 1)

// read returns the counts as words. It is an error if one is not there, or out of its
// bounds. Where a part of it was skipped there may be less, but nothing that may not be.
func (k *kind) read(output string, skipped bool) (string, error) {
	var lines []string
	for line := range strings.SplitSeq(output, "\n") {
		if k.line.MatchString(line) {
			lines = append(lines, line)
		}
	}
	switch {
	case len(lines) == 0 && skipped:
		return "", nil
	case len(lines) == 0:
		return "", fmt.Errorf("no count: got no line like %q", k.line)
	}
	var words []string
	var errs []error
	counted := make(map[string]int)
	for i := range k.counts {
		c := &k.counts[i]
		n, err := c.of(lines)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		counted[c.label] = n
		words = append(words, fmt.Sprintf("%s %s", grouped(n), c.label))
		if n < c.least && !skipped || n > c.most {
			errs = append(errs, fmt.Errorf("got %d %s, want %s", n, c.label, c.bounds()))
		}
		if c.same != "" && n != counted[c.same] {
			errs = append(errs, fmt.Errorf("got %d %s, want as many as %s: %d", n, c.label, c.same, counted[c.same]))
		}
	}
	return strings.Join(words, ", "), errors.Join(errs...)
}

func (c *count) of(lines []string) (sum int, err error) {
	if c.number == nil {
		return len(lines), nil
	}
	for _, line := range lines {
		found := c.number.FindAllStringSubmatch(line, -1)
		if found == nil {
			return 0, fmt.Errorf("no count of %s: got no %q in %q", c.label, c.number, line)
		}
		for _, groups := range found {
			for _, digits := range groups[1:] {
				n, err := strconv.Atoi(digits)
				if err != nil {
					return 0, fmt.Errorf("%s: %w", c.label, err)
				}
				sum += n
			}
		}
	}
	return sum, nil
}

func (c *count) bounds() string {
	switch {
	case c.most == unbounded:
		return fmt.Sprintf("at least %d", c.least)
	case c.least == c.most:
		return fmt.Sprint(c.least)
	}
	return fmt.Sprintf("%d to %d", c.least, c.most)
}

// grouped writes a number with commas.
func grouped(n int) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
