package httpapi

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/replog"
)

// ErrOptions is returned when an option is out of its range. The error names the option, what it got and what it
// wants.
//
// From: New, Options.Validate.
// Do: correct the option.
var ErrOptions = errors.New("bad option")

// errUnwritable is why an event can't be written as JSON so that it can be read again.
var errUnwritable = errors.New("it has no time between the years 1 and 9999, which JSON could tell")

// errUnread is why an answer cannot be read that has a word which this version does not know.
var errUnread = errors.New("unknown state")

// How long to wait before a request is repeated that was refused with 503.
const (
	// retrySoon is for what passes by itself.
	retrySoon = time.Second
	// retryLater is for what somebody has to mend.
	retryLater = 30 * time.Second
)

// knownError is an error of another package, and the problem that it is.
type knownError struct {
	err  error
	kind *problemKind
	// detail is empty if the error's text can be shown.
	detail     string
	field      string
	retryAfter time.Duration
}

// answers are those of all errors. The first that fits counts: an outcome that is unknown
// may have any other error as its cause.
var answers = []knownError{
	{err: messages.ErrOutcomeUnknown, kind: outcomeUnknown, detail: "it is not known whether the event was written. Repeat the request with the same Idempotency-Key: " +
		"the answer is the first one's if the event is there, else it is appended now. If the request had no key, look for the event in the log of the workspace"},
	{err: messages.ErrDedupMismatch, kind: keyReused, field: headerKey},
	{err: messages.ErrKindMismatch, kind: kindMismatch, field: "kind"},
	{err: messages.ErrUnknownKind, kind: invalidEvent, field: "kind"},
	{err: messages.ErrWorkspaceZero, kind: invalidEvent, field: "wsid"},
	{err: messages.ErrUnknownSequence, kind: invalidEvent},
	{err: messages.ErrTooManyNumbers, kind: invalidEvent, field: "wanted"},
	{err: messages.ErrExplicitID, kind: invalidEvent, field: "records"},
	{err: messages.ErrTooLarge, kind: tooLarge},
	{err: messages.ErrDraft, kind: invalidEvent, field: "records"},
	{err: storage.ErrInvalidEvent, kind: invalidEvent},
	{err: messages.ErrOverflow, kind: exhausted},
	{err: messages.ErrBackward, kind: backward},
	{err: messages.ErrBusinessDate, kind: invalidEvent, field: "date"},
	{err: calendar.ErrZone, kind: invalidEvent, field: "zone"},
	{err: calendar.ErrZoneChange, kind: invalidEvent, field: "zone"},
	{err: messages.ErrUnknownZone, kind: unavailable, retryAfter: retryLater},
	{err: partition.ErrNoEvent, kind: notFound, field: "offset"},
	{err: partition.ErrNoRecord, kind: notFound, field: "number"},
	{err: storage.ErrNoSubscription, kind: notFound, field: "name"},
	{err: partition.ErrKeepsNone, kind: notFound},
	{err: partition.ErrCursor, kind: malformed, field: paramAfter},
	{err: messages.ErrPartitionFailed, kind: unavailable, detail: "the partition has failed and must be repaired; its status says why", retryAfter: retryLater},
	{err: messages.ErrFenced, kind: unavailable, detail: "another owner has taken the partition over; nothing was written", retryAfter: retryLater},
	{err: messages.ErrClock, kind: unavailable, detail: "the server's clock is wrong, its status says how; nothing was written", retryAfter: retryLater},
	{err: messages.ErrInterrupted, kind: unavailable, detail: "the partition is starting again; nothing was written", retryAfter: retrySoon},
	{err: messages.ErrStopped, kind: unavailable, detail: "the server is stopping; nothing was written", retryAfter: retrySoon},
	{err: replog.ErrNotOwner, kind: notOwner, retryAfter: retrySoon},
	{err: replog.ErrMoved, kind: notOwner, retryAfter: retrySoon},
	{err: storage.ErrTailFull, kind: busy, detail: "too much is not flushed yet; nothing was written", retryAfter: retrySoon},
	{err: storage.ErrFull, kind: unavailable, detail: "there is no space left; nothing was written", retryAfter: retryLater},
	{err: storage.ErrClosed, kind: unavailable, detail: "the store is closed", retryAfter: retryLater},
	{err: storage.ErrDamaged, kind: damaged, detail: "stored data is damaged; `partita verify` names the place"},
	{err: messages.ErrDeadlineExceeded, kind: timedOut, detail: "the partition did not come to it in time; nothing was written"},
	{err: context.DeadlineExceeded, kind: timedOut, detail: "it took too long; nothing was written"},
	{err: context.Canceled, kind: unavailable, detail: "the request was given up; nothing was written", retryAfter: retrySoon},
	{err: messages.ErrBusy, kind: busy, retryAfter: retrySoon},
	{err: messages.ErrExpectedOffset, kind: expectedOffset, field: "expected_offset"},
}

// problemOf returns the problem that an error is. What is known of it besides counts first.
func problemOf(err error, known ...knownError) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	for _, a := range slices.Concat(known, answers) {
		if !errors.Is(err, a.err) {
			continue
		}
		p := &problem{
			kind: a.kind, detail: a.detail, field: a.field, retryAfter: a.retryAfter, cause: a.err,
			hides: a.detail != "" && a.kind.status >= 500,
		}
		if p.detail == "" {
			p.detail = err.Error()
		}
		p.tellMore(err)
		return p
	}
	return &problem{kind: internal, detail: "the server has failed; its log says why", hides: true}
}

// tellMore adds what an error of the problem's kind says besides its text.
func (p *problem) tellMore(err error) {
	switch p.kind {
	case busy:
		if b, ok := errors.AsType[*messages.BusyError](err); ok {
			p.detail, p.retryAfter, p.refused = b.Error(), max(b.RetryAfter, retrySoon), b
		}
	case expectedOffset:
		if o, ok := errors.AsType[*messages.OffsetError](err); ok {
			p.detail, p.last = o.Error(), &o.Got
		}
	case exhausted:
		if o, ok := errors.AsType[*messages.OverflowError](err); ok {
			p.detail, p.ended = o.Error(), o
		}
	case backward:
		if b, ok := errors.AsType[*messages.BackwardError](err); ok {
			p.detail, p.behind = b.Error(), b
		}
	}
}
