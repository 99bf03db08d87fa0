package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/replog"
)

// shards is how many there are in tests of several.
const shards = 3

// sharded lets a node have several shards.
func sharded(_ replog.NodeID, o *Options) {
	o.Shards, o.Application.Descriptor.Partitions = shards, 8
}

// owners returns which node runs each shard, "" for one that runs nowhere.
func (r *rig) owners() (all [shards]replog.NodeID) {
	for _, n := range r.others(nil) {
		for i, s := range n.Shards() {
			if _, err := s.App(); err == nil {
				all[i] = n.o.Node
			}
		}
	}
	return all
}

// spread waits until each shard runs on the node that is preferred, and returns which that is.
func (r *rig) spread() (all [shards]replog.NodeID) {
	r.Helper()
	var want [shards]replog.NodeID
	for i := range want {
		want[i] = preferred(names, i)
	}
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		if all = r.owners(); all == want {
			return all
		}
	}
	r.Fatalf("the shards are not spread over the nodes: got %q, want %q", all, want)
	return all
}

// TestShardsAreSpread over the nodes, each of which takes appends to all partitions. When one is cut off, or closed, its shard
// is run by another one, and those of others where they were.
func TestShardsAreSpread(t *testing.T) {
	t.Parallel()
	r := newRig(t, sharded)
	writers := r.write(true)
	r.standing.begin()
	owners := r.spread()
	writers.await(3)
	var terms [shards]uint64
	for i, id := range owners {
		terms[i] = r.node(id).Shards()[i].Status().Term
	}
	lost := owners[1]
	r.isolate(lost)
	r.led(1, func(id replog.NodeID) bool { return id != "" && id != lost })
	for i, id := range owners {
		if now := r.node(id).Shards()[i].Status(); i != 1 && now.Term != terms[i] && !r.standing.long(failover) {
			t.Errorf("shard %d: node %s leads in term %d, want %d as before", i, id, now.Term, terms[i])
		}
	}
	r.heal(lost)
	writers.await(3)
	r.led(1, func(id replog.NodeID) bool { return id == lost })
	r.stop(lost)
	r.led(1, func(id replog.NodeID) bool { return id != "" && id != lost })
	writers.await(3)
	r.start(lost)
	r.led(1, func(id replog.NodeID) bool { return id == lost })
	writers.await(3)
	writers.end()
}

// led waits until a shard is run as it should be.
func (r *rig) led(shard int, right func(replog.NodeID) bool) {
	r.Helper()
	r.soon(func() error {
		if id := r.owners()[shard]; !right(id) {
			return fmt.Errorf("shard %d is run by node %q", shard, id)
		}
		return nil
	})
}

// TestAppOfAShard runs the partitions of the shard, and no others.
func TestAppOfAShard(t *testing.T) {
	t.Parallel()
	r := newRig(t, sharded)
	owners := r.spread()
	n := r.node(owners[2])
	if _, err := n.App(); !errors.Is(err, ErrShards) {
		t.Errorf("app: got %v, want ErrShards", err)
	}
	for _, do := range []func() error{
		func() error { return n.Transfer(r.ctx, owners[0]) }, func() error { return n.Add(r.ctx, owners[0]) },
		func() error { return n.Remove(r.ctx, owners[0]) },
	} {
		if err := do(); !errors.Is(err, ErrShards) {
			t.Errorf("got %v, want ErrShards", err)
		}
	}
	r.soon(func() error {
		if _, err := n.AppOf(0); !errors.Is(err, replog.ErrNotOwner) || !strings.Contains(err.Error(), string(owners[0])) {
			return fmt.Errorf("app of partition 0: got %w, want an OwnerError that names %s", err, owners[0])
		}
		return nil
	})
	app, err := n.AppOf(5)
	if err != nil {
		t.Fatal(err)
	}
	for p := range messages.PartitionID(8) {
		_, err := app.Sequencer(p)
		if want := p%shards == 2; app.Owns(p) != want || (err == nil) != want || err != nil && !errors.Is(err, partition.ErrNotOwned) {
			t.Errorf("partition %d: got %v, %v, want it to run here: %v", p, app.Owns(p), err, want)
		}
		_, err = app.Subscribe(r.ctx, partition.SubscriptionConfig{Name: fmt.Sprintf("of %d", p), Partition: &p, Handler: handleNothing})
		if want := p%shards == 2; (err == nil) != want || err != nil && !errors.Is(err, partition.ErrNotOwned) {
			t.Errorf("subscription of partition %d: got %v", p, err)
		}
	}
	if all := app.Status(); len(all) != 2 || all[0].Partition != 2 || all[1].Partition != 5 {
		t.Errorf("got %+v, want partitions 2 and 5", all)
	}
}

// TestHandedOverShardStays where somebody wanted it, though another node is preferred, whoever has handed it over.
func TestHandedOverShardStays(t *testing.T) {
	t.Parallel()
	r := newRig(t, sharded)
	owners := r.spread()
	r.handOverShard(0, owners[1])
	r.stays(0, owners[1], owners[0])
	r.handOverShard(0, owners[2])
	r.stop(owners[0])
	r.start(owners[0]) // it has forgotten, and the other one has not
	r.stays(0, owners[2], owners[0])
	r.stop(owners[1])
	r.start(owners[1])
	r.led(0, func(id replog.NodeID) bool { return id == owners[0] })
}

// handOverShard lets another node lead a shard, which may have to catch up first.
func (r *rig) handOverShard(shard int, to replog.NodeID) {
	r.Helper()
	for end := time.Now().Add(patience); ; <-time.After(5 * time.Millisecond) {
		if id := r.owners()[shard]; id == to {
			return
		} else if id != "" {
			if err := r.node(id).Shards()[shard].Transfer(r.ctx, to); err != nil && time.Now().After(end) {
				r.Fatal(err)
			}
		}
	}
}

// stays waits until a node that is preferred could lead instead of another one, and checks that it is not to.
func (r *rig) stays(shard int, owner, preferred replog.NodeID) {
	r.Helper()
	s := r.node(owner).Shards()[shard]
	follows := func(m NodeJSON) bool { return m.Node == preferred && m.Leader == owner && m.Head == s.Status().Head }
	for end := time.Now().Add(patience); !slices.ContainsFunc(s.askOthers(r.ctx), follows); <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			r.Fatalf("node %s does not follow", preferred)
		}
	}
	if best, ready := s.better(r.ctx); best != preferred || ready {
		r.Errorf("got node %s, ready %v, want %s, which is not to lead", best, ready, preferred)
	}
}

// TestShardsAreSettled when the directory is made.
func TestShardsAreSettled(t *testing.T) {
	t.Parallel()
	r := newRig(t, sharded)
	r.spread()
	r.append(r.node("n1"), 1, 1)
	r.stop("n2")
	for _, other := range []int{0, 1, 2, 4} {
		_, err := r.open("n2", func(o *Options) { o.Shards = other })
		if !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), filepath.Join(r.dir, "n2")) || !strings.Contains(err.Error(), `"3"`) {
			t.Errorf("%d shards: got %v, want an ErrOptions that says what was there, and where", other, err)
		}
	}
	for _, other := range []int{-1, 9, MaxShards + 1} {
		if _, err := r.open("n2", func(o *Options) { o.Shards = other }); !errors.Is(err, ErrOptions) {
			t.Errorf("%d shards: got %v, want ErrOptions", other, err)
		}
	}
	r.start("n2")
	r.spread()
	if got := r.append(r.node("n2"), 1, 2); got.Numbers[0].Number != 2 {
		t.Errorf("got number %d, want 2", got.Numbers[0].Number)
	}
}

// TestOneShardIsNotMadeSeveral of a directory that was made with one.
func TestOneShardIsNotMadeSeveral(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.owner()
	r.stop("n2")
	if _, err := r.open("n2", func(o *Options) { o.Shards = 2 }); !errors.Is(err, ErrOptions) {
		t.Errorf("got %v, want ErrOptions", err)
	}
}

// TestNodesThatDifferAboutShards have no log together: they would take a partition for their own twice.
func TestNodesThatDifferAboutShards(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(id replog.NodeID, o *Options) {
		sharded(id, o)
		if id == "n3" {
			o.Shards = 2
		}
	})
	for i := range shards {
		r.led(i, func(id replog.NodeID) bool { return id != "" })
	}
	for _, s := range r.node("n3").Shards() {
		if now := s.Status(); now.Head != 0 || now.Leader != "" {
			t.Errorf("shard %d: got %+v, want nothing heard", s.Index(), now)
		}
		for _, m := range s.askOthers(r.ctx) {
			if !strings.Contains(m.Unreachable, "shards") {
				t.Errorf("node %s: got %+v, want it to refuse", m.Node, m)
			}
		}
	}
}

func TestPreferredNodes(t *testing.T) {
	t.Parallel()
	for _, nodes := range [][]replog.NodeID{names, {"a", "b"}, {"a", "b", "c", "d", "e"}} {
		has := make(map[replog.NodeID]int)
		for i := range 7 {
			best := preferred(nodes, i)
			has[best]++
			turned := slices.Clone(nodes)
			slices.Reverse(turned)
			if other := preferred(turned, i); other != best {
				t.Errorf("shard %d of %q: got %s, and %s in another order", i, nodes, best, other)
			}
		}
		for _, id := range nodes {
			if least := 7 / len(nodes); has[id] < least || has[id] > least+1 {
				t.Errorf("%q: node %s has %d shards", nodes, id, has[id])
			}
		}
	}
	if got := preferred(nil, 1); got != "" {
		t.Errorf("got %q, want none", got)
	}
}

func handleNothing(context.Context, partition.Delivery) error { return nil }
