package cluster

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/partita-go/partita/storage/replog"
)

// TestRefusedChangesAreHeldBack: what refuses a change says nothing of an earlier try whose answer was lost, whatever its
// status, so the client does not get it before that is looked at.
func TestRefusedChangesAreHeldBack(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		method string
		status int
		held   bool
	}{
		{http.MethodPost, http.StatusCreated, false},
		{http.MethodPost, http.StatusOK, false},
		{http.MethodPost, http.StatusGatewayTimeout, true},
		{http.MethodPost, http.StatusTooManyRequests, true},
		{http.MethodPost, http.StatusConflict, true},
		{http.MethodDelete, http.StatusUnprocessableEntity, true},
		{http.MethodGet, http.StatusServiceUnavailable, true},
		{http.MethodGet, http.StatusGatewayTimeout, false},
		{http.MethodGet, http.StatusNotFound, false},
	} {
		client := httptest.NewRecorder()
		f := &forward{w: client, r: httptest.NewRequest(test.method, "/v1/workspaces/1/events", nil)}
		h := &holding{ResponseWriter: client, header: make(http.Header), mayBeHeld: f.mayBeHeld}
		h.WriteHeader(test.status)
		if _, err := h.Write([]byte("answer")); err != nil {
			t.Fatal(err)
		}
		if held := h.held != nil; held != test.held || held == (client.Body.Len() > 0) {
			t.Errorf("%s, %d: held back %v, the client has %q", test.method, test.status, held, client.Body)
		}
	}
}

// TestKeysOfAppendsOnly: no other change is done once only for its key, so none is repeated for it.
func TestKeysOfAppendsOnly(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]bool{
		"/v1/workspaces/1/events": true, "/v1/subscriptions/mails/skip": false, "/v1/cluster/transfer": false, "/v1/subscriptions/events": false,
	} {
		if got := isAppend(httptest.NewRequest(http.MethodPost, target, nil)); got != want {
			t.Errorf("%s: got %v", target, got)
		}
	}
}

// TestOnlyPeersAsk: what nodes ask each other is nobody else's, at any node, and only reads are probes.
func TestOnlyPeersAsk(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	w := r.serve()
	r.owner()
	for _, id := range names {
		w.has(http.StatusNotFound, id, http.MethodPost, "/own/v1/workspaces/1/events", event)
		w.has(http.StatusNotFound, id, http.MethodGet, "/own/v1/log", "")
		w.has(http.StatusNotFound, id, http.MethodGet, seedPath, "")
		w.has(http.StatusNotFound, id, http.MethodPost, generatorPath, `{"launch": 1}`)
		w.has(http.StatusNotFound, id, http.MethodPost, "/readyz", "{}")
	}
}

// TestTransferToNobody: a leadership that cannot be given away goes on.
func TestTransferToNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	owner := r.owner()
	app, err := owner.App()
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"nobody", string(owner.o.Node)} {
		if err := owner.Transfer(r.ctx, replog.NodeID(to)); !errors.Is(err, ErrOptions) {
			t.Errorf("to %s: got %v, want ErrOptions", to, err)
		}
	}
	if now, err := owner.App(); now != app {
		t.Errorf("the application does not go on: %v", err)
	}
}
