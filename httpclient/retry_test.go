package httpclient

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
)

const (
	busyText    = `{"type":"x#busy","title":"Busy","status":503,"detail":"d","error":"messages.ErrBusy"}`
	unknownText = `{"type":"x#outcome-unknown","title":"Unknown","status":500,"detail":"d","error":"messages.ErrOutcomeUnknown"}`
	kindText    = `{"type":"x#kind-mismatch","title":"Kind","status":409,"detail":"d","error":"messages.ErrKindMismatch"}`
	doneText    = `{"workspace":"1","wlog_offset":"1","partition":1,"plog_offset":"1","registered_at":"2026-11-21T17:00:00.000000Z","numbers":[],"repeated":true}`
)

// append1 appends with a client of a transport.
func append1(ctx context.Context, t *testing.T, fake *answering) error {
	t.Helper()
	c, err := New("http://localhost:1", Options{Transport: fake})
	check(t, err)
	_, err = c.Append(ctx, partition.AppendTo{Workspace: 1, Kind: shop}, partition.Draft{})
	return err
}

// TestRetries: what may pass is waited for, as long as the server says at the least and with the same key; what does not
// pass is returned.
func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &answering{answers: []func(*http.Request) (*http.Response, error){
			fails(errors.New("connection refused")), says(503, busyText, "Retry-After", "7"), says(502, "<html>"), says(500, unknownText),
			says(504, `{"type":"x#timeout","title":"Slow","status":504,"detail":"d"}`), says(429, "", "Retry-After", "2"), says(200, doneText),
		}}
		check(t, append1(t.Context(), t, fake))
		if len(fake.asked) != 7 {
			t.Fatalf("got %d requests", len(fake.asked))
		}
		for i, least := range []time.Duration{0, 7 * time.Second, 0, 0, 0, 2 * time.Second} {
			// 50 ms, doubled for each failure, and up to a half less.
			most := least + 50*time.Millisecond<<i
			if waited := fake.at[i+1].Sub(fake.at[i]); waited < least+25*time.Millisecond<<i || waited > most {
				t.Errorf("try %d: waited %v, want about %v", i+1, waited, most)
			}
			if a, b := fake.asked[i].Header.Get("Idempotency-Key"), fake.asked[i+1].Header.Get("Idempotency-Key"); a != b || len(a) != 36 {
				t.Errorf("got keys %q and %q", a, b)
			}
		}
	})
}

// TestGivesUp: the error says what the server has said last, and whether the event may have been written.
func TestGivesUp(t *testing.T) {
	refused := fails(errors.New("connection refused"))
	for name, tt := range map[string]struct {
		answers []func(*http.Request) (*http.Response, error)
		is, not []error
		tries   int
	}{
		"refused":                  {[]func(*http.Request) (*http.Response, error){says(409, kindText)}, []error{messages.ErrKindMismatch}, []error{messages.ErrOutcomeUnknown, context.DeadlineExceeded}, 1},
		"unknown, a proxy refuses": {[]func(*http.Request) (*http.Response, error){says(500, unknownText), says(403, "<html>")}, []error{messages.ErrOutcomeUnknown}, nil, 2},
		"unknown, another token": {[]func(*http.Request) (*http.Response, error){
			fails(errors.New("broken")), says(502, "<html>"), says(401, `{"type":"x#unauthorized","title":"Token","status":401,"detail":"d"}`),
		}, []error{messages.ErrOutcomeUnknown}, nil, 3},
		"unknown, another server": {[]func(*http.Request) (*http.Response, error){
			says(500, unknownText), says(422, `{"type":"x#invalid-event","title":"Kind","status":422,"detail":"d","error":"messages.ErrUnknownKind"}`),
		}, []error{messages.ErrOutcomeUnknown, messages.ErrUnknownKind}, nil, 2},
		"unknown, too large now": {[]func(*http.Request) (*http.Response, error){
			says(504, ""), says(413, `{"type":"x#too-large","title":"Large","status":413,"detail":"d","error":"messages.ErrTooLarge"}`),
		}, []error{messages.ErrOutcomeUnknown, messages.ErrTooLarge}, nil, 2},
		"unknown, record exists": {[]func(*http.Request) (*http.Response, error){
			says(500, unknownText), says(409, `{"type":"x#record-exists","title":"Record","status":409,"detail":"d","error":"storage.ErrConflict"}`),
		}, []error{storage.ErrConflict}, []error{messages.ErrOutcomeUnknown}, 2},
		"unknown, refused": {[]func(*http.Request) (*http.Response, error){says(500, unknownText), says(409, kindText)}, []error{messages.ErrKindMismatch}, []error{messages.ErrOutcomeUnknown}, 2},
		"busy too long":    {[]func(*http.Request) (*http.Response, error){says(503, busyText, "Retry-After", "60")}, []error{messages.ErrBusy, context.DeadlineExceeded}, []error{messages.ErrOutcomeUnknown}, 1},
		"unknown, busy": {[]func(*http.Request) (*http.Response, error){says(500, unknownText), says(503, busyText, "Retry-After", "60")},
			[]error{messages.ErrBusy, context.DeadlineExceeded, messages.ErrOutcomeUnknown}, nil, 2},
		"not there":            {[]func(*http.Request) (*http.Response, error){refused}, []error{context.DeadlineExceeded}, []error{messages.ErrOutcomeUnknown}, 0},
		"no partita":           {[]func(*http.Request) (*http.Response, error){says(404, "<html>")}, nil, []error{messages.ErrOutcomeUnknown, context.DeadlineExceeded}, 1},
		"a proxy has failed":   {[]func(*http.Request) (*http.Response, error){says(500, "<html>")}, []error{messages.ErrOutcomeUnknown}, nil, 1},
		"no answer of partita": {[]func(*http.Request) (*http.Response, error){says(200, "<html>")}, []error{messages.ErrOutcomeUnknown}, nil, 1},
		"certificate": {[]func(*http.Request) (*http.Response, error){fails(&tls.CertificateVerificationError{Err: errors.New("expired")})}, nil,
			[]error{messages.ErrOutcomeUnknown, context.DeadlineExceeded}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				fake := &answering{answers: tt.answers}
				err := append1(ctx, t, fake)
				if err == nil || tt.tries > 0 && len(fake.asked) != tt.tries {
					t.Errorf("got %v after %d tries, want %d", err, len(fake.asked), tt.tries)
				}
				for _, is := range tt.is {
					if !errors.Is(err, is) {
						t.Errorf("got %v, want %v", err, is)
					}
				}
				for _, not := range tt.not {
					if errors.Is(err, not) {
						t.Errorf("got %v, which is %v", err, not)
					}
				}
			})
		})
	}
}

// TestReadsAreInNoDoubt: that it is not known what a read has done matters to nobody.
func TestReadsAreInNoDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c, err := New("http://localhost:1", Options{Transport: &answering{answers: []func(*http.Request) (*http.Response, error){says(502, "")}}})
		check(t, err)
		if _, err := c.Status(ctx); errors.Is(err, messages.ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// TestRetryAfter reads both forms of the header.
func TestRetryAfter(t *testing.T) {
	const now, later = "Sat, 21 Nov 2026 17:00:00 GMT", "Sat, 21 Nov 2026 17:01:30 GMT"
	for _, tt := range []struct {
		text, now string
		want      time.Duration
	}{
		{"", now, 0}, {"7", "", 7 * time.Second}, {"-1", "", 0}, {"x", now, 0}, {later, now, 90 * time.Second}, {now, later, 0}, {later, "", 0},
	} {
		if got := retryAfter(tt.text, tt.now); got != tt.want {
			t.Errorf("%q at %q: got %v, want %v", tt.text, tt.now, got, tt.want)
		}
	}
}

// TestAnswersAreLost: a server whose answers are lost, before or after it has done what it was asked, writes each event once.
func TestAnswersAreLost(t *testing.T) {
	r := newRig(t, httpapi.Options{}, Options{})
	var mu sync.Mutex
	turn := 0
	r.put(func(api http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			mu.Lock()
			turn++
			how := turn % 4
			mu.Unlock()
			switch how {
			case 0: // it comes through
				api.ServeHTTP(w, request)
			case 1: // it is lost on its way there
				panic(http.ErrAbortHandler)
			case 2: // it is done, and the answer is lost
				api.ServeHTTP(httptest.NewRecorder(), request)
				panic(http.ErrAbortHandler)
			case 3: // it is done, and the answer breaks off
				kept := httptest.NewRecorder()
				api.ServeHTTP(kept, request)
				w.Header().Set("Content-Length", "1000")
				w.WriteHeader(kept.Code)
				_, _ = io.WriteString(w, kept.Body.String()[:20])
				panic(http.ErrAbortHandler)
			}
		})
	})
	const callers, each = 4, 25
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range each {
				if _, err := r.Client.Append(r.ctx, partition.AppendTo{Workspace: 1, Kind: shop}, invoice("1")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	events := r.App.Events(1)
	if len(events) != callers*each {
		t.Errorf("got %d events, want %d", len(events), callers*each)
	}
	r.App.AssertNumbers(1, messages.SequencePeriod{Seq: invoices}, 1, callers*each)
}

// TestContextEnds: when the context ends in the middle of an append, it is not known whether it was written; with its
// deduplication id it is known afterwards.
func TestContextEnds(t *testing.T) {
	r := newRig(t, httpapi.Options{}, Options{})
	ctx, cancel := context.WithCancel(r.ctx)
	r.put(func(api http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
			api.ServeHTTP(httptest.NewRecorder(), request)
			cancel()
			<-request.Context().Done()
		})
	})
	to := partition.AppendTo{Workspace: 1, Kind: shop, DedupID: partition.DedupID{7}}
	_, err := r.Client.Append(ctx, to, invoice("1"))
	if !errors.Is(err, messages.ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	r.put(func(api http.Handler) http.Handler { return api })
	done, err := r.Client.Append(r.ctx, to, invoice("1"))
	check(t, err)
	if !done.Repeated || done.WLogOffset != 1 || !slices.Equal(done.Numbers, []messages.SequenceNumber{{Seq: invoices, Number: 1}}) {
		t.Errorf("got %+v", done)
	}
}
