package httpclient

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/partition/partitiontest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

const (
	shop     messages.WSKind = 1
	depot    messages.WSKind = 2
	office   messages.WSKind = 3
	invoices messages.SeqID  = 16
	rare     messages.SeqID  = 17
	letters  messages.SeqID  = 18
)

func descriptor() messages.Descriptor {
	return messages.Descriptor{Application: "billing", Partitions: 3, Kinds: []messages.Kind{
		{ID: shop, Name: "shop", Sequences: []messages.Sequence{
			{ID: invoices, Name: "Invoice", Initial: 1}, {ID: rare, Name: "Rare", Initial: messages.LargestDefault},
		}},
		{ID: depot, Name: "depot"},
		{ID: office, Name: "office", Sequences: []messages.Sequence{{
			ID: letters, Name: "Letter", Initial: 1, Restart: messages.Restart{Rule: calendar.Rule{Every: calendar.Year}},
		}}},
	}}
}

// rig is an application that is served, and a client of it.
type rig struct {
	*partitiontest.App
	*Client
	t   *testing.T
	ctx context.Context
	// between stands between the server and the API; nil is nothing.
	between atomic.Pointer[func(api http.Handler) http.Handler]
	reader  *partition.Reader
}

func newRig(t *testing.T, api httpapi.Options, o Options) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	r := &rig{t: t, ctx: ctx}
	kit := partitiontest.Options{}
	kit.Runtime.Clock = actors.SystemClock()
	r.App = partitiontest.Deploy(t, partition.Application{Descriptor: descriptor()}, kit)
	r.reader = r.App.Reader()
	handler, err := httpapi.New(r.App.App, r.reader, api)
	check(t, err)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if between := r.between.Load(); between != nil {
			(*between)(handler).ServeHTTP(w, request)
			return
		}
		handler.ServeHTTP(w, request)
	}))
	o.MinDelay, o.MaxDelay = time.Millisecond, 10*time.Millisecond
	r.Client, err = New(s.URL, o)
	check(t, err)
	t.Cleanup(func() {
		handler.Stop()
		r.Client.Close()
		s.Close()
	})
	return r
}

// put puts something between the server and the API.
func (r *rig) put(between func(api http.Handler) http.Handler) { r.between.Store(&between) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// invoice is a draft that wants a number and writes a row.
func invoice(body string) partition.Draft {
	return partition.Draft{
		Wanted:  []partition.Wanted{{Seq: invoices}},
		Records: []partition.DraftRecord{{New: true, Data: []byte(`{"of":"` + body + `"}`)}},
		Body:    []byte(body),
	}
}

// answering is a transport that gives answers in turn, the last one again and again.
type answering struct {
	answers []func(*http.Request) (*http.Response, error)
	asked   []*http.Request
	at      []time.Time
}

func (a *answering) RoundTrip(r *http.Request) (*http.Response, error) {
	a.asked, a.at = append(a.asked, r), append(a.at, time.Now())
	return a.answers[min(len(a.asked), len(a.answers))-1](r)
}

// says answers with a status, a body and headers, which are names and values in turn.
func says(status int, body string, headers ...string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		h := http.Header{}
		for i := 0; i < len(headers); i += 2 {
			h.Set(headers[i], headers[i+1])
		}
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(bytes.NewReader([]byte(body))), Request: r}, nil
	}
}

// fails is a connection that breaks, or is not there.
func fails(err error) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}
