package cluster

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/replog"
)

// What a breaker breaks off.
const (
	nothing = iota
	theHeader
	theBody
)

// breaker breaks a stream off in the midst of an answer to a client, once.
type breaker struct {
	net.Conn
	armed *atomic.Int32
}

// Write implements [net.Conn].
func (b *breaker) Write(text []byte) (int, error) {
	body := bytes.Index(text, []byte("\r\n\r\n")) + 4
	// Nodes ask each other where they stand all the time.
	isMeant := bytes.HasPrefix(text, []byte("HTTP/1.1 200")) && body > 4 && !bytes.Contains(text, []byte("silent_ms"))
	if !isMeant {
		return b.Conn.Write(text)
	}
	switch b.armed.Swap(nothing) {
	case nothing:
		return b.Conn.Write(text)
	case theHeader:
		body /= 2
	}
	n, _ := b.Conn.Write(text[:body+1])
	_ = b.Conn.Close()
	return n, net.ErrClosed
}

// TestAnswerOfAShardBreaksOff in the midst, when those of all shards are put together: a read is repeated, and a change is told
// as unknown.
func TestAnswerOfAShardBreaksOff(t *testing.T) {
	t.Parallel()
	armed := new(atomic.Int32)
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
	r.soon(func() error {
		if all := read[httpapi.Page[httpapi.Subscription]](w, asked, "/v1/subscriptions"); len(all.Results) != 1 || len(all.Results[0].Lanes) != 8 {
			return fmt.Errorf("the shards have no subscription: got %+v", all)
		}
		return nil
	})
	breaks := func(what int32, want int, method, target, body string) string {
		t.Helper()
		armed.Store(what)
		got := w.has(want, asked, method, target, body)
		if armed.Swap(nothing) != nothing {
			t.Errorf("%s %s: no answer has broken off", method, target)
		}
		return got
	}
	for _, what := range []int32{theHeader, theBody} {
		for _, target := range []string{"/v1/partitions", "/v1/log"} {
			breaks(what, http.StatusOK, http.MethodGet, target, "")
		}
		got := breaks(what, http.StatusInternalServerError, http.MethodPost, "/v1/subscriptions/mail/pause", "{}")
		if !strings.Contains(got, "outcome-unknown") {
			t.Errorf("got %s, want an unknown outcome", got)
		}
		w.has(http.StatusOK, asked, http.MethodPost, "/v1/subscriptions/mail/pause", "{}")
	}
}
