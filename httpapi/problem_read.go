package httpapi

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/replog"
)

// ProblemError is a problem as it is answered, in the words of its JSON. It is the error that a program which embeds
// partita would have got: errors.Is finds the same one, and errors.AsType a [messages.OffsetError], [messages.BusyError],
// [messages.OverflowError] or [messages.BackwardError] with what the problem says of it.
//
// From: all that asks with package httpclient.
// Do: what docs/errors.md says of the error that it is.
type ProblemError struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	// Field names the parameter, header or member of the body that is wrong.
	Field string `json:"field,omitempty"`
	// Cause is the error's name in docs/errors.md, if it has one.
	Cause string `json:"error,omitempty"`
	// Last is where the workspace's log ends, of expected-offset.
	Last *messages.WLogOffset `json:"last_offset,string,omitempty"`
	// Sequence, Name, Period, Largest and Number are of sequence-exhausted and sequence-backward.
	Sequence messages.SeqID   `json:"sequence,omitempty"`
	Name     string           `json:"name,omitempty"`
	Period   string           `json:"period,omitempty"`
	Largest  messages.Number  `json:"largest,string,omitempty"`
	Number   *messages.Number `json:"last_number,string,omitempty"`
	// Reason and Limit are of busy: a [messages.BusyReason] by its name, and the setting that is the bound, if one is.
	Reason string `json:"reason,omitempty"`
	Limit  string `json:"limit,omitempty"`
	// Trace is that of the request, zero if it belongs to none.
	Trace ids.TraceID `json:"trace,omitempty"`
	// RetryAfter is how long to wait before the request is repeated, 0 if the answer did not say. It is a header.
	RetryAfter time.Duration `json:"-"`
}

// ReadProblem reads the body of an answer, and says whether it is a problem.
func ReadProblem(body []byte) (*ProblemError, bool) {
	p := new(ProblemError)
	err := json.Unmarshal(body, p)
	return p, err == nil && p.Title != "" && p.Status != 0
}

// Kind returns the last part of the type, like "busy": see docs/http.md.
func (p *ProblemError) Kind() string { return p.Type[strings.LastIndexByte(p.Type, '#')+1:] }

func (p *ProblemError) Error() string { return p.Title + ": " + p.Detail }

// Unwrap returns the error that it would be without HTTP between, nil if there is none.
func (p *ProblemError) Unwrap() error {
	err := p.cause()
	switch {
	case errors.Is(err, messages.ErrBusy):
		return &messages.BusyError{Reason: messages.BusyReasonOf(p.Reason), RetryAfter: p.RetryAfter, Limit: p.Limit}
	case errors.Is(err, messages.ErrExpectedOffset) && p.Last != nil:
		return &messages.OffsetError{Got: *p.Last}
	case errors.Is(err, messages.ErrOverflow) && p.Sequence != 0:
		return &messages.OverflowError{Seq: p.Sequence, Name: p.Name, Largest: p.Largest}
	case errors.Is(err, messages.ErrBackward) && p.Number != nil:
		period, _ := readDate(p.Period)
		return &messages.BackwardError{Seq: p.Sequence, Name: p.Name, Period: period, Last: *p.Number}
	}
	return err
}

func (p *ProblemError) cause() error {
	for _, c := range causes {
		if c.name == p.Cause {
			return c.err
		}
	}
	if p.Kind() == invalidEvent.name {
		return messages.ErrDraft // it could not be read as one
	}
	return nil
}

// causeName returns the name of an error, "" if it is not told.
func causeName(err error) string {
	for _, c := range causes {
		if c.err == err { //nolint:errorlint // these are the sentinels themselves
			return c.name
		}
	}
	return ""
}

// causes are the errors that are told by their names, which never change.
var causes = []struct {
	name string
	err  error
}{
	{"calendar.ErrZone", calendar.ErrZone},
	{"calendar.ErrZoneChange", calendar.ErrZoneChange},
	{"messages.ErrBackward", messages.ErrBackward},
	{"messages.ErrBusinessDate", messages.ErrBusinessDate},
	{"messages.ErrBusy", messages.ErrBusy},
	{"messages.ErrClock", messages.ErrClock},
	{"messages.ErrDeadlineExceeded", messages.ErrDeadlineExceeded},
	{"messages.ErrDedupMismatch", messages.ErrDedupMismatch},
	{"messages.ErrWorkspaceZero", messages.ErrWorkspaceZero},
	{"messages.ErrDraft", messages.ErrDraft},
	{"messages.ErrExpectedOffset", messages.ErrExpectedOffset},
	{"messages.ErrExplicitID", messages.ErrExplicitID},
	{"messages.ErrFenced", messages.ErrFenced},
	{"messages.ErrInterrupted", messages.ErrInterrupted},
	{"messages.ErrKindMismatch", messages.ErrKindMismatch},
	{"messages.ErrOutcomeUnknown", messages.ErrOutcomeUnknown},
	{"messages.ErrOverflow", messages.ErrOverflow},
	{"messages.ErrPartitionFailed", messages.ErrPartitionFailed},
	{"messages.ErrRecordAhead", messages.ErrRecordAhead},
	{"messages.ErrStopped", messages.ErrStopped},
	{"messages.ErrTooLarge", messages.ErrTooLarge},
	{"messages.ErrTooManyNumbers", messages.ErrTooManyNumbers},
	{"messages.ErrUnknownKind", messages.ErrUnknownKind},
	{"messages.ErrUnknownSequence", messages.ErrUnknownSequence},
	{"messages.ErrUnknownZone", messages.ErrUnknownZone},
	{"partition.ErrCursor", partition.ErrCursor},
	{"partition.ErrKeepsNone", partition.ErrKeepsNone},
	{"partition.ErrNoEvent", partition.ErrNoEvent},
	{"partition.ErrNoRecord", partition.ErrNoRecord},
	{"partition.ErrNotHandled", partition.ErrNotHandled},
	{"partition.ErrNotParked", partition.ErrNotParked},
	{"partition.ErrNotRunning", partition.ErrNotRunning},
	{"partition.ErrUnknownPartition", partition.ErrUnknownPartition},
	{"replog.ErrMoved", replog.ErrMoved},
	{"replog.ErrNotOwner", replog.ErrNotOwner},
	{"storage.ErrClosed", storage.ErrClosed},
	{"storage.ErrConflict", storage.ErrConflict},
	{"storage.ErrDamaged", storage.ErrDamaged},
	{"storage.ErrFull", storage.ErrFull},
	{"storage.ErrInvalidEvent", storage.ErrInvalidEvent},
	{"storage.ErrNoSubscription", storage.ErrNoSubscription},
	{"storage.ErrSubscription", storage.ErrSubscription},
	{"storage.ErrTailFull", storage.ErrTailFull},
}

// unwritten are why a partition refuses an append that has a deduplication id only after it has looked in vain for an event
// with that id. All others come from before that, also from somebody between, or from another version of the server: they
// say nothing of an earlier try.
var unwritten = []error{
	messages.ErrExpectedOffset, messages.ErrKindMismatch, messages.ErrDedupMismatch, messages.ErrOverflow, messages.ErrBackward,
	messages.ErrBusinessDate, messages.ErrRecordAhead, calendar.ErrZoneChange, storage.ErrConflict,
}

// TellsUnwritten reports whether the refusal of an append that has a deduplication id says that no earlier try with that id
// was done either. It is safe for concurrent use.
func TellsUnwritten(err error) bool {
	return slices.ContainsFunc(unwritten, func(u error) bool { return errors.Is(err, u) })
}
