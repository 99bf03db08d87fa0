package trio

import (
	"context"
	"fmt"
	"time"

	"github.com/partita-go/partita/bench/internal/load"
)

// measureBehind kills a node, lets the others write, and measures how fast it catches up when it is back. Its heap is compared
// with what it was while all wrote.
func measureBehind(ctx context.Context, o Options, f *Figures) error {
	return within(ctx, o, kindTrio, func(n *nodes) error {
		a, err := n.load(ctx, o, "append", many)
		if err != nil {
			return err
		}
		n.acknowledged += a.Acknowledged
		owner, err := n.leader(ctx)
		if err != nil {
			return err
		}
		late := n.others(owner)[0]
		before, err := late.do(order{Do: "peak"})
		if err != nil {
			return err
		}
		late.kill()
		filled, err := owner.do(order{Do: "fill", Events: o.Behind, Load: loadOrder{Callers: many}})
		if err != nil {
			return err
		}
		n.tellFailed("fill", filled)
		n.acknowledged += filled.Acknowledged
		writing, err := owner.do(order{Do: "peak"})
		if err != nil {
			return err
		}
		f.add("behind/writing", filled.Rate)
		took, err := n.catchUp(ctx, late, owner)
		if err != nil {
			return err
		}
		f.add("behind/catching-up", float64(o.Behind)/took.Seconds())
		return n.heaps(f, late, before, owner, writing)
	})
}

// catchUpLimit is how long a node may take.
const catchUpLimit = 10 * time.Minute

// catchUp starts a node again, and returns how long it takes until it has all that the owner has: from the start of its process.
func (n *nodes) catchUp(ctx context.Context, late, owner *remote) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, catchUpLimit)
	defer cancel()
	want, err := owner.do(order{Do: "head"})
	if err != nil {
		return 0, err
	}
	began := time.Now()
	late.config.New = false
	again, err := startNode(late.config, n.stderr)
	if err != nil {
		return 0, err
	}
	*late = *again
	if _, err := late.read(); err != nil {
		return 0, err
	}
	for {
		got, err := late.do(order{Do: "head"})
		if err != nil {
			return 0, err
		}
		if got.Value >= want.Value {
			return time.Since(began), nil
		}
		if err := load.Pause(ctx, 10*time.Millisecond); err != nil {
			return 0, fmt.Errorf("the node has %d of %d entries: %w", got.Value, want.Value, err)
		}
	}
}

// heaps compares the heaps while a node caught up with those before, of that node and of the owner.
func (n *nodes) heaps(f *Figures, late *remote, lateBefore answer, owner *remote, ownerBefore answer) error {
	for _, of := range []struct {
		name   string
		node   *remote
		before answer
	}{{"behind/heap", late, lateBefore}, {"behind/owner-heap", owner, ownerBefore}} {
		now, err := of.node.do(order{Do: "peak"})
		if err != nil {
			return err
		}
		f.add(of.name, (float64(now.Heap.Live)-float64(of.before.Heap.Live))/(1<<20))
		f.add(of.name+"-and-garbage", (float64(now.Heap.All)-float64(of.before.Heap.All))/(1<<20))
	}
	return nil
}
