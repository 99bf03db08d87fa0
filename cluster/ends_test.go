package cluster

import (
	"context"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/partita-go/partita/messages"
)

// TestEndsOfManyPartitions are told, however many there are, and however long their logs.
func TestEndsOfManyPartitions(t *testing.T) {
	t.Parallel()
	all := make([]messages.PLogOffset, messages.MaxPartitions)
	for i := range all {
		all[i] = math.MaxUint64
	}
	owner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, all) }))
	defer owner.Close()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", owner.Listener.Addr().String())
	}}
	defer transport.CloseIdleConnections()
	o := &Options{}
	o.Application.Descriptor.Partitions = messages.MaxPartitions
	s := &Shard{o: o, node: &Node{peers: &peers{transport: transport}}}
	s.node.shards = []*Shard{s}
	var got []messages.PLogOffset
	if err := s.ask(t.Context(), "n2", endsPath, &got); err != nil || len(got) != len(all) {
		t.Errorf("got the ends of %d partitions, %v, want %d", len(got), err, len(all))
	}
}
