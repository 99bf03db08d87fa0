package cluster

import (
	"bytes"
	"net"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/partita-go/partita/storage/replog"
)

// spoiler changes a word in what comes to a node, once.
type spoiler struct {
	net.Conn
	armed *atomic.Bool
}

var spoiledWord = []byte(`"spoil this"`)

// Read implements [net.Conn].
func (s *spoiler) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if i := bytes.Index(b[:n], spoiledWord); i >= 0 && s.armed.Swap(false) {
		b[i+1] ^= 1
	}
	return n, err
}

// TestNodeThatDiffers makes itself anew: an entry came to it as another one than the others have.
func TestNodeThatDiffers(t *testing.T) {
	t.Parallel()
	armed := make(map[replog.NodeID]*atomic.Bool)
	for _, id := range names {
		armed[id] = new(atomic.Bool)
	}
	r := newRig(t, func(id replog.NodeID, o *Options) {
		below := o.wrap
		o.wrap = func(peer replog.NodeID, c net.Conn) net.Conn { return &spoiler{below(peer, c), armed[id]} }
	})
	owner := r.owner()
	count := 1
	r.append(owner, 1, count)
	n := r.others(owner)[0]
	r.awaitEvents(n, count)
	was := n.Store()
	armed[n.o.Node].Store(true)
	for armed[n.o.Node].Load() { // a word may come in two pieces
		count++
		draft := one(count)
		draft.Body = spoiledWord
		if _, err := r.owner().Append(r.ctx, to(1, count), draft); err != nil {
			t.Fatal(err)
		}
	}
	count++
	r.append(r.owner(), 1, count)
	r.awaitEvents(n, count)
	if n.Store() == was {
		t.Fatal("it was not made anew")
	}
	if got, want := r.bodies(n, 1), r.bodies(r.owner(), 1); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
