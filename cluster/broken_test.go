package cluster

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/replog"
)

// breaker breaks a stream off behind the first bytes of an answer to a client, once.
type breaker struct {
	net.Conn
	armed *atomic.Bool
}

// Write implements [net.Conn].
func (b *breaker) Write(text []byte) (int, error) {
	body := bytes.Index(text, []byte("\r\n\r\n")) + 4
	// Nodes ask each other where they stand all the time.
	isMeant := bytes.HasPrefix(text, []byte("HTTP/1.1 200")) && body > 4 && !bytes.Contains(text, []byte("silent_ms"))
	if !isMeant || !b.armed.Swap(false) {
		return b.Conn.Write(text)
	}
	n, _ := b.Conn.Write(text[:body+1])
	_ = b.Conn.Close()
	return n, net.ErrClosed
}

// TestAnswerOfAShardBreaksOff in the midst, when those of all shards are put together: a read is repeated, and a change is told
// as unknown.
func TestAnswerOfAShardBreaksOff(t *testing.T) {
	t.Parallel()
	armed := new(atomic.Bool)
	r := newRig(t, func(id replog.NodeID, o *Options) {
		sharded(id, o)
		below := o.wrap
		o.wrap = func(peer replog.NodeID, c net.Conn) net.Conn { return &breaker{below(peer, c), armed} }
		o.Lead = func(ctx context.Context, app *partition.App) error {
			_, err := app.Subscribe(ctx, partition.SubscriptionConfig{Name: "mail", Handler: handleNothing})
			return err
		}
	})
	w := r.serve()
	asked := r.spread()[0]
	for end := time.Now().Add(patience); ; <-time.After(5 * time.Millisecond) {
		if all := read[httpapi.Page[httpapi.Subscription]](w, asked, "/v1/subscriptions"); len(all.Results) == 1 && len(all.Results[0].Lanes) == 8 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the shards have no subscription")
		}
	}
	armed.Store(true)
	if all := read[partitionsPage](w, asked, "/v1/partitions"); len(all.Partitions) != 8 {
		t.Errorf("got %+v, want 8 partitions", all)
	}
	if armed.Swap(true) {
		t.Error("no answer has broken off")
	}
	got := w.has(http.StatusInternalServerError, asked, http.MethodPost, "/v1/subscriptions/mail/pause", "{}")
	if !strings.Contains(got, "outcome-unknown") {
		t.Errorf("got %s, want an unknown outcome", got)
	}
	if armed.Swap(false) {
		t.Error("no answer to a change has broken off")
	}
	w.has(http.StatusOK, asked, http.MethodPost, "/v1/subscriptions/mail/pause", "{}")
}
