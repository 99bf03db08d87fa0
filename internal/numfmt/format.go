package numfmt

import (
	"fmt"
	"strconv"

	"github.com/partita-go/partita/calendar"
)

// Format prints the numbers of a sequence and reads them. It is safe for concurrent use. The zero value is none: it
// prints nothing and reads nothing; [Parse] makes one.
type Format struct {
	pattern string
	rule    calendar.Rule
	parts   []part
	has     set
	// fixed is how many bytes a text has without the number.
	fixed int
	// least is how many digits a number has at least.
	least int
}

// Parse reads a pattern, whose language the package describes, for a sequence that restarts by a rule. It returns
// [ErrPattern] if the pattern does not tell every number of every period apart.
func Parse(pattern string, rule calendar.Rule) (Format, error) {
	parts, err := partsOf(pattern)
	if err != nil {
		return Format{}, err
	}
	has, err := fieldsOf(pattern, parts, rule)
	if err != nil {
		return Format{}, err
	}
	f := Format{pattern: pattern, rule: rule, parts: parts, has: has}
	for _, p := range parts {
		if p.kind == number {
			f.least = p.least
			continue
		}
		f.fixed += p.width(0)
	}
	return f, nil
}

// String returns the pattern.
func (f Format) String() string { return f.pattern }

// width is how many bytes a part has in a text whose number has that many digits.
func (p *part) width(digits int) int {
	switch p.kind {
	case literal:
		return len(p.text)
	case number:
		return digits
	default:
		return fields[p.kind].width
	}
}

// Append appends a number to dst as the format prints it, and returns it. The period is named by its first day, and
// must be one of the rule's: another date prints a text that is another period's, or nobody's. It is not looked at if
// the sequence never restarts. Append allocates nothing if dst has room.
func (f Format) Append(dst []byte, period calendar.Date, n uint64) []byte {
	v := valuesOf(f.rule, period, n)
	for i := range f.parts {
		switch p := &f.parts[i]; p.kind {
		case literal:
			dst = append(dst, p.text...)
		case number:
			dst = appendDigits(dst, n, max(p.least, digitsOf(n)))
		default:
			dst = appendDigits(dst, v[p.kind], fields[p.kind].width)
		}
	}
	return dst
}

func digitsOf(n uint64) (digits int) {
	for digits = 1; n >= 10; digits++ {
		n /= 10
	}
	return digits
}

// appendDigits appends the last digits of a number.
func appendDigits(dst []byte, n uint64, digits int) []byte {
	for range digits {
		dst = append(dst, '0')
	}
	for i := len(dst) - 1; i >= len(dst)-digits; i-- {
		dst[i] = '0' + byte(n%10)
		n /= 10
	}
	return dst
}

// Parse returns the number that the format prints as the text, and its period, which is zero if the sequence never
// restarts. It returns [ErrText] if there is none.
func (f Format) Parse(text string) (period calendar.Date, n uint64, err error) {
	v, err := f.read(text)
	if err != nil {
		return 0, 0, err
	}
	period, ok := periodOf(f.rule, &v, f.has)
	if !ok {
		return 0, 0, f.refused(text, "a period of the calendar")
	}
	// One comparison refuses literals that are others, zeros too many, a week 53 that the year has not, and fields
	// that contradict each other.
	var b [maxText]byte
	if printed := f.Append(b[:0], period, v[number]); string(printed) != text {
		return 0, 0, f.refused(text, "%q, as that number is printed", string(printed))
	}
	return period, v[number], nil
}

// read reads the fields of a text. How long the text is tells how many digits its number has.
func (f *Format) read(text string) (v values, err error) {
	digits, least := len(text)-f.fixed, max(1, f.least)
	if digits < least || digits > mostDigits {
		return v, f.refused(text, "%d to %d bytes", f.fixed+least, f.fixed+mostDigits)
	}
	at := 0
	for i := range f.parts {
		p := &f.parts[i]
		end := at + p.width(digits)
		if p.kind != literal {
			if v[p.kind], err = strconv.ParseUint(text[at:end], 10, 64); err != nil {
				return v, f.refused(text, "from byte %d to %d the digits of %v", at, end, setOf(p.kind))
			}
		}
		at = end
	}
	return v, nil
}

// refused says that text is not the format's, and what would be.
func (f *Format) refused(text, want string, args ...any) error {
	return fmt.Errorf("%w: got %.100q for %q, want %s", ErrText, text, f.pattern, fmt.Sprintf(want, args...))
}
