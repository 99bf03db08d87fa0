package ids

import "fmt"

// SpanID names a span of a trace, as parent-id of W3C Trace Context does: it is its 8 bytes, the first one on top. Zero
// is none.
type SpanID uint64

// String returns 16 hexadecimal digits in lower case, nothing for none.
func (s SpanID) String() string {
	if s == 0 {
		return ""
	}
	return fmt.Sprintf("%016x", uint64(s))
}
