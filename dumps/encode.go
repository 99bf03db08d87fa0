package dumps

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
)

// hidden stands for what is not shown.
const hidden = `"<hidden>"`

// maxDepth is how deep a message may be: one of an application may refer to itself.
const maxDepth = 16

// largestExact is the largest integer that every program reads exactly from JSON; larger ones are
// strings.
const largestExact = 1<<53 - 1

// text is a line in the making.
type text struct {
	bytes []byte
	// longest bounds a text in it, end is the length at which lists and structures are cut.
	longest, end int
	bodies       bool
	depth        int
	// toSecond is the time of the line before as far as the second, of which it was.
	toSecond []byte
	second   int64
}

func (t *text) full() bool { return len(t.bytes) >= t.end }

func (t *text) string(s string) {
	t.bytes = appendText(t.bytes, s, t.longest)
}

func (t *text) add(s string) { t.bytes = append(t.bytes, s...) }

// body appends what only shows if bodies do: as text if it is some, else in base 64.
func (t *text) body(b []byte) {
	if !t.bodies {
		t.add(hidden)
		return
	}
	if utf8.Valid(b) {
		t.string(string(b[:min(len(b), t.longest+utf8.UTFMax)]))
		return
	}
	n := min(len(b), t.longest)
	t.add(`"base64:`)
	t.bytes = base64.StdEncoding.AppendEncode(t.bytes, b[:n])
	if n < len(b) {
		t.add("…")
	}
	t.add(`"`)
}

func (t *text) uint(n uint64) {
	if n > largestExact {
		t.add(`"`)
		defer t.add(`"`)
	}
	t.bytes = strconv.AppendUint(t.bytes, n, 10)
}

func (t *text) int(n int64) {
	if n > largestExact || n < -largestExact {
		t.add(`"`)
		defer t.add(`"`)
	}
	t.bytes = strconv.AppendInt(t.bytes, n, 10)
}

// appendText appends a JSON string of at most so many bytes of s, and an ellipsis if there are more.
// What is no UTF-8 becomes U+FFFD.
func appendText(to []byte, s string, longest int) []byte {
	cut := len(s) > longest
	if cut {
		for longest > 0 && !utf8.RuneStart(s[longest]) {
			longest--
		}
		s = s[:longest]
	}
	to = append(to, '"')
	if isPlain(s) {
		to, s = append(to, s...), ""
	}
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			to = append(to, '\\', byte(r))
		case r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029':
			to = append(to, fmt.Sprintf(`\u%04x`, r)...)
		default:
			to = utf8.AppendRune(to, r)
		}
	}
	if cut {
		to = append(to, "…"...)
	}
	return append(to, '"')
}

// isPlain reports whether a text stands in a JSON string as it is.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// encoder writes values of one type.
type encoder struct {
	write func(*text, reflect.Value)
	// skips reports a value that is left out, where that can be.
	skips func(reflect.Value) bool
}

// isEmpty reports what says nothing: no text, no elements, no reference; nothing at all in a
// structure. A number says something even if it is 0.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() { //nolint:exhaustive // all others say something
	case reflect.String, reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Pointer, reflect.Interface:
		return v.IsNil()
	case reflect.Struct, reflect.Array, reflect.Bool:
		return v.IsZero()
	}
	return false
}

var (
	ofErrors      = reflect.TypeFor[error]()
	timeType      = reflect.TypeFor[time.Time]()
	durationType  = reflect.TypeFor[time.Duration]()
	timestampType = reflect.TypeFor[messages.Timestamp]()
	dateType      = reflect.TypeFor[calendar.Date]()
	traceType     = reflect.TypeFor[ids.TraceID]()
	spanType      = reflect.TypeFor[ids.SpanID]()
)

// special writes types whose text says more than their parts; nil if it is none.
func special(t reflect.Type) *encoder {
	switch t {
	case timeType:
		return textual(func(v reflect.Value) string { return v.Interface().(time.Time).UTC().Format(time.RFC3339Nano) }) //nolint:errcheck // it is one
	case durationType:
		return textual(func(v reflect.Value) string { return time.Duration(v.Int()).String() })
	case timestampType:
		return textual(func(v reflect.Value) string { return messages.Timestamp(v.Int()).String() })
	case traceType:
		return textual(func(v reflect.Value) string { return ids.TraceID(v.Uint()).String() })
	case spanType:
		return textual(func(v reflect.Value) string { return ids.SpanID(v.Uint()).String() })
	case dateType:
		return textual(func(v reflect.Value) string { return calendar.Date(v.Uint()).String() })
	}
	if t.Implements(ofErrors) && t.Kind() == reflect.Pointer || t == ofErrors {
		e := textual(func(v reflect.Value) string {
			if v.IsNil() {
				return "<nil>"
			}
			err, _ := reflect.TypeAssert[error](v)
			return err.Error()
		})
		e.skips = reflect.Value.IsNil
		return e
	}
	return nil
}

func textual(of func(reflect.Value) string) *encoder {
	return &encoder{
		write: func(t *text, v reflect.Value) { t.string(of(v)) },
		skips: reflect.Value.IsZero,
	}
}

// compile makes the encoder of a type. Those of types under way are in the map already: types may
// refer to themselves.
func compile(t reflect.Type, known map[reflect.Type]*encoder) *encoder {
	if e := known[t]; e != nil {
		return e
	}
	if e := special(t); e != nil {
		known[t] = e
		return e
	}
	e := &encoder{skips: isEmpty}
	known[t] = e
	switch t.Kind() {
	case reflect.Bool:
		e.write = func(t *text, v reflect.Value) { t.bytes = strconv.AppendBool(t.bytes, v.Bool()) }
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		e.write = func(t *text, v reflect.Value) { t.int(v.Int()) }
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		e.write = func(t *text, v reflect.Value) { t.uint(v.Uint()) }
	case reflect.Float32, reflect.Float64:
		e.write = writeFloat
	case reflect.String:
		e.write = func(t *text, v reflect.Value) { t.string(v.String()) }
	case reflect.Slice, reflect.Array:
		e.write = compileList(t, known)
	case reflect.Map:
		e.write = compileMap(t, known)
	case reflect.Pointer:
		inner := compile(t.Elem(), known)
		e.write = deeper(func(t *text, v reflect.Value) { inner.write(t, v.Elem()) })
	case reflect.Interface:
		e.write = deeper(func(t *text, v reflect.Value) { encoderOf(v.Elem().Type()).write(t, v.Elem()) })
	case reflect.Struct:
		compileStruct(e, t, known)
	case reflect.Invalid, reflect.Chan, reflect.Func, reflect.UnsafePointer, reflect.Complex64, reflect.Complex128:
		e.write = func(t *text, v reflect.Value) { t.string("<" + v.Kind().String() + ">") }
		e.skips = func(reflect.Value) bool { return true }
	}
	return e
}

// deeper ends what refers to itself. A nil in a list is written too.
func deeper(write func(*text, reflect.Value)) func(*text, reflect.Value) {
	return func(t *text, v reflect.Value) {
		switch t.depth++; {
		case v.IsNil():
			t.add(`"<nil>"`)
		case t.depth > maxDepth:
			t.add(`"<deep>"`)
		default:
			write(t, v)
		}
		t.depth--
	}
}

func writeFloat(t *text, v reflect.Value) {
	f := v.Float()
	if math.IsNaN(f) || math.IsInf(f, 0) {
		t.string(strconv.FormatFloat(f, 'g', -1, 64))
		return
	}
	t.bytes = strconv.AppendFloat(t.bytes, f, 'g', -1, 64)
}

// compileList writes bytes as a body, an array of bytes in hexadecimal.
func compileList(t reflect.Type, known map[reflect.Type]*encoder) func(*text, reflect.Value) {
	if t.Elem().Kind() == reflect.Uint8 {
		if t.Kind() == reflect.Slice {
			return func(t *text, v reflect.Value) { t.body(v.Bytes()) }
		}
		return func(t *text, v reflect.Value) {
			t.add(`"`)
			for i := range v.Len() {
				t.bytes = hex.AppendEncode(t.bytes, []byte{byte(v.Index(i).Uint())})
			}
			t.add(`"`)
		}
	}
	element := compile(t.Elem(), known)
	return func(t *text, v reflect.Value) {
		if t.depth++; t.depth > maxDepth {
			t.add(`"<deep>"`)
			t.depth--
			return
		}
		t.add("[")
		n := v.Len()
		for i := range n {
			if i > 0 {
				t.add(",")
			}
			if t.full() {
				t.string(fmt.Sprintf("<%d more>", n-i))
				break
			}
			element.write(t, v.Index(i))
		}
		t.add("]")
		t.depth--
	}
}

func compileMap(t reflect.Type, known map[reflect.Type]*encoder) func(*text, reflect.Value) {
	element := compile(t.Elem(), known)
	return func(t *text, v reflect.Value) {
		if t.depth++; t.depth > maxDepth {
			t.add(`"<deep>"`)
			t.depth--
			return
		}
		t.add("{")
		first := true
		for entries := v.MapRange(); entries.Next(); {
			if !first {
				t.add(",")
			}
			first = false
			if t.full() {
				t.add(`"<more>":true`)
				break
			}
			t.string(fmt.Sprint(entries.Key()))
			t.add(":")
			element.write(t, entries.Value())
		}
		t.add("}")
		t.depth--
	}
}

// field is one of a structure.
type field struct {
	name   string // `"Name":`
	index  int
	hidden bool
	*encoder
}

// compileStruct writes the fields that other packages see.
func compileStruct(e *encoder, t reflect.Type, known map[reflect.Type]*encoder) {
	var fields []field
	for f := range t.Fields() {
		if f.IsExported() {
			fields = append(fields, field{
				name: string(appendText(nil, f.Name, math.MaxInt)) + ":", index: f.Index[0], hidden: f.Tag.Get("dump") == "hidden", encoder: compile(f.Type, known),
			})
		}
	}
	e.write = func(t *text, v reflect.Value) {
		t.add("{")
		first := true
		for i := range fields {
			f := &fields[i]
			value := v.Field(f.index)
			if f.skips(value) {
				continue
			}
			if !first {
				t.add(",")
			}
			first = false
			switch t.add(f.name); {
			case f.hidden:
				t.add(hidden)
			case t.full() && f.isLarge(value):
				t.add(`"<cut>"`)
			default:
				f.write(t, value)
			}
		}
		t.add("}")
	}
}

// isLarge reports what is cut in a message that has become long: its numbers are still told.
func (f *field) isLarge(v reflect.Value) bool {
	switch v.Kind() { //nolint:exhaustive // all others are short
	case reflect.String, reflect.Slice, reflect.Map, reflect.Interface, reflect.Pointer, reflect.Struct, reflect.Array:
		return true
	}
	return false
}
