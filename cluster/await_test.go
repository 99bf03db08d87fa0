package cluster

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
)

// noted is a context that says when somebody begins to wait for its end.
type noted struct {
	context.Context
	waits chan struct{}
}

func (n noted) Done() <-chan struct{} {
	select {
	case n.waits <- struct{}{}:
	default:
	}
	return n.Context.Done()
}

// What another node asks while this one is about to lead is answered when it does: nobody comes again too early or too late.
func TestRequestWaitsForWhoIsAboutToLead(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	n := r.owner()
	own, _ := n.shards[0].now()
	n.shards[0].become(nil) // as before its application runs
	ctx := noted{t.Context(), make(chan struct{}, 1)}
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/application", nil)
	answers := make(chan *httptest.ResponseRecorder, 1)
	go func() {
		w := httptest.NewRecorder()
		n.peers.answer(w, request)
		answers <- w
	}()
	select {
	case w := <-answers:
		t.Fatalf("it has not waited: got %d %s", w.Code, w.Body)
	case <-ctx.waits:
	}
	n.shards[0].become(own)
	if w := <-answers; w.Code != http.StatusOK {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	// Who follows says at once who leads.
	w := httptest.NewRecorder()
	r.others(n)[0].peers.answer(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/application", nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("a node that follows: got %d %s", w.Code, w.Body)
	}
}
