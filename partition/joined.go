package partition

import (
	"fmt"
	"strconv"
	"strings"
)

// What the text of joined errors shows: so many kinds, and so many errors of each.
const (
	shownKinds = 4
	shownEach  = 2
)

// joined returns the errors of many, those that are not nil, as errors.Join does: errors.Is and
// errors.As find each of them. But its text sums up those that differ in numbers only: what
// befalls one of 65,536 partitions often befalls all.
func joined(errs []error) error {
	all := &joinedError{}
	for _, err := range errs {
		switch e := err.(type) { //nolint:errorlint // what is wrapped is not to be taken apart
		case nil:
		case *joinedError:
			all.errs = append(all.errs, e.errs...)
		default:
			all.errs = append(all.errs, err)
		}
	}
	switch len(all.errs) {
	case 0:
		return nil
	case 1:
		return all.errs[0]
	}
	return all
}

type joinedError struct{ errs []error }

// Unwrap returns all of them.
func (j *joinedError) Unwrap() []error { return j.errs }

// errorKind is what errors have in common whose texts differ in numbers only.
type errorKind struct {
	shown []string
	more  int
}

func (j *joinedError) Error() string {
	var lines []string
	kinds := j.kinds()
	for _, k := range kinds[:min(len(kinds), shownKinds)] {
		lines = append(lines, k.shown...)
		if k.more > 0 {
			lines = append(lines, fmt.Sprintf("and %s more of the same", grouped(k.more)))
		}
	}
	others := 0
	for _, k := range kinds[min(len(kinds), shownKinds):] {
		others += len(k.shown) + k.more
	}
	if others > 0 {
		lines = append(lines, fmt.Sprintf("and %s others", grouped(others)))
	}
	return strings.Join(lines, "\n")
}

// kinds returns the kinds in the order of the first error of each.
func (j *joinedError) kinds() []*errorKind {
	var kinds []*errorKind
	byText := make(map[string]*errorKind)
	for _, err := range j.errs {
		text := err.Error()
		key := withoutNumbers(text)
		k := byText[key]
		if k == nil {
			k = &errorKind{}
			byText[key] = k
			kinds = append(kinds, k)
		}
		if len(k.shown) < shownEach {
			k.shown = append(k.shown, text)
		} else {
			k.more++
		}
	}
	return kinds
}

// withoutNumbers returns a text with one sign in the place of each number.
func withoutNumbers(text string) string {
	out := make([]byte, 0, len(text))
	for i := range len(text) {
		c := text[i]
		if c < '0' || c > '9' {
			out = append(out, c)
		} else if len(out) == 0 || out[len(out)-1] != '#' {
			out = append(out, '#')
		}
	}
	return string(out)
}

// grouped writes a number with a comma between thousands.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
