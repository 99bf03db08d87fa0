package httpclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/internal/backoff"
	"github.com/partita-go/partita/messages"
)

// lost is the error of a request that has no answer.
type lost struct {
	// sent says that the server may have it.
	sent bool
	err  error
}

func (e *lost) Error() string { return e.err.Error() }
func (e *lost) Unwrap() error { return e.err }

// strange is an answer that is none of partita's, like that of a proxy.
type strange struct {
	status int
	after  time.Duration
}

func (e *strange) Error() string {
	return fmt.Sprintf("got %d %s, which is no answer of partita", e.status, http.StatusText(e.status))
}

// verdict is what an error says about repeating the request.
type verdict struct {
	// again says that it may succeed later, and after how long to wait at the least.
	again bool
	after time.Duration
	// unknown says that the request may have been done.
	unknown bool
}

func judge(err error) verdict {
	if e, ok := errors.AsType[*lost](err); ok {
		_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
		return verdict{again: !untrusted, unknown: e.sent}
	}
	if e, ok := errors.AsType[*strange](err); ok {
		return verdict{again: passes(e.status), after: e.after, unknown: e.status >= http.StatusInternalServerError || e.status < http.StatusMultipleChoices}
	}
	if p, ok := errors.AsType[*httpapi.ProblemError](err); ok {
		unknown := errors.Is(p, messages.ErrOutcomeUnknown)
		return verdict{again: unknown || passes(p.Status), after: p.RetryAfter, unknown: unknown}
	}
	return verdict{}
}

// passes reports whether a status is that of something which passes.
func passes(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// retry counts the failures of a request.
type retry struct {
	options *Options
	// writes says that it matters whether it was done.
	writes   bool
	failures int
	// unknown says that a try may have been done.
	unknown bool
}

// wait returns nil when it is time for another try, else why there is none.
func (r *retry) wait(ctx context.Context, err error) error {
	v := judge(err)
	v.unknown = v.unknown && r.writes
	if !v.again {
		return r.doubt(v.unknown || r.unknown && !httpapi.TellsUnwritten(err), err)
	}
	r.unknown = r.unknown || v.unknown
	r.failures++
	delay := v.after + backoff.Delay(r.options.MinDelay, r.options.MaxDelay, r.failures, rand.Float64())
	if end, limited := ctx.Deadline(); limited && time.Until(end) < delay {
		return r.doubt(r.unknown, r.ended(ctx, context.DeadlineExceeded, err))
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return r.doubt(r.unknown, r.ended(ctx, ctx.Err(), err))
	}
}

// ended adds the end of the context to an error that does not say it.
func (r *retry) ended(ctx context.Context, end, err error) error {
	if errors.Is(err, end) || ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return fmt.Errorf("%w: %w", err, end)
}

// doubt adds that it is not known whether the request was done.
func (r *retry) doubt(unknown bool, err error) error {
	if !unknown || errors.Is(err, messages.ErrOutcomeUnknown) {
		return err
	}
	return fmt.Errorf("%w: %w", messages.ErrOutcomeUnknown, err)
}
