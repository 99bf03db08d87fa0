package cluster

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/partita-go/partita/storage/replog"
	"github.com/partita-go/partita/storage/replog/raftlog/keys"
)

// TestNodesKnowEachOther by certificates: the log and what is forwarded go through them.
func TestNodesKnowEachOther(t *testing.T) {
	t.Parallel()
	authority := keys.NewAuthority(t)
	r := newRig(t, func(id replog.NodeID, o *Options) { o.TLS = authority.Config(t, string(id)) })
	owner := r.owner()
	for i, n := range r.others(nil) {
		r.append(n, 1, i+1)
	}
	// Who has no certificate asks in vain.
	response, err := http.Get("http://" + owner.port.Addr().String() + "/v1/log")
	if err == nil {
		_ = response.Body.Close()
		t.Errorf("got %s, want no answer", response.Status)
	}
}

// TestNamesOfNodes may have any bytes.
func TestNamesOfNodes(t *testing.T) {
	t.Parallel()
	for _, id := range []replog.NodeID{"n1", "N1", "Zürich/1 a", replog.NodeID(strings.Repeat("x", 255)), "\x00"} {
		if got, err := nodeOf(hostOf(id) + ":80"); err != nil || got != id {
			t.Errorf("%q: got %q, %v", id, got, err)
		}
	}
	if _, err := nodeOf("n1"); err == nil {
		t.Error("a host without a port is a node")
	}
	if !errors.Is(&OwnerError{}, replog.ErrNotOwner) {
		t.Error("an OwnerError is not ErrNotOwner")
	}
}
