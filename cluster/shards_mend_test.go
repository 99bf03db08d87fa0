package cluster

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/replog"
)

// TestShardIsMadeAnew of a node that was away for long: that shard, and no other.
func TestShardIsMadeAnew(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(id replog.NodeID, o *Options) {
		sharded(id, o)
		o.keep, o.Failover = 32, 300*time.Millisecond
	})
	owners := r.spread()
	away, owner := owners[0], r.node(owners[1])
	for ws := messages.WSID(1); ws <= 3; ws++ { // one of each shard
		r.append(owner, ws, int(ws))
	}
	r.stop(away)
	// What it lacks is in a file of the log that has 1 MiB: they forget whole files.
	count := 1
	for count < 80 {
		count++
		if _, err := owner.Append(r.ctx, to(1, 100+count), large(count)); err != nil {
			t.Fatal(err)
		}
	}
	leader := func() *Shard {
		r.led(1, func(id replog.NodeID) bool { return id != "" })
		if n := r.node(r.owners()[1]); n != nil {
			return n.shards[1]
		}
		return owner.shards[1]
	}
	for had := leader().part().log.Standing().Applied.Index; leader().snapshot(t) < had; {
		count++
		r.append(owner, 1, 100+count)
	}
	n := r.start(away)
	var was [shards]*bolt.Store
	for i, s := range n.Shards() {
		was[i] = s.Store()
	}
	r.awaitEvents(n, count)
	for i, s := range n.Shards() {
		if made := s.Store() != was[i]; made != (i == 1) {
			t.Errorf("shard %d: made anew: %v", i, made)
		}
	}
	if got, want := r.bodies(n, 1), r.bodies(owner, 1); !slices.Equal(got, want) {
		t.Errorf("got %d events, want %d, or they differ", len(got), len(want))
	}
	r.led(0, func(id replog.NodeID) bool { return id == away })
	for ws := messages.WSID(1); ws <= 3; ws++ {
		r.append(n, ws, 1000+int(ws))
	}
}

// TestNodeJoinsShards of which each owner gives it what it has.
func TestNodeJoinsShards(t *testing.T) {
	t.Parallel()
	const added replog.NodeID = "n4"
	var known atomic.Bool
	r := newRig(t, func(id replog.NodeID, o *Options) {
		sharded(id, o)
		if known.Load() {
			o.Peers[added] = "127.0.0.1:1"
		}
		if id == added {
			o.Create, o.Join = false, true
		}
	})
	w := r.serve()
	r.spread()
	for ws := messages.WSID(1); ws <= 8; ws++ {
		r.append(r.node("n1"), ws, int(ws))
	}
	known.Store(true)
	for _, id := range names {
		r.stop(id)
		r.start(id)
		r.spread()
	}
	n := r.start(added)
	t.Cleanup(func() {
		r.stop(added)
		r.verify(added)
	})
	w.eventually("n2", addPath, added)
	w.voters("n3", func(replog.NodeID) bool { return true })
	for ws := messages.WSID(1); ws <= 8; ws++ {
		if got := r.append(n, ws, 10+int(ws)); got.Numbers[0].Number != 2 {
			t.Errorf("workspace %d: got number %d, want 2", ws, got.Numbers[0].Number)
		}
		if err := n.Reader().AwaitWLog(r.ctx, ws, 2); err != nil {
			t.Errorf("workspace %d: %v", ws, err)
		}
	}
}
