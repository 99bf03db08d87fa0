package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/storagetest"
)

const (
	usedUp  = `{"kind": 1, "wanted": [{"sequence": 17}]}`
	alarmed = `{"group":"partition","key":"2","state":"alarming","details":"sequence Rare of workspace 42 is at ` +
		`9,223,372,036,854,775,807 of 9,223,372,036,854,775,807","restarts":"0","restart":"on-failure, after 1ms to 1s"}`
)

func normal(key string) string {
	return `{"group":"partition","key":"` + key + `","state":"normal","restarts":"0","restart":"on-failure, after 1ms to 1s"}`
}

// TestStatuses: all actors are there, with what their states are about; a partition says the same of itself.
func TestStatuses(t *testing.T) {
	r := newRig(t, Options{})
	r.get("/v1/status").is(http.StatusOK,
		`{"application":"billing","actors":[`+normal("0")+","+normal("1")+","+normal("2")+","+normal("3")+"]}")
	r.post(42, usedUp).has(http.StatusCreated)
	processor, err := r.app.SpawnCommandProcessor(func(context.Context, *partition.CommandContext) error { return nil })
	check(t, err)
	r.subscribeMails()
	check(t, processor.Stop(r.ctx))
	var got Statuses
	r.get("/v1/status").has(http.StatusOK).decode(&got)
	words := make([]string, len(got.Actors))
	for i, a := range got.Actors {
		words[i] = a.Group + "/" + a.Key + " " + a.State
	}
	want := []string{
		"partition/0 normal", "partition/1 normal", "partition/2 alarming", "partition/3 normal",
		"command-processor/0 terminated", "lane/mails/2 normal",
	}
	if !slices.Equal(words, want) {
		t.Errorf("got %q, want %q", words, want)
	}
	var one ActorStatus
	check(t, json.Unmarshal([]byte(alarmed), &one))
	if got.Actors[2] != one {
		t.Errorf("got %+v, want %+v", got.Actors[2], one)
	}
	var p struct{ State, Details string }
	r.get("/v1/partitions/2").has(http.StatusOK).decode(&p)
	if p.State != one.State || p.Details != one.Details {
		t.Errorf("got %+v, want %+v", p, one)
	}
	r.get("/readyz").has(http.StatusOK)
}

// TestStatusStream: a stream has all statuses first, then what changes; whoever connects again gets all.
func TestStatusStream(t *testing.T) {
	r := newRig(t, Options{Streams: 2, Heartbeat: time.Millisecond})
	s, client := serve(t, r.handler)
	first := openStream(r.ctx, t, client, s.URL+"/v1/status")
	got, id := first.take(4)
	if want := []string{normal("0"), normal("1"), normal("2"), normal("3")}; !slices.Equal(got, want) || id != "" {
		t.Errorf("got %q, id %q, want %q", got, id, want)
	}
	if m, ok := first.next(); !ok || m.comment == "" {
		t.Errorf("got %+v, %v, want a comment: a stream is never silent", m, ok)
	}
	r.post(42, usedUp).has(http.StatusCreated)
	if got, _ = first.take(1); got[0] != alarmed {
		t.Errorf("got %q, want %q", got, alarmed)
	}
	again := openStream(r.ctx, t, client, s.URL+"/v1/status")
	if got, _ = again.take(4); got[2] != alarmed {
		t.Errorf("got %q, want %q", got, alarmed)
	}
	r.get("/v1/log", "Accept", streamType).problem(tooManyReaders, "")
	r.api.Stop()
	for _, one := range []*reader{first, again} {
		for m, ok := one.next(); ok; m, ok = one.next() {
			if m.comment == "" {
				t.Errorf("got %+v behind the stop", m)
			}
		}
		check(t, one.lines.Err())
		check(t, one.body.Close())
	}
	eventually(r.ctx, t, "the ends of both", func() bool { return len(r.api.streams) == 0 })
}

// TestStatusStreamHasOthers: what is no actor comes behind the actors, and again when it has changed.
func TestStatusStreamHasOthers(t *testing.T) {
	var details atomic.Pointer[string]
	details.Store(new("one"))
	other := func(details string) ActorStatus {
		return ActorStatus{Group: "server", Key: "scrub", State: "normal", Details: details}
	}
	r := newRig(t, Options{Heartbeat: 10 * time.Millisecond, Others: func() []ActorStatus { return []ActorStatus{other(*details.Load())} }})
	s, client := serve(t, r.handler)
	stream := openStream(r.ctx, t, client, s.URL+"/v1/status")
	want := func(details string) {
		t.Helper()
		got, _ := stream.take(1)
		var a ActorStatus
		check(t, json.Unmarshal([]byte(got[0]), &a))
		if a != other(details) {
			t.Errorf("got %+v, want %+v", a, other(details))
		}
	}
	stream.take(4)
	want("one")
	details.Store(new("two"))
	want("two")
	r.post(42, usedUp).has(http.StatusCreated)
	if got, _ := stream.take(1); got[0] != alarmed {
		t.Errorf("got %q, want %q", got, alarmed)
	}
	check(t, stream.body.Close())
}

// TestStatusStreamEndsWithTheApplication: the last statuses come, then the end.
func TestStatusStreamEndsWithTheApplication(t *testing.T) {
	store, err := storagetest.NewMemory(descriptor())
	check(t, err)
	parts := partition.NewAppParts(shared, partition.Options{})
	app, err := parts.Deploy(t.Context(), partition.Application{Descriptor: descriptor()}, store)
	check(t, err)
	check(t, app.Ready(t.Context()))
	api, err := New(app, app.Reader(), Options{})
	check(t, err)
	s, client := serve(t, api)
	stream := openStream(t.Context(), t, client, s.URL+"/v1/status")
	stream.take(len(app.Status()))
	check(t, parts.Undeploy(t.Context(), app.Name()))
	last := make(map[string]string)
	for m, ok := stream.next(); ok; m, ok = stream.next() {
		var a ActorStatus
		check(t, json.Unmarshal([]byte(m.data), &a))
		last[a.Key] = a.State
	}
	check(t, stream.lines.Err())
	check(t, stream.body.Close())
	if len(last) != len(app.Status()) {
		t.Errorf("got the ends of %d partitions", len(last))
	}
	for key, state := range last {
		if state != "terminated" {
			t.Errorf("partition %s: got %s at last", key, state)
		}
	}
	check(t, parts.Close(t.Context()))
}
