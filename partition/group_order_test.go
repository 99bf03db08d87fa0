package partition_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

func wantsLog(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Commands are sent in all ways while the group grows and shrinks all the time: none that was taken is lost, or carried
// out twice; those of a workspace are in the order in which they were sent; and no two of them run at the same time.
func TestGroupKeepsTheOrderWhileItIsResized(t *testing.T) {
	const workspaces, each, resizes = 24, 100, 400
	h := newHouse(t, partition.Options{})
	app := billing("one")
	app.RequestLane = 10 // full at times; a partition has room for a command of each member
	a := h.deploy(app, h.newStore(app.Descriptor))
	var running [workspaces]atomic.Int32
	var together atomic.Int32
	group, err := a.SpawnGroup(partition.GroupConfig{Name: "bills", Members: 4, Drafter: func(_ context.Context, d *partition.DraftContext) error {
		mine := &running[d.Command().Workspace]
		if mine.Add(1) != 1 {
			together.Add(1)
		}
		for range rand.IntN(100) { // members overtake each other
			runtime.Gosched()
		}
		mine.Add(-1)
		return nil
	}})
	h.check(err)
	ctx, end := context.WithCancel(h.ctx)
	resized := make(chan error, 1)
	var turns atomic.Int32
	go func() { resized <- resizeAlways(ctx, group, &turns) }()
	var senders sync.WaitGroup
	var sent [workspaces]uint64
	for ws := range messages.WSID(workspaces) {
		senders.Go(func() {
			for ; !t.Failed() && (sent[ws] < each || turns.Load() < resizes); sent[ws]++ {
				send(h, group, ws, sent[ws])
			}
		})
	}
	senders.Wait()
	end()
	wants(t, "resize", soon(h, "the last resize", resized), context.Canceled)
	h.check(group.Resize(h.ctx, 1))
	for ws := range messages.WSID(workspaces) {
		h.eventually("what was told", func() bool { return uint64(len(logOf(h, a, ws))) >= sent[ws] })
		for i, n := range logOf(h, a, ws) {
			if n != uint64(i) || n >= sent[ws] {
				t.Fatalf("workspace %d: event %d is of command %d, of %d", ws, i, n, sent[ws])
			}
		}
	}
	if n := together.Load(); n != 0 {
		t.Errorf("%d commands ran beside another one of their workspace", n)
	}
	for i, m := range group.Requests() {
		if m.Requests != 0 || m.Bytes != 0 {
			t.Errorf("member %d still has %+v", i, m)
		}
	}
}

// resizeAlways resizes a group until ctx ends.
func resizeAlways(ctx context.Context, group *partition.Group, turns *atomic.Int32) error {
	for ; ; turns.Add(1) {
		if err := group.Resize(ctx, 1+rand.IntN(9)); err != nil {
			return err
		}
	}
}

// send sends a command of a workspace, in some way, until it is taken.
func send(h *house, group *partition.Group, ws messages.WSID, n uint64) {
	c := messages.Command{Workspace: ws, Kind: shop, Body: binary.BigEndian.AppendUint64(nil, n)}
	err := partition.ErrBusy
	for errors.Is(err, partition.ErrBusy) {
		switch rand.IntN(16) {
		case 0:
			_, err = group.Ask(h.ctx, c)
		case 1:
			_, err = group.TryAsk(h.ctx, c)
		default:
			err = group.Tell(h.ctx, c)
		}
		runtime.Gosched()
	}
	if err != nil {
		h.t.Errorf("command %d of workspace %d: %v", n, ws, err)
	}
}

// logOf returns the numbers of the commands whose events a workspace has.
func logOf(h *house, a *partition.App, ws messages.WSID) (numbers []uint64) {
	h.t.Helper()
	for e, err := range a.Reader().WLog(h.ctx, ws, 1) {
		h.check(err)
		numbers = append(numbers, binary.BigEndian.Uint64(e.Body))
	}
	return numbers
}
