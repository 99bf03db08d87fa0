package replogtest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/replog"
)

func testOrder(r *rig) {
	for _, n := range r.nodes {
		r.elect(n)
		r.must(n, 10)
	}
}

// testOneWins lets several write behind one head.
func testOneWins(r *rig) {
	n := r.nodes[0]
	r.elect(n)
	for rounds := 0; rounds < 20; {
		prev := n.replica.end().Head
		results := make([]error, 4)
		var group sync.WaitGroup
		for i := range results {
			body := r.body()
			group.Go(func() { results[i] = r.appendAt(n, prev, body) })
		}
		group.Wait()
		if i := slices.IndexFunc(results, disturbed); i >= 0 {
			r.again(n, results[i])
			continue
		}
		rounds++
		won := 0
		for _, err := range results {
			if err == nil {
				won++
			} else if !errors.Is(err, replog.ErrMoved) {
				r.Errorf("who lost: got %v, want ErrMoved", err)
			}
		}
		if won != 1 {
			r.Fatalf("%d of %d have written behind head %d", won, len(results), prev)
		}
	}
}

func testOtherHead(r *rig) {
	n := r.nodes[0]
	r.elect(n)
	r.must(n, 3)
	for _, prev := range []uint64{0, 1, 2, 4, 1 << 40} {
		if err := r.appendAt(n, prev, r.body()); !errors.Is(err, replog.ErrMoved) {
			r.Errorf("head 3 as %d: got %v, want ErrMoved", prev, err)
		}
	}
	r.must(n, 1)
}

func testSizes(r *rig) {
	n := r.nodes[0]
	r.elect(n)
	if err := n.log.Append(r.ctx, 0, make([]byte, replog.MaxEntry+1)); !errors.Is(err, replog.ErrTooLarge) {
		r.Errorf("more than an entry: got %v, want ErrTooLarge", err)
	}
	r.must(n, 1)
	for _, size := range []int{replog.GoodEntry, 1} {
		r.write(n, func() []byte { return make([]byte, size) })
	}
	r.must(n, 1)
}

func testEndedContext(r *rig) {
	n := r.nodes[0]
	r.elect(n)
	ctx, cancel := context.WithCancel(r.ctx)
	cancel()
	if err := n.log.Append(ctx, 0, r.body()); !errors.Is(err, context.Canceled) || errors.Is(err, messages.ErrOutcomeUnknown) {
		r.Errorf("append: got %v", err)
	}
	if err := n.log.Verify(ctx); !errors.Is(err, context.Canceled) {
		r.Errorf("verify: got %v", err)
	}
	r.must(n, 1)
}

// testUnknown loses answers. Whoever was told so may not go on before it leads anew, and knows then.
func testUnknown(r *rig) {
	d, ok := r.cluster.(Doubter)
	if !ok {
		r.Skip("this cluster loses no answer by command")
	}
	for round := range 4 {
		n, there := r.nodes[round%2], round < 2
		r.elect(n)
		r.must(n, 1)
		d.Doubt(r, n.id, there)
		body := r.body()
		text := string(body)
		if err := r.appendAt(n, n.replica.end().Head, body); !errors.Is(err, messages.ErrOutcomeUnknown) {
			r.Fatalf("got %v, want ErrOutcomeUnknown", err)
		}
		if err := r.append(n); !errors.Is(err, replog.ErrNotOwner) {
			r.Errorf("the next append: got %v, want ErrNotOwner", err)
		}
		if err := n.log.Verify(r.ctx); !errors.Is(err, replog.ErrNotOwner) {
			r.Errorf("verify: got %v, want ErrNotOwner", err)
		}
		next := r.nodes[(round+round/2)%2] // itself, or the other one
		r.elect(next)
		r.must(next, 1)
		if got := next.replica.has(text); got != there {
			r.Errorf("round %d: the entry is there: %v, want %v", round, got, there)
		}
	}
}
