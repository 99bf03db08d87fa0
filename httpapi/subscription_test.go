package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/partition/partitiontest"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// TestSubscription: what is shown is where it stands, and each change does what it says, in
// the subscription that runs.
func TestSubscription(t *testing.T) {
	r := newRig(t, Options{})
	r.write(42, 4)
	m := new(mailer)
	m.fails(2, 4)
	r.subscribe("mails", m.handle)
	// It waits for a moment before it has found the first event, too.
	eventually(r.ctx, t, "the end of the log", func() bool { return r.subscription("mails").LagEvents == "0" })
	r.settles("mails", messages.LaneWaiting)
	r.get("/v1/subscriptions/mails").is(http.StatusOK, `{"name":"mails","source":{"workspace":"42"},"state":"running","lag_events":"0","lag_seconds":0,`+
		`"parked":"2","delivered":"2","lanes":[{"partition":2,"state":"waiting","next_offset":"5","lag_events":"0","lag_seconds":0,"tries":0}]}`)
	r.get("/v1/subscriptions/mails/parked").timeless().is(http.StatusOK, `{"results":[`+
		`{"partition":2,"offset":"2","reason":"event 0 of the batch: nobody lives there","tries":2,"parked_at":"TIME"},`+
		`{"partition":2,"offset":"4","reason":"event 0 of the batch: nobody lives there","tries":4,"parked_at":"TIME"}],"next":null}`)
	const second = `{"partition": 2, "offset": "2"}`
	failed := r.change("mails", "replay", second).problem(notHandled, "")
	if !strings.Contains(failed.body, errPoison.Error()) {
		t.Errorf("got %s", failed.body)
	}
	m.fails()
	r.change("mails", "replay", second).is(http.StatusOK, `{"status":"ok"}`)
	r.change("mails", "replay", second).problem(notFound, "offset")
	r.change("mails", "replay", `{"partition": 1, "offset": "4"}`).problem(notFound, "offset")
	r.change("mails", "drop", `{"partition": 2, "offset": "4"}`).is(http.StatusOK, `{"status":"ok"}`)
	r.get("/v1/subscriptions/mails/parked").is(http.StatusOK, `{"results":[],"next":null}`)

	r.change("mails", "pause", `{}`).has(http.StatusOK)
	r.write(42, 2)
	r.settles("mails", messages.LaneHalted)
	s := r.subscription("mails")
	if s.State != "paused" || s.Stopped != "paused" || s.LagEvents != "2" || s.LagSeconds <= 0 || s.Lanes[0].Next != "5" {
		t.Errorf("got %+v", s)
	}
	r.change("mails", "skip", `{}`).has(http.StatusOK)
	if s := r.subscription("mails"); s.LagEvents != "0" || s.Lanes[0].Next != "7" {
		t.Errorf("got %+v", s)
	}
	r.change("mails", "rewind", `{"partition": 2, "offset": "6"}`).has(http.StatusOK)
	r.change("mails", "resume", `{}`).has(http.StatusOK)
	eventually(r.ctx, t, "the last event", func() bool { return len(m.got()) == 4 })
	if got, want := m.got(), []uint64{1, 3, 2, 6}; !slices.Equal(got, want) {
		t.Errorf("got %d, want %d", got, want)
	}
	r.do(http.MethodDelete, "/v1/subscriptions/mails", "").is(http.StatusOK, `{"status":"ok"}`)
	r.get("/v1/subscriptions").is(http.StatusOK, `{"results":[],"next":null}`)
	if n := len(r.app.Subscriptions()); n > 0 {
		t.Errorf("got %d that run", n)
	}
}

// TestSubscriptionThatDoesNotRun: it is shown and changed all the same, but nobody can handle
// an event.
func TestSubscriptionThatDoesNotRun(t *testing.T) {
	r := newRig(t, Options{})
	r.write(42, 4)
	r.keep("rests")
	s := r.subscription("rests")
	if s.State != "not-running" || s.LagEvents != "2" || s.Parked != "1" || s.Lanes[0].State != "ended" || s.Lanes[0].Next != "3" {
		t.Errorf("got %+v", s)
	}
	const parked = `{"partition": 2, "offset": "2"}`
	r.change("rests", "replay", parked).problem(notRunning, "")
	r.change("rests", "rewind", parked).has(http.StatusOK)
	if s := r.subscription("rests"); s.Parked != "0" || s.Lanes[0].Next != "2" {
		t.Errorf("got %+v", s)
	}
	m := new(mailer)
	r.subscribe("rests", m.handle)
	eventually(r.ctx, t, "events", func() bool { return len(m.got()) == 3 })
}

// TestSubscriptionSources: each kind of source is shown as what it is.
func TestSubscriptionSources(t *testing.T) {
	r := newRig(t, Options{})
	keep := r.store.Inner().(storage.Subscriptions)
	for name, tt := range map[string]struct {
		source storage.SubscriptionSource
		lanes  int
		want   string
	}{
		"all":       {storage.SubscriptionSource{}, 4, `"source":{}`},
		"partition": {storage.SubscriptionSource{Partition: new(messages.PartitionID(0))}, 1, `"source":{"partition":0}`},
		"workspace": {storage.SubscriptionSource{Workspace: new(big)}, 1, `"source":{"workspace":"9223372036854775809"}`},
		"kinds":     {storage.SubscriptionSource{Kinds: []messages.WSKind{shop, depot}}, 4, `"source":{"workspace_kinds":[1,2]}`},
	} {
		check(t, keep.PutSubscription(r.ctx, storage.Subscription{Name: name, SubscriptionSource: tt.source}))
		a := r.get("/v1/subscriptions/" + name).has(http.StatusOK)
		if !strings.Contains(a.body, tt.want) || strings.Count(a.body, `"next_offset":"1"`) != tt.lanes {
			t.Errorf("%s: got %s, want %d lanes", name, a.body, tt.lanes)
		}
	}
}

// TestSubscriptionNames: every name that there can be has a path, but for a slash alone, which the
// mux takes for the end of a path; and the links of pages lead on.
func TestSubscriptionNames(t *testing.T) {
	r := newRig(t, Options{})
	names := []string{".", "..", "//", "a/../b", "a?limit=1&after=x#", "50%", "é\u2028", "mails", "log", strings.Repeat("é", 100)}
	for _, name := range names {
		check(t, r.store.Inner().(storage.Subscriptions).PutSubscription(r.ctx, storage.Subscription{Name: name}))
		path := strings.ReplaceAll(url.PathEscape(name), ".", "%2E")
		if got := r.subscription(path); got.Name != name {
			t.Errorf("%q: got %q", name, got.Name)
		}
		r.change(path, "pause", `{}`).has(http.StatusOK)
	}
	slices.Sort(names)
	all, pages := r.walk("/v1/subscriptions?limit=2")
	if !slices.Equal(all, names) || pages != 5 {
		t.Errorf("got %d pages, %q", pages, all)
	}
	for _, name := range []string{"%00", strings.Repeat("x", 201), "%ff"} {
		r.get("/v1/subscriptions/"+name).problem(malformed, "name")
		r.do(http.MethodDelete, "/v1/subscriptions/"+name, "").problem(malformed, "name")
	}
	r.get("/v1/subscriptions?after=").problem(malformed, "after")
	r.get("/v1/subscriptions?limit=201").problem(malformed, "limit")
}

// misnamed keeps a subscription of which the name is damaged.
type misnamed struct {
	storagetest.Subscribing
	name atomic.Pointer[string]
}

func (m *misnamed) is(name string) bool { return m.name.Load() != nil && *m.name.Load() == name }

func (m *misnamed) SubscriptionNames(ctx context.Context) ([]string, error) {
	names, err := m.Subscribing.SubscriptionNames(ctx)
	if name := m.name.Load(); name != nil {
		names = append(names, *name)
		slices.Sort(names)
	}
	return names, err
}

func (m *misnamed) Subscription(ctx context.Context, name string) (storage.Subscription, error) {
	if m.is(name) {
		return storage.Subscription{}, &storage.DamagedError{Where: fmt.Sprintf("subscription %q", name), Cause: errors.New("flipped")}
	}
	return m.Subscribing.Subscription(ctx, name)
}

func (m *misnamed) DeleteSubscription(ctx context.Context, name string) error {
	if m.is(name) {
		m.name.Store(nil)
		return nil
	}
	return m.Subscribing.DeleteSubscription(ctx, name)
}

// TestDamagedNames: a subscription whose damaged name is none that there can be ends no list, is
// told in quotes, and can be deleted.
func TestDamagedNames(t *testing.T) {
	m := &misnamed{}
	r := newRigOver(t, Options{}, partitiontest.Options{Over: func(f *storagetest.Faulty) (_ storage.Store, err error) {
		m.Subscribing, err = storagetest.NewSubscribing(f)
		return m, err
	}})
	for _, name := range []string{"a", "z"} {
		check(t, m.PutSubscription(r.ctx, storage.Subscription{Name: name}))
	}
	for _, name := range []string{"m\x00", "m\xff", "m" + strings.Repeat("x", 300)} {
		m.name.Store(&name)
		names, pages := r.walk("/v1/subscriptions?limit=1")
		if want := []string{"a", strings.ToValidUTF8(name, "\ufffd"), "z"}; !slices.Equal(names, want) || pages != 3 {
			t.Errorf("%q: got %d pages, %q", name, pages, names)
		}
		var list Page[Subscription]
		r.get("/v1/subscriptions").has(http.StatusOK).decode(&list)
		if told := list.Results[1]; told.State != "failed" || !strings.Contains(told.Error, fmt.Sprintf("%q", name)) {
			t.Errorf("%q: got %+v", name, told)
		}
		path := "/v1/subscriptions/" + url.PathEscape(name)
		r.get(path).problem(damaged, "")
		r.do(http.MethodDelete, path, "").has(http.StatusOK)
		r.get(path).problem(malformed, "name")
	}
}

// TestParkedPages: following the links gives each parked event once, in order; a page ends
// where it is large.
func TestParkedPages(t *testing.T) {
	r := newRig(t, Options{PageBytes: 8000})
	for ws := range messages.WSID(4) {
		r.write(ws, 9)
	}
	s := storage.Subscription{Name: "parks", Next: make(map[messages.PartitionID]uint64)}
	var want []string
	for p := range messages.PartitionID(4) {
		s.Next[p] = 10
		for offset := range uint64(9) {
			s.Parked = append(s.Parked, storage.ParkedEvent{Partition: p, Offset: offset + 1, Reason: strings.Repeat("x", 4000), Tries: 1, At: 1})
			want = append(want, fmt.Sprint(offset+1))
		}
	}
	check(t, r.store.Inner().(storage.Subscriptions).PutSubscription(r.ctx, s))
	for query, pages := range map[string]int{"": 18, "?limit=1": 36, "?limit=12": 18} {
		if got, n := r.walk("/v1/subscriptions/parks/parked" + query); !slices.Equal(got, want) || n != pages {
			t.Errorf("%s: got %d pages, %q", query, n, got)
		}
	}
	for _, after := range []string{"", "2", "2-", "-2", "2-x", "x-2", "2-1-1", "+2-1", "99999999999-1"} {
		r.get("/v1/subscriptions/parks/parked?after="+url.QueryEscape(after)).problem(malformed, "after")
	}
	before := r.store.Calls(storagetest.OpParkedEvents)
	r.get("/v1/subscriptions/parks/parked?limit=1&after=3-7").has(http.StatusOK)
	if n := r.store.Calls(storagetest.OpParkedEvents) - before; n != 1 {
		t.Errorf("got %d reads of the store for one event, want 1", n)
	}
	if l := r.get("/v1/subscriptions/parks/parked?after=3-9").listed(); len(l.Results) > 0 || l.Next != nil {
		t.Errorf("got %+v", l)
	}
}

// TestChangeRefused: each change that cannot be names what is wrong, and changes nothing.
func TestChangeRefused(t *testing.T) {
	r := newRig(t, Options{})
	r.write(42, 4)
	r.keep("mails")
	before := r.subscription("mails")
	for body, field := range map[string]string{
		`[]`: "", `null`: "", `{}`: "partition", `{"offset": "1"}`: "partition", `{"partition": 2}`: "offset",
		`{"partition": "2", "offset": "1"}`: "partition", `{"partition": 2, "offset": 1}`: "offset", `{"partition": -1, "offset": "1"}`: "partition",
		`{"partition": 2, "offset": "0"}`: "offset", `{"partition": 2, "offset": "x"}`: "offset", `{"partition": 2, "offset": "1", "offset": "2"}`: "offset",
		`{"partition": 2, "offset": "6"}`: "offset", `{"partition": 1, "offset": "1"}`: "partition", `{"partition": 4, "offset": "1"}`: "partition",
		`{"partition": 2, "offset": "18446744073709551615"}`: "offset", `{"partition": 2, "offset": "1", "form": 1}`: "form",
	} {
		r.change("mails", "rewind", body).problem(invalidChange, field)
	}
	r.change("mails", "pause", `{"partition": 2}`).problem(invalidChange, "partition")
	r.change("mails", "pause", ``).problem(malformed, "")
	r.change("mails", "drop", `{"partition": 1, "offset": "1"}`).problem(notFound, "offset")
	r.do(http.MethodGet, "/v1/subscriptions/mails/pause", "").problem(wrongMethod, "")
	r.do(http.MethodDelete, "/v1/subscriptions/mails", "{}").problem(malformed, "")
	if after := r.subscription("mails"); after.State != before.State || after.Lanes[0] != before.Lanes[0] || after.Parked != before.Parked {
		t.Errorf("got %+v, want %+v", after, before)
	}
}

// TestChangeWaitsForTheHandler, but not for ever, and not when the server stops: then nothing
// was changed.
func TestChangeWaitsForTheHandler(t *testing.T) {
	entered, end := make(chan struct{}, 1), make(chan struct{})
	handler := func(context.Context, partition.Delivery) error {
		entered <- struct{}{}
		<-end
		return nil
	}
	r := newRig(t, Options{ChangeTimeout: 20 * time.Millisecond})
	t.Cleanup(func() { close(end) }) // before the application ends
	r.write(42, 1)
	s := r.subscribe("mails", handler)
	<-entered
	r.change("mails", "pause", `{}`).problem(timedOut, "")
	if got := r.subscription("mails"); got.State != "running" || got.Lanes[0].State != "handling" {
		t.Errorf("got %+v", got)
	}
	other, err := New(r.app, r.app.Reader(), Options{})
	check(t, err)
	given := make(chan answer, 1)
	go func() {
		given <- ask(r.ctx, t, other, http.MethodPost, "/v1/subscriptions/mails/pause", "{}", "Content-Type", jsonType)
	}()
	other.Stop()
	(<-given).problem(unavailable, "")
	end <- struct{}{}
	r.settles("mails", messages.LaneWaiting)
	check(t, s.Pause(r.ctx))
}
