package httpapi

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
)

// problemBase is what the type of a problem begins with: the page that explains it.
const problemBase = "https://github.com/partita-go/partita/blob/main/docs/http.md#"

// problemKind is a type of problem. Its name and status never change.
type problemKind struct {
	name   string
	title  string
	status int
}

// The kinds of problems.
var (
	malformed      = &problemKind{"malformed", "The request cannot be understood", http.StatusBadRequest}
	unauthorized   = &problemKind{"unauthorized", "The request needs a token", http.StatusUnauthorized}
	notFound       = &problemKind{"not-found", "There is no such thing", http.StatusNotFound}
	wrongMethod    = &problemKind{"wrong-method", "The path does not have this method", http.StatusMethodNotAllowed}
	tooSlow        = &problemKind{"too-slow", "The body did not come in time", http.StatusRequestTimeout}
	expectedOffset = &problemKind{"expected-offset", "The workspace has moved on", http.StatusConflict}
	kindMismatch   = &problemKind{"kind-mismatch", "The workspace is of another kind", http.StatusConflict}
	recordExists   = &problemKind{"record-exists", "The record exists already", http.StatusConflict}
	exhausted      = &problemKind{"sequence-exhausted", "The sequence has not as many numbers left", http.StatusConflict}
	backward       = &problemKind{"sequence-backward", "The sequence would not go forward", http.StatusConflict}
	notRunning     = &problemKind{"not-running", "The subscription does not run here", http.StatusConflict}
	notHandled     = &problemKind{"not-handled", "The handler could not handle the event", http.StatusConflict}
	aheadOfLog     = &problemKind{"ahead-of-log", "The position is ahead of the log", http.StatusConflict}
	tooLarge       = &problemKind{"too-large", "The body is too large", http.StatusRequestEntityTooLarge}
	wrongType      = &problemKind{"wrong-type", "The body is not plain JSON", http.StatusUnsupportedMediaType}
	wrongHost      = &problemKind{"wrong-host", "The server does not answer for this host", http.StatusMisdirectedRequest}
	invalidEvent   = &problemKind{"invalid-event", "This cannot be an event of the workspace", http.StatusUnprocessableEntity}
	invalidChange  = &problemKind{"invalid-change", "The subscription cannot be changed like this", http.StatusUnprocessableEntity}
	keyReused      = &problemKind{"idempotency-key-reused", "The key was used for another event", http.StatusUnprocessableEntity}
	internal       = &problemKind{"internal", "The server has failed", http.StatusInternalServerError}
	damaged        = &problemKind{"damaged", "Stored data is damaged", http.StatusInternalServerError}
	outcomeUnknown = &problemKind{"outcome-unknown", "It may have been written or not", http.StatusInternalServerError}
	busy           = &problemKind{"busy", "The partition takes no event now", http.StatusServiceUnavailable}
	tooManyReaders = &problemKind{"too-many-readers", "Too many readers wait already", http.StatusServiceUnavailable}
	unavailable    = &problemKind{"unavailable", "The partition or the store cannot be used", http.StatusServiceUnavailable}
	notOwner       = &problemKind{"not-owner", "Another node owns the log", http.StatusServiceUnavailable}
	behind         = &problemKind{"behind", "The server has not come so far yet", http.StatusServiceUnavailable}
	notReady       = &problemKind{"not-ready", "The server is not ready", http.StatusServiceUnavailable}
	timedOut       = &problemKind{"timeout", "It took too long", http.StatusGatewayTimeout}
)

// problem is an error that is answered with application/problem+json (RFC 9457).
type problem struct {
	kind   *problemKind
	detail string
	// field names the parameter, header or member of the body that is wrong.
	field string
	// last is where the workspace's log ends, for expectedOffset.
	last *messages.WLogOffset
	// refused says why, for busy.
	refused *messages.BusyError
	// ended is the sequence, for exhausted.
	ended *messages.OverflowError
	// behind is the sequence, for backward.
	behind *messages.BackwardError
	// retryAfter is set for every problem with status 503.
	retryAfter time.Duration
	// trace is that of the request, zero if it belongs to none.
	trace ids.TraceID
	// cause is what programs that embed partita get; nil if it is not told.
	cause error
	// hides says that the detail does not tell the cause, which is logged.
	hides bool
}

func (p *problem) Error() string { return p.kind.title + ": " + p.detail }

// MarshalJSON implements json.Marshaler.
func (p *problem) MarshalJSON() ([]byte, error) {
	j := ProblemError{
		Type: problemBase + p.kind.name, Title: p.kind.title, Status: p.kind.status, Detail: p.detail, Field: p.field, Last: p.last,
		Cause: causeName(p.cause), Trace: p.trace,
	}
	if p.refused != nil {
		j.Reason, j.Limit = p.refused.Reason.Name(), p.refused.Limit
	}
	if p.ended != nil {
		j.Sequence, j.Name, j.Period, j.Largest = p.ended.Seq, p.ended.Name, dateText(p.ended.Period), p.ended.Largest
	}
	if b := p.behind; b != nil {
		j.Sequence, j.Name, j.Period, j.Number = b.Seq, b.Name, dateText(b.Period), &b.Last
	}
	return json.Marshal(&j)
}

func (p *problem) setHeaders(h http.Header) {
	// Seconds are all that the header can say.
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.retryAfter.Seconds()))))
	}
	if p.kind == unauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="partita"`)
	}
}
