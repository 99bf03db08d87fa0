package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/replog"
)

// writers append with ids at all nodes, each to a workspace of its own, until they are stopped.
type writers struct {
	r *rig
	// closes says that nodes are closed meanwhile: their callers are told.
	closes bool
	all    sync.WaitGroup
	stop   atomic.Bool
	// done counts what was acknowledged, by workspace.
	done [8]atomic.Int64
}

func (r *rig) write(closes bool) *writers {
	w := &writers{r: r, closes: closes}
	for i := range w.done {
		w.all.Go(func() {
			for n := 1; !w.stop.Load(); n++ {
				at := r.node(names[(i+n)%len(names)])
				for at == nil || w.append(at, i, n) != nil {
					<-time.After(time.Millisecond)
					at = r.node(names[int(time.Now().UnixNano())%len(names)])
					if r.ctx.Err() != nil {
						return
					}
				}
				w.done[i].Add(1)
			}
		})
	}
	return w
}

// append appends once, until the node has an answer. A node that is being closed has none.
func (w *writers) append(n *Node, i, k int) error {
	ctx, cancel := context.WithTimeout(w.r.ctx, 3*time.Second)
	defer cancel()
	done, err := n.Append(ctx, to(messages.WSID(i+1), 1_000_000*(i+1)+k), one(k))
	if err == nil && done.Numbers[0].Number != messages.Number(k) {
		w.r.Errorf("workspace %d: got number %v, want %d", i+1, done.Numbers, k)
	}
	if err != nil && ctx.Err() == nil && !w.closes {
		w.r.Errorf("node %s, workspace %d: %v, though there is time", n.o.Node, i+1, err)
	}
	return err
}

// await waits until so many more appends were acknowledged in each workspace.
func (w *writers) await(more int64) {
	w.r.Helper()
	var want [len(w.done)]int64
	for i := range w.done {
		want[i] = w.done[i].Load() + more
	}
	for end := time.Now().Add(patience); ; <-time.After(5 * time.Millisecond) {
		missing := 0
		for i := range w.done {
			if w.done[i].Load() < want[i] {
				missing++
			}
		}
		if missing == 0 {
			return
		}
		if time.Now().After(end) {
			w.r.Fatalf("%d workspaces get no more events", missing)
		}
	}
}

// end stops the writers, and checks that all nodes have what was acknowledged, once and in order, and the same.
func (w *writers) end() {
	w.r.Helper()
	w.stop.Store(true)
	w.all.Wait()
	for i := range w.done {
		ws, count := messages.WSID(i+1), w.done[i].Load()
		for _, n := range w.r.others(nil) {
			ctx, cancel := context.WithTimeout(replog.Local(w.r.ctx), patience)
			if err := n.Reader().AwaitWLog(ctx, ws, messages.WLogOffset(count)); err != nil {
				w.r.Errorf("node %s, workspace %d: has not %d events: %v; %+v", n.o.Node, ws, count, err, n.Status())
			}
			cancel()
			for k, body := range w.r.bodies(n, ws) {
				if want := string(one(k + 1).Body); body != want {
					w.r.Errorf("node %s, workspace %d, event %d: got %s, want %s", n.o.Node, ws, k+1, body, want)
				}
			}
		}
	}
}

// TestOwnerIsClosed closes the node that leads, which hands over, and starts it again.
func TestOwnerIsClosed(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	w := r.write(true)
	for range 3 {
		w.await(5)
		id := r.owner().o.Node
		r.stop(id)
		w.await(5)
		r.start(id)
	}
	w.await(5)
	w.end()
}

// TestOwnerIsCutOff cuts the node that leads off until the others go on.
func TestOwnerIsCutOff(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	w := r.write(false)
	for range 3 {
		w.await(5)
		was := r.owner()
		r.isolate(was.o.Node)
		r.owner(was.o.Node)
		// The callers at the node that is cut off wait until it is not.
		r.heal(was.o.Node)
		w.await(5)
	}
	w.end()
}

// handOver lets another node lead. Nobody can take over who has not kept up, so that it tries again.
func (r *rig) handOver(was *Node) {
	r.Helper()
	for i := range 100 {
		err := was.Transfer(r.ctx, r.others(was)[i%2].o.Node)
		if err == nil || was.Leader() != was.o.Node && was.Leader() != "" {
			return
		}
		r.Logf("node %s: transfer: %v", was.o.Node, err)
		<-time.After(20 * time.Millisecond)
	}
	r.Fatalf("node %s leads on", was.o.Node)
}

// TestHandedOver hands the log from node to node.
func TestHandedOver(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	w := r.write(false)
	for range 6 {
		w.await(5)
		r.handOver(r.owner())
	}
	w.await(5)
	w.end()
}

// TestOnlyTheOwnerHasTheApplication asks others for it.
func TestOnlyTheOwnerHasTheApplication(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	owner := r.owner()
	r.append(owner, 1, 1)
	for _, n := range r.others(owner) {
		if err := n.Ready(r.ctx); err != nil { // it may not have heard yet who leads
			t.Fatal(err)
		}
		r.soon(func() error {
			_, err := n.App()
			e, ok := errors.AsType[*OwnerError](err)
			if !ok || !errors.Is(err, replog.ErrNotOwner) || e.Leader != owner.o.Node {
				return fmt.Errorf("node %s: app: got %w, want an OwnerError that names %s", n.o.Node, err, owner.o.Node)
			}
			return nil
		})
		if err := n.Transfer(r.ctx, n.o.Node); !errors.Is(err, replog.ErrNotOwner) {
			t.Errorf("node %s: transfer: got %v, want ErrNotOwner", n.o.Node, err)
		}
		if _, err := n.Reader().WLogPage(r.ctx, 1, 1, 10); !errors.Is(err, replog.ErrNotOwner) {
			t.Errorf("node %s: read: got %v, want ErrNotOwner", n.o.Node, err)
		}
	}
	if got, err := owner.Reader().WLogPage(r.ctx, 1, 1, 10); err != nil || len(got) != 1 {
		t.Errorf("owner: read: got %d events, %v", len(got), err)
	}
}

// TestReadsOfAStaleOwner reads at a node that was replaced and does not know it.
func TestReadsOfAStaleOwner(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	was := r.owner()
	r.append(was, 1, 1)
	r.isolate(was.o.Node)
	now := r.owner(was.o.Node)
	r.append(now, 1, 2)
	if got, err := was.Reader().WLogPage(r.ctx, 1, 1, 10); !errors.Is(err, replog.ErrNotOwner) {
		t.Errorf("verified: got %d events, %v, want ErrNotOwner", len(got), err)
	}
	if got := r.bodies(was, 1); len(got) != 1 {
		t.Errorf("local: got %s, want one event", got)
	}
	r.heal(was.o.Node)
	if err := was.Reader().AwaitWLog(r.ctx, 1, 2); err != nil {
		t.Error(err)
	}
}

// TestNoQuorum appends at a node that hears nobody.
func TestNoQuorum(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	owner := r.owner()
	r.append(owner, 1, 1)
	for _, id := range names {
		r.isolate(id)
	}
	for end := time.Now().Add(patience); owner.Leader() != "" && time.Now().Before(end); <-time.After(5 * time.Millisecond) {
	}
	ctx, cancel := context.WithTimeout(r.ctx, failover)
	defer cancel()
	_, err := owner.Append(ctx, to(1, 2), one(2))
	busy, ok := errors.AsType[*messages.BusyError](err)
	if !ok || busy.Reason != messages.BusyNoQuorum || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, messages.ErrOutcomeUnknown) {
		t.Errorf("got %v, want Busy without quorum", err)
	}
	for _, id := range names {
		r.heal(id)
	}
	if done := r.append(owner, 1, 2); done.WLogOffset != 2 || done.Repeated {
		t.Errorf("got %+v", done)
	}
}

// TestRefusalsOfTheOwner are the same at each node.
func TestRefusalsOfTheOwner(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	owner := r.owner()
	r.append(owner, 1, 1)
	for _, n := range r.others(nil) {
		again := r.append(n, 1, 1)
		if !again.Repeated || again.WLogOffset != 1 {
			t.Errorf("node %s: repeated: got %+v", n.o.Node, again)
		}
		if _, err := n.Append(r.ctx, to(1, 1), one(2)); !errors.Is(err, messages.ErrDedupMismatch) {
			t.Errorf("node %s: got %v, want ErrDedupMismatch", n.o.Node, err)
		}
		at := to(1, 2)
		at.Expected = new(messages.WLogOffset(7))
		_, err := n.Append(r.ctx, at, one(2))
		if o, ok := errors.AsType[*messages.OffsetError](err); !ok || o.Got != 1 || o.Want != 7 || o.Workspace != 1 {
			t.Errorf("node %s: got %v, want an OffsetError", n.o.Node, err)
		}
		if _, err := n.AppendAll(r.ctx, to(1, 2), nil); !errors.Is(err, messages.ErrDraft) {
			t.Errorf("node %s: got %v, want ErrDraft", n.o.Node, err)
		}
	}
	all, err := r.others(owner)[0].AppendAll(r.ctx, to(1, 3), []partition.Draft{one(3), one(4)})
	if err != nil || len(all) != 2 || all[1].WLogOffset != 3 {
		t.Errorf("got %+v, %v", all, err)
	}
}

// TestLead says when a node begins to lead, and when that has ended.
func TestLead(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	leads := make(map[replog.NodeID]int)
	failure := errors.New("no warehouse")
	r := newRig(t, func(id replog.NodeID, o *Options) {
		o.Lead = func(ctx context.Context, app *partition.App) error {
			mu.Lock()
			leads[id]++
			mu.Unlock()
			if _, err := app.SequencerOf(1); err != nil {
				return err
			}
			<-ctx.Done()
			mu.Lock()
			leads[id]--
			mu.Unlock()
			return failure // nobody is told: the leadership has ended
		}
	})
	leading := func(id replog.NodeID, want int) {
		t.Helper()
		for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
			mu.Lock()
			got := leads[id]
			mu.Unlock()
			if got == want {
				return
			}
		}
		t.Fatalf("node %s: want %d calls of Lead", id, want)
	}
	was := r.owner()
	leading(was.o.Node, 1)
	r.handOver(was)
	leading(was.o.Node, 0)
	leading(r.owner().o.Node, 1)
	if s := r.owner().Status(); s.Failed != nil || !s.Serves || s.Term == 0 {
		t.Errorf("got %+v", s)
	}
}

// TestFollowerComesBack is away for some time.
func TestFollowerComesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	owner := r.owner()
	r.append(owner, 1, 1)
	away := r.others(owner)[0].o.Node
	r.stop(away)
	for i := range 50 {
		r.append(r.owner(), 1, i+2)
	}
	n := r.start(away)
	if err := n.Reader().AwaitWLog(r.ctx, 1, 51); err != nil {
		t.Fatal(err)
	}
	if got := r.bodies(n, 1); len(got) != 51 {
		t.Errorf("got %d events, want 51", len(got))
	}
}

func TestWrongOptions(t *testing.T) {
	t.Parallel()
	good := Options{
		Node: "n1", Peers: map[replog.NodeID]string{"n1": "127.0.0.1:0", "n2": "127.0.0.1:1"}, Dir: t.TempDir(),
		Application: partition.Application{Descriptor: descriptor()},
	}
	for name, test := range map[string]struct {
		change func(*Options)
		want   error
	}{
		"not a peer":  {func(o *Options) { o.Node = "n9" }, ErrOptions},
		"no port":     {func(o *Options) { o.Peers = map[replog.NodeID]string{"n1": "127.0.0.1"} }, ErrOptions},
		"open":        {func(o *Options) { o.Listen = ":0" }, ErrOptions},
		"open peer":   {func(o *Options) { o.Peers = map[replog.NodeID]string{"n1": "127.0.0.1:0", "n2": "10.0.0.1:1"} }, ErrOptions},
		"no dir":      {func(o *Options) { o.Dir = "" }, ErrOptions},
		"descriptor":  {func(o *Options) { o.Application.Partitions = 0 }, messages.ErrDescriptor},
		"not created": {func(*Options) {}, storage.ErrNotFound},
	} {
		o := good
		test.change(&o)
		if n, err := Start(t.Context(), o); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
			if err == nil {
				_ = n.Close(t.Context())
			}
		}
	}
	if got := fmt.Sprint((&OwnerError{}), (&OwnerError{Leader: "n2"})); got == "" {
		t.Error("an OwnerError says nothing")
	}
}
