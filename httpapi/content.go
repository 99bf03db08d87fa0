package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"unicode/utf8"
)

// maxDepth is how deep a body may be nested to be shown as a JSON value: many programs
// refuse deeper documents, and would never get past it.
const maxDepth = 32

// content is the body of an event, or the data of a record: a JSON value, or bytes as
// base64. Exactly one of the two is there.
type content struct {
	JSON   json.RawMessage
	Base64 *string
}

// contentOf shows bytes as JSON if they are what a JSON value is stored as, so that what
// was read can be written again and is the same.
func contentOf(b []byte) content {
	if isPlain(b) {
		return content{JSON: b}
	}
	text := base64.StdEncoding.EncodeToString(b)
	return content{Base64: &text}
}

// isPlain reports whether bytes are a JSON value without white space, not nested too deep.
func isPlain(b []byte) bool {
	depth, spaced := shape(b)
	return !spaced && depth <= maxDepth && utf8.Valid(b) && json.Valid(b)
}

// shape returns how deep JSON is nested, and whether it has white space.
func shape(b []byte) (deepest int, spaced bool) {
	now, inString := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '[' || c == '{':
			now++
			deepest = max(deepest, now)
		case c == ']' || c == '}':
			now--
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			spaced = true
		}
	}
	return deepest, spaced
}
