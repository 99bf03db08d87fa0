package httpclient

import (
	"iter"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// TestWatch: the client is told what all actors do and what changes, as a program that embeds partita is, and all once more
// when a stream has broken off.
func TestWatch(t *testing.T) {
	r := newRig(t, httpapi.Options{}, Options{})
	tells := func() (all []partition.ActorStatus) {
		for _, s := range r.App.Actors() {
			s.Err, s.Partition = nil, nil // these the server does not tell
			all = append(all, s)
		}
		return all
	}
	got, err := r.Client.Actors(r.ctx)
	check(t, err)
	same(t, got, tells())

	var streams atomic.Int64
	r.put(func(api http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			if request.Header.Get("Accept") == streamType && streams.Add(1) == 1 {
				w = &cutting{w, 200} // within the second status
			}
			api.ServeHTTP(w, request)
		})
	})
	next, stop := iter.Pull2(r.Client.Watch(r.ctx))
	defer stop()
	take := func() partition.ActorStatus {
		t.Helper()
		status, err, ok := next()
		if !ok {
			t.Fatal("there are no more")
		}
		check(t, err)
		return status
	}
	same(t, take(), got[0])
	for _, want := range got {
		same(t, take(), want)
	}
	// The one number of its sequence: that is an alarm.
	_, err = r.Client.Append(r.ctx, partition.AppendTo{Workspace: 4, Kind: shop}, partition.Draft{Wanted: []partition.Wanted{{Seq: rare}}})
	check(t, err)
	if changed := take(); changed.State != messages.StateAlarming || changed.Details == "" || changed.ID != messages.PartitionOf(4, 3).String() {
		t.Errorf("got %+v", changed)
	}
	if streams.Load() != 2 {
		t.Errorf("got %d streams", streams.Load())
	}
}
