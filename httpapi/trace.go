package httpapi

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"

	"github.com/partita-go/partita/ids"
)

const (
	// headerTrace names the trace that a request belongs to, and that its answer does.
	headerTrace = "Partita-Trace"
	// headerParent is the W3C's: https://www.w3.org/TR/trace-context/#traceparent-header.
	headerParent = "Traceparent"
)

// beginTrace finds the trace that the request belongs to, and gives it a new one if it brings none along, and the
// application gives any. Nothing has a trace if the application does not run here.
func (c *call) beginTrace() error {
	if c.api.app == nil {
		return nil
	}
	id, err := traceOf(c.r.Header)
	ctx := ids.ContextWithTrace(c.r.Context(), id)
	if c.trace = c.api.app.TraceOf(ctx); c.trace == 0 {
		return err
	}
	if c.trace != id {
		ctx = ids.ContextWithTrace(ctx, c.trace)
	}
	c.r = c.r.WithContext(ctx)
	c.w.Header().Set(headerTrace, c.trace.String())
	return err
}

// traceOf returns the trace that headers name, zero if they name none.
func traceOf(h http.Header) (ids.TraceID, error) {
	switch given := h.Values(headerTrace); len(given) {
	case 0:
		return traceOfParent(h.Values(headerParent)), nil
	case 1:
		id, err := ids.ParseTraceID(given[0])
		if err != nil {
			return 0, &problem{kind: malformed, field: headerTrace, detail: err.Error()}
		}
		return id, nil
	default:
		return 0, &problem{kind: malformed, field: headerTrace, detail: fmt.Sprintf("got %d values, want one", len(given))}
	}
}

// traceOfParent returns the trace id that stands for the trace-id of a traceparent: its last 63 bits, with a last bit of
// 1 if they cannot be one otherwise. What cannot be read is ignored, as the W3C wants it.
func traceOfParent(given []string) ids.TraceID {
	if len(given) != 1 {
		return 0
	}
	parts := strings.SplitN(given[0], "-", 5)
	if len(parts) < 4 || len(parts[0]) != 2 || parts[0] == "ff" || parts[0] == "00" && len(parts) > 4 {
		return 0
	}
	trace, ok := lowerHex(parts[1], 16)
	_, okParent := lowerHex(parts[2], 8)
	_, okFlags := lowerHex(parts[3], 1)
	_, okVersion := lowerHex(parts[0], 1)
	if !ok || !okParent || !okFlags || !okVersion || strings.Trim(parts[1], "0") == "" || strings.Trim(parts[2], "0") == "" {
		return 0
	}
	return ids.TraceOfW3C([16]byte(trace))
}

// lowerHex reads so many bytes as hexadecimal digits in lower case.
func lowerHex(s string, size int) ([]byte, bool) {
	b, err := hex.DecodeString(s)
	return b, err == nil && len(b) == size && strings.ToLower(s) == s
}
