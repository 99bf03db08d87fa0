package numfmt

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/partita-go/partita/calendar"
)

const (
	// MaxPattern is how many bytes a pattern has at most.
	MaxPattern = 64
	// mostDigits are the digits of the largest number.
	mostDigits = 20
	// maxText is how long text can be: no field but the number is longer than what stands for it.
	maxText = MaxPattern + mostDigits
)

// part is a field of a pattern, or text between fields.
type part struct {
	kind kind
	// at is where it begins in the pattern.
	at int
	// text is that of a literal.
	text string
	// least is how many digits a number has at least, from 1.
	least int
}

func wrong(pattern string, at int, format string, args ...any) error {
	return fmt.Errorf("%w: %.80q: byte %d: %s", ErrPattern, pattern, at, fmt.Sprintf(format, args...))
}

// partsOf takes a pattern apart. It knows no rule.
func partsOf(pattern string) (parts []part, err error) {
	if len(pattern) > MaxPattern {
		return nil, wrong(pattern, MaxPattern, "got %d bytes, want at most %d", len(pattern), MaxPattern)
	}
	for at := 0; at < len(pattern); {
		p, size, err := partAt(pattern, at)
		if err != nil {
			return nil, err
		}
		at += size
		if last := len(parts) - 1; last >= 0 && p.kind == literal && parts[last].kind == literal {
			parts[last].text += p.text
			continue
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// partAt returns the field or the character at a place, and how much of the pattern it is.
func partAt(pattern string, at int) (p part, size int, err error) {
	rest := pattern[at:]
	switch {
	case strings.HasPrefix(rest, "{{"), strings.HasPrefix(rest, "}}"):
		return part{at: at, text: rest[:1]}, 2, nil
	case rest[0] == '{':
		return fieldAt(pattern, at)
	case rest[0] == '}':
		return p, 0, wrong(pattern, at, `got }, want }} for the sign itself`)
	}
	switch r, size := utf8.DecodeRuneInString(rest); {
	case r == utf8.RuneError && size <= 1:
		return p, 0, wrong(pattern, at, "got %q, want UTF-8", rest[:1])
	case !unicode.IsPrint(r):
		return p, 0, wrong(pattern, at, "got %q, want what can be seen, or a space", r)
	default:
		return part{at: at, text: rest[:size]}, size, nil
	}
}

func fieldAt(pattern string, at int) (p part, size int, err error) {
	name, _, ok := strings.Cut(pattern[at+1:], "}")
	if !ok {
		return p, 0, wrong(pattern, at, "got { without }, want a field, or {{ for the sign itself")
	}
	p, size = part{at: at, least: 1}, len(name)+2
	if digits, ok := strings.CutPrefix(name, "n:0"); ok {
		least, err := strconv.ParseUint(digits, 10, 8)
		if err != nil || least < 1 || least > mostDigits || digits[0] == '0' {
			return p, 0, wrong(pattern, at, "got {%s}, want 1 to %d digits, like {n:04}", name, mostDigits)
		}
		p.least, name = int(least), fields[number].name
	}
	for p.kind = number; p.kind < kinds; p.kind++ {
		if fields[p.kind].name == name {
			return p, size, nil
		}
	}
	return p, 0, wrong(pattern, at, "got {%s}, want one of the fields %v or one like {n:04}", name, ^set(0))
}

// fieldsOf returns the fields of the parts. They must be the ones that name a number and its period, each once.
func fieldsOf(pattern string, parts []part, rule calendar.Rule) (has set, err error) {
	want, ok := allowed(rule.Every)
	if !ok || rule.FirstMonth < 0 || rule.FirstMonth > 12 {
		return 0, wrong(pattern, 0, "got a restart each %v from month %d on, want a unit of time and a month of 1 to 12",
			rule.Every, rule.FirstMonth)
	}
	for _, p := range parts {
		field := setOf(p.kind)
		switch {
		case p.kind == literal:
		case !want.has(p.kind):
			return 0, wrong(pattern, p.at, "got %v, want %v of a sequence that restarts: %v", field, want, rule.Every)
		case has.has(p.kind):
			return 0, wrong(pattern, p.at, "got %v again, want it once", field)
		default:
			has |= field
		}
	}
	missing := want &^ has
	if has.has(year) || has.has(fiscalYear) {
		missing &^= setOf(year, fiscalYear)
	}
	if missing != 0 {
		return 0, wrong(pattern, len(pattern),
			"got no %v, want %v of a sequence that restarts: %v", missing, want, rule.Every)
	}
	return has, nil
}
