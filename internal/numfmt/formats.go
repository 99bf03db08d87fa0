package numfmt

import (
	"fmt"

	"github.com/partita-go/partita/calendar"
)

// Formats are the formats that a sequence has had: the current one, and older ones, so that what was printed can still
// be read. No two of them read the same text as different numbers. It is safe for concurrent use. The zero value has no
// format.
type Formats struct{ all []Format }

// ParseFormats reads the patterns of a sequence, the current one first. None is allowed. It returns [ErrPattern] for a
// pattern that [Parse] does not take, and if there could be a text that two of them read as different numbers.
//
// The second check is on the safe side. It knows where literals, digits, and fields are in texts of each length, but
// not which days there are.
func ParseFormats(patterns []string, rule calendar.Rule) (Formats, error) {
	fs := Formats{all: make([]Format, 0, len(patterns))}
	for _, pattern := range patterns {
		f, err := Parse(pattern, rule)
		if err != nil {
			return Formats{}, err
		}
		for i := range fs.all {
			if length := contradiction(&fs.all[i], &f); length > 0 {
				return Formats{}, fmt.Errorf("%w: %q and %q: got texts of %d bytes that could be another number in each, want none",
					ErrPattern, fs.all[i].pattern, pattern, length)
			}
		}
		fs.all = append(fs.all, f)
	}
	return fs, nil
}

// Current returns the format to print with, and whether there is one.
func (fs Formats) Current() (f Format, ok bool) {
	if len(fs.all) == 0 {
		return Format{}, false
	}
	return fs.all[0], true
}

// Parse returns the number that one of the formats prints as the text, and its period, as [Format.Parse] does. It
// returns [ErrText] if none does.
func (fs Formats) Parse(text string) (period calendar.Date, n uint64, err error) {
	err = fmt.Errorf("%w: got %.100q, and the sequence has no format", ErrText, text)
	for i := range fs.all {
		var e error
		if period, n, e = fs.all[i].Parse(text); e == nil {
			return period, n, nil
		}
		if i == 0 {
			err = e
		}
	}
	if older := len(fs.all) - 1; older > 0 {
		err = fmt.Errorf("%w; nor is it of the %d older formats", err, older)
	}
	return 0, 0, err
}

// contradiction returns how long a text is that two formats could read as different numbers, 0 if there is none.
func contradiction(a, b *Format) (length int) {
	for digits := a.least; digits <= mostDigits; digits++ {
		length = a.fixed + digits
		if others := length - b.fixed; others < b.least || others > mostDigits {
			continue
		}
		if x, y := a.layout(digits), b.layout(length-b.fixed); x.places != y.places && x.overlaps(&y, length) {
			return length
		}
	}
	return 0
}

// layout is what texts of one length have in common.
type layout struct {
	// low and high are the least and the greatest byte at each place of the text.
	low, high [maxText]byte
	// places are where each field begins and ends. Formats of one sequence that have the same fields at the same
	// places read the same.
	places [kinds][2]int
}

func (f *Format) layout(digits int) (l layout) {
	at := 0
	for i := range f.parts {
		p := &f.parts[i]
		begin := at
		for ; at < begin+p.width(digits); at++ {
			l.low[at], l.high[at] = '0', '9'
			if p.kind == literal {
				l.low[at], l.high[at] = p.text[at-begin], p.text[at-begin]
			}
		}
		if p.kind != literal {
			l.places[p.kind] = [2]int{begin, at}
		}
		if p.kind == number && digits > p.least {
			// It has no zeros that it need not have.
			l.low[begin] = '1'
		}
	}
	return l
}

// overlaps reports whether one text can have both layouts.
func (l *layout) overlaps(other *layout, length int) bool {
	for i := range length {
		if max(l.low[i], other.low[i]) > min(l.high[i], other.high[i]) {
			return false
		}
	}
	return true
}
