package httpapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

var errPoison = errors.New("nobody lives there")

// mailer is a handler that cannot handle some events.
type mailer struct {
	mu   sync.Mutex
	bad  []uint64
	sent []uint64
}

func (m *mailer) handle(_ context.Context, d partition.Delivery) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, e := range d.Events {
		if slices.Contains(m.bad, e.Offset) {
			return &partition.BatchError{Index: i, Err: errPoison}
		}
		m.sent = append(m.sent, e.Offset)
	}
	return nil
}

// fails says which events cannot be handled from now on.
func (m *mailer) fails(offsets ...uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bad = offsets
}

func (m *mailer) got() []uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.sent)
}

// subscribe starts a subscription of workspace 42, which gives events up soon.
func (r *rig) subscribe(name string, handler partition.DeliveryHandler) *partition.Subscription {
	r.t.Helper()
	s, err := r.app.Subscribe(r.ctx, partition.SubscriptionConfig{
		Name: name, Workspace: new(messages.WSID(42)), Handler: handler, MinDelay: time.Millisecond, MaxDelay: time.Millisecond, MaxTries: 2,
	})
	check(r.t, err)
	return s
}

// settles waits until the one lane of a subscription does nothing by itself.
func (r *rig) settles(name string, want messages.LaneState) {
	r.t.Helper()
	eventually(r.ctx, r.t, "a lane that is "+want.String(), func() bool {
		status, err := r.app.SubscriptionAdmin().Status(r.ctx, name)
		check(r.t, err)
		return status.Lanes[0].State == want
	})
}

// change sends a change of a subscription.
func (r *rig) change(name, verb, body string) answer {
	r.t.Helper()
	return r.do(http.MethodPost, "/v1/subscriptions/"+name+"/"+verb, body, "Content-Type", jsonType)
}

// subscription is one as a client sees it.
type subscription struct {
	Name, State, Stopped, Error string
	Source                      map[string]any
	LagEvents                   string  `json:"lag_events"`
	LagSeconds                  float64 `json:"lag_seconds"`
	Parked, Delivered           string
	Lanes                       []struct {
		Partition int
		State     string
		Next      string `json:"next_offset"`
		LagEvents string `json:"lag_events"`
		Tries     int
		Error     string
	}
}

func (r *rig) subscription(name string) (s subscription) {
	r.t.Helper()
	r.get("/v1/subscriptions/" + name).has(http.StatusOK).decode(&s)
	return s
}

// listed is a page of subscriptions or parked events.
type listed struct {
	Results []struct{ Name, Offset, Reason string }
	Next    *string
}

func (a answer) listed() (l listed) {
	a.t.Helper()
	a.has(http.StatusOK).decode(&l)
	return l
}

// walk follows a list of pages, and returns the names and offsets in it.
func (r *rig) walk(target string) (all []string, pages int) {
	r.t.Helper()
	for pages = 0; ; pages++ {
		l := r.get(target).listed()
		for _, e := range l.Results {
			all = append(all, e.Name+e.Offset)
		}
		if l.Next == nil {
			return all, pages + 1
		}
		target = *l.Next
	}
}
