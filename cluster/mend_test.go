package cluster

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/replog"
)

// TestNodeThatIsSeeded is sent what came behind its seed while that was copied and checked, however much that is: it makes
// itself anew once.
func TestNodeThatIsSeeded(t *testing.T) {
	t.Parallel()
	const failover = 300 * time.Millisecond
	var meanwhile atomic.Pointer[func()]
	var times atomic.Int64
	r := newRig(t, func(_ replog.NodeID, o *Options) {
		o.keep, o.Failover = 32, failover
		o.Logger = zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(io.Discard),
			zap.InfoLevel), zap.Hooks(func(e zapcore.Entry) error {
			if do := meanwhile.Load(); e.Message == seedIsWhole && do != nil {
				times.Add(1)
				(*do)()
			}
			return nil
		}))
	})
	owner := r.owner()
	term := owner.Status().Term
	r.append(owner, 1, 1)
	id := r.others(owner)[0].o.Node
	r.stop(id)
	count := r.appendUntilForgotten(1)
	done := make(chan struct{})
	more := sync.OnceFunc(func() {
		defer close(done)
		for range 80 {
			count++
			r.appendLarge(count)
		}
		for end := time.Now().Add(25 * failover); time.Now().Before(end); { // raft looks each 10 to 20 what it may forget
			count++
			r.append(r.owner(), 1, count)
		}
	})
	meanwhile.Store(&more)
	n := r.start(id)
	select {
	case <-done:
	case <-r.ctx.Done():
		t.Fatal("it is not made anew")
	}
	r.awaitEvents(n, count)
	// Another owner may have forgotten more: a busy machine elects one.
	if got := times.Load(); got != 1 && r.owner().Status().Term == term {
		t.Errorf("it was made anew %d times, all in term %d", got, term)
	}
}

// large is a draft of 32 KiB.
func large(count int) partition.Draft {
	draft := one(count)
	draft.Body = slices.Concat([]byte{'"'}, bytes.Repeat([]byte{'x'}, 32<<10), []byte{'"'})
	return draft
}

// appendLarge appends an event of 32 KiB to workspace 1.
func (r *rig) appendLarge(count int) {
	if _, err := r.owner().Append(r.ctx, to(1, count), large(count)); err != nil {
		r.Fatal(err)
	}
}

// appendUntilForgotten appends to workspace 1 until the owner has forgotten what came before, unless it is to be kept. It
// returns how many events there are.
func (r *rig) appendUntilForgotten(count int) int {
	// Whole files of the log are forgotten, which have 1 MiB.
	for range 80 {
		count++
		r.appendLarge(count)
	}
	for had := r.owner().shards[0].part().log.Standing().Applied.Index; r.owner().shards[0].snapshot(r) < had; {
		count++
		r.append(r.owner(), 1, count)
	}
	return count
}

// TestNodeThatWasAwayForLong makes itself anew of the owner, while appends go on: the others have forgotten what it lacks.
func TestNodeThatWasAwayForLong(t *testing.T) {
	t.Parallel()
	const keep = 32
	r := newRig(t, func(_ replog.NodeID, o *Options) { o.keep, o.Failover = keep, 300*time.Millisecond })
	owner := r.owner()
	r.append(owner, 1, 1)
	id := r.others(owner)[0].o.Node
	r.stop(id)
	count := r.appendUntilForgotten(1)
	n := r.start(id)
	was := n.Store()
	r.awaitEvents(n, count)
	if n.Store() == was {
		t.Fatal("it was not made anew: the others had what it lacked")
	}
	count++
	r.append(r.owner(), 1, count)
	r.awaitEvents(n, count)
	if got, want := r.bodies(n, 1), r.bodies(r.owner(), 1); !slices.Equal(got, want) {
		t.Errorf("got %d events, want %d, or they differ", len(got), len(want))
	}
	if s := n.Status(); s.Stopped != nil || s.Failed != nil {
		t.Errorf("got %+v", s)
	}
	left, err := filepath.Glob(filepath.Join(n.o.Dir, "*"))
	if want := []string{filepath.Join(n.o.Dir, "raft-0"), StoreDir(n.o.Dir)}; err != nil || !slices.Equal(left, want) {
		t.Errorf("got %q, %v, want %q", left, err, want)
	}
	if was := r.owner(); was != n { // it can lead
		for was.Transfer(r.ctx, id) != nil && r.owner() == was && r.ctx.Err() == nil {
		}
	}
	count++
	r.append(n, 1, count)
	r.stop(id) // what is made anew is opened again as any other
	r.awaitEvents(r.start(id), count)
}

// snapshot returns up to where a node's log has a snapshot. It forgets what is before that, but for what it keeps, at once.
func (s *Shard) snapshot(t testing.TB) (last uint64) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(raftDir(s.o.Dir, s.index), "snapshots", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range found {
		var term, index, at uint64
		if _, err := fmt.Sscanf(filepath.Base(name), "%d-%d-%d", &term, &index, &at); err == nil && filepath.Ext(name) == "" {
			last = max(last, index)
		}
	}
	return last
}

// awaitEvents waits until a node has so many events of workspace 1, also if its store is another one meanwhile.
func (r *rig) awaitEvents(n *Node, count int) {
	r.Helper()
	r.soon(func() error {
		e, err := n.Reader().WLogPage(replog.Local(r.ctx), 1, messages.WLogOffset(count), 1)
		if err != nil || len(e) != 1 {
			return fmt.Errorf("node %s has not %d events: %w, %+v", n.o.Node, count, err, n.Status())
		}
		return nil
	})
}

// TestInterruptedSeed starts a node that has ended between two steps.
func TestInterruptedSeed(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	owner := r.owner()
	r.append(owner, 1, 1)
	id := r.others(owner)[0].o.Node
	dir := r.node(id).o.Dir
	r.awaitEvents(r.node(id), 1)
	r.stop(id)
	for _, err := range []error{
		os.Mkdir(oldDir(StoreDir(dir)), 0o700),
		os.Rename(StoreDir(dir), seedDir(StoreDir(dir))),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	// A program listens in the directory of its store.
	l, err := net.Listen("unix", filepath.Join(oldDir(StoreDir(dir)), "s"))
	if err != nil {
		t.Skipf("the path is too long for a socket, perhaps: %v", err)
	}
	defer l.Close()
	n := r.start(id)
	r.awaitEvents(n, 1)
	c, err := net.Dial("unix", filepath.Join(StoreDir(dir), "s"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(oldDir(StoreDir(dir))); !os.IsNotExist(err) {
		t.Errorf("the old store is still there: %v", err)
	}
}

// TestReopened opens the store of a node again, as is done when it had no room, over the port that is open.
func TestReopened(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	owner := r.owner()
	r.append(owner, 1, 1)
	n := r.others(owner)[0]
	n.stop() // nobody governs it but this test
	<-n.shards[0].ended
	was := n.Store()
	for range 2 {
		if err := n.shards[0].reopen(r.ctx); err != nil {
			t.Fatal(err)
		}
	}
	if n.Store() == was {
		t.Error("it has the store that was closed")
	}
	r.append(r.owner(n.o.Node), 1, 2)
	r.awaitEvents(n, 2)
}
