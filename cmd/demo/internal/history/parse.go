package history

import (
	"errors"
	"fmt"
	"time"
)

// A line has this form, without any space, its keys always in this order:
//
//	{"ts":1301662084,"tz":"+0200","repo":"owner/name","author":"44fcba60c6","commit":"384332da392b","files":1,"add":34,"del":23}
//
// A parser of just that is several times faster than encoding/json, and stricter.

const (
	authorDigits = 10
	idDigits     = 12
	// numberDigits is what fits into an int64, whatever the digits are.
	numberDigits = 18
)

// interned holds what many commits share.
type interned struct {
	strings map[string]string
	zones   map[string]*time.Location
}

func newInterned() *interned {
	return &interned{strings: make(map[string]string), zones: make(map[string]*time.Location)}
}

func (in *interned) parse(line []byte) (Commit, error) {
	cur := cursor{rest: line, length: len(line)}
	cur.literal(`{"ts":`)
	seconds := cur.number()
	cur.literal(`,"tz":"`)
	zone := cur.text()
	cur.literal(`","repo":"`)
	repo := cur.text()
	cur.literal(`","author":"`)
	author := cur.hex(authorDigits)
	cur.literal(`","commit":"`)
	id := cur.hex(idDigits)
	cur.literal(`","files":`)
	files := cur.number()
	cur.literal(`,"add":`)
	added := cur.number()
	cur.literal(`,"del":`)
	deleted := cur.number()
	cur.literal(`}`)
	if cur.err == nil && len(cur.rest) > 0 {
		cur.fail("the end of the line")
	}
	if cur.err != nil {
		return Commit{}, cur.err
	}
	location, err := in.zone(zone)
	if err != nil {
		return Commit{}, err
	}
	return Commit{
		At:      time.Unix(seconds, 0).In(location),
		Repo:    in.string(repo),
		Author:  in.string(author),
		ID:      string(id),
		Files:   int(files),
		Added:   int(added),
		Deleted: int(deleted),
	}, nil
}

func (in *interned) string(text []byte) string {
	s, ok := in.strings[string(text)]
	if !ok {
		s = string(text)
		in.strings[s] = s
	}
	return s
}

var errZone = errors.New("time zone")

// zone returns the location of an offset like "+0530".
func (in *interned) zone(text []byte) (*time.Location, error) {
	if location, ok := in.zones[string(text)]; ok {
		return location, nil
	}
	if len(text) != 5 || text[0] != '+' && text[0] != '-' {
		return nil, fmt.Errorf("%w: got %.10q, want one like +0530", errZone, text)
	}
	cur := cursor{rest: text[1:], length: len(text)}
	hhmm := int(cur.number())
	if cur.err != nil || len(cur.rest) > 0 || hhmm/100 > 14 || hhmm%100 > 59 {
		return nil, fmt.Errorf("%w: got %.10q, want one like +0530", errZone, text)
	}
	offset := (hhmm/100*60 + hhmm%100) * 60
	if text[0] == '-' {
		offset = -offset
	}
	location := time.FixedZone(string(text), offset)
	in.zones[string(text)] = location
	return location, nil
}

// cursor moves over a line. After the first error it stays where it is.
type cursor struct {
	rest   []byte
	length int
	err    error
}

var errSyntax = errors.New("syntax")

func (c *cursor) fail(want string) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: at byte %d: got %.20q, want %s", errSyntax, c.length-len(c.rest)+1, c.rest, want)
	}
}

// literal passes over text that must come next.
func (c *cursor) literal(want string) {
	if c.err != nil {
		return
	}
	if len(c.rest) < len(want) || string(c.rest[:len(want)]) != want {
		c.fail(fmt.Sprintf("%q", want))
		return
	}
	c.rest = c.rest[len(want):]
}

// number passes over a whole number.
func (c *cursor) number() int64 {
	n, digits := int64(0), 0
	for digits < len(c.rest) && digits < numberDigits && '0' <= c.rest[digits] && c.rest[digits] <= '9' {
		n = n*10 + int64(c.rest[digits]-'0')
		digits++
	}
	if digits == 0 {
		c.fail("a number")
	}
	if c.err != nil {
		return 0
	}
	c.rest = c.rest[digits:]
	return n
}

// text passes over the inside of a string, which has no escapes.
func (c *cursor) text() []byte {
	length := 0
	for length < len(c.rest) && c.rest[length] > ' ' && c.rest[length] < 0x7f && c.rest[length] != '"' && c.rest[length] != '\\' {
		length++
	}
	if length == 0 {
		c.fail("a text")
	}
	if c.err != nil {
		return nil
	}
	text := c.rest[:length]
	c.rest = c.rest[length:]
	return text
}

// hex passes over hexadecimal digits in lower case, as many as that.
func (c *cursor) hex(digits int) []byte {
	text := c.rest[:min(digits, len(c.rest))]
	ok := len(text) == digits
	for _, char := range text {
		ok = ok && ('0' <= char && char <= '9' || 'a' <= char && char <= 'f')
	}
	if !ok {
		c.fail(fmt.Sprintf("%d hexadecimal digits", digits))
	}
	if c.err != nil {
		return nil
	}
	c.rest = c.rest[digits:]
	return text
}
