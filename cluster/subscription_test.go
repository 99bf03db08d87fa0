package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/replog"
)

// deliveryBatch is how many events a handler gets at once.
const deliveryBatch = 3

// poison is the event of each workspace that no handler takes.
const poison = 4

// deliveries are what the handlers of all owners got of a subscription.
type deliveries struct {
	*rig
	mu sync.Mutex
	// leads counts the leaderships.
	leads int
	// got counts how often each event was handled, repeated how many batches of a partition had one that was before.
	got      map[messages.DedupID]int
	events   map[messages.WSID]map[messages.WLogOffset]bool
	repeated map[messages.PartitionID]int
}

func newDeliveries() *deliveries {
	return &deliveries{
		got: make(map[messages.DedupID]int), events: make(map[messages.WSID]map[messages.WLogOffset]bool),
		repeated: make(map[messages.PartitionID]int),
	}
}

// lead subscribes on whichever node leads.
func (d *deliveries) lead(ctx context.Context, app *partition.App) error {
	d.mu.Lock()
	d.leads++
	d.mu.Unlock()
	_, err := app.Subscribe(ctx, partition.SubscriptionConfig{
		Name: "mail", Batch: deliveryBatch, MaxTries: 1, MinDelay: time.Millisecond, Handler: d.handle,
	})
	return err
}

func (d *deliveries) handle(_ context.Context, batch partition.Delivery) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	again := false
	for i := range batch.Events {
		e := &batch.Events[i]
		if e.WLogOffset == poison {
			d.repeat(batch.Partition, again)
			return &partition.BatchError{Index: i, Err: errors.New("no such address")}
		}
		again = again || d.got[e.DedupID] > 0
		d.got[e.DedupID]++
		if d.events[e.Workspace] == nil {
			d.events[e.Workspace] = make(map[messages.WLogOffset]bool)
		}
		d.events[e.Workspace][e.WLogOffset] = true
	}
	d.repeat(batch.Partition, again)
	return nil
}

func (d *deliveries) repeat(p messages.PartitionID, again bool) {
	if again {
		d.repeated[p]++
	}
}

// await waits until all events of a workspace were handled, but for the one that none takes.
func (d *deliveries) await(ws messages.WSID, last messages.WLogOffset) {
	d.Helper()
	d.soon(func() error {
		if missing := d.missing(ws, last); len(missing) > 0 {
			return fmt.Errorf("workspace %d: events %v were not handled", ws, missing)
		}
		return nil
	})
}

func (d *deliveries) missing(ws messages.WSID, last messages.WLogOffset) (all []messages.WLogOffset) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for o := messages.WLogOffset(1); o <= last; o++ {
		if o != poison && !d.events[ws][o] {
			all = append(all, o)
		}
	}
	return all
}

// TestSubscriptionMovesWithTheOwner lets the owners of a subscription be closed, cut off and replaced: the next one goes on
// where it stood, with what was parked, and each node says so.
func TestSubscriptionMovesWithTheOwner(t *testing.T) {
	t.Parallel()
	const workspaces, rounds, each = 3, 6, 5
	d := newDeliveries()
	r := newRig(t, func(_ replog.NodeID, o *Options) { o.Lead = d.lead })
	d.rig = r
	w := r.serve()
	last := messages.WLogOffset(0)
	for round := range rounds {
		was := r.owner()
		for range each {
			last++
			for ws := messages.WSID(1); ws <= workspaces; ws++ {
				r.append(was, ws, 1000*int(ws)+int(last))
			}
		}
		if round%2 == 0 {
			d.await(1, last) // else the change comes in the midst
		}
		d.change(was, round)
	}
	for ws := messages.WSID(1); ws <= workspaces; ws++ {
		d.await(ws, last)
	}
	d.mu.Lock()
	for p, n := range d.repeated {
		if n >= d.leads {
			t.Errorf("partition %d: %d batches were repeated in %d leaderships", p, n, d.leads)
		}
	}
	d.mu.Unlock()
	for _, n := range r.others(nil) {
		d.told(w, n.o.Node, workspaces)
	}
}

// change lets another node lead, each time in another way.
func (d *deliveries) change(was *Node, round int) {
	d.Helper()
	id := was.o.Node
	switch round % 3 {
	case 0:
		d.stop(id)
		d.owner()
		d.start(id)
	case 1:
		d.isolate(id)
		d.owner(id)
		d.heal(id)
	default:
		d.handOver(was)
	}
}

// told checks what a node says of the subscription over HTTP.
func (d *deliveries) told(w *web, id replog.NodeID, parked uint64) {
	d.Helper()
	var got httpapi.Page[httpapi.Subscription]
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		content := w.has(http.StatusOK, id, http.MethodGet, "/v1/subscriptions", "")
		if err := json.Unmarshal([]byte(content), &got); err != nil {
			d.Fatalf("node %s: %v", id, err)
		}
		if len(got.Results) == 1 && got.Results[0].LagEvents == 0 && got.Results[0].State == "running" {
			break // the handler has the events before the subscription stands behind them
		}
	}
	if len(got.Results) != 1 || got.Results[0].State != "running" || got.Results[0].Parked != parked || got.Results[0].LagEvents != 0 {
		d.Errorf("node %s: subscriptions: got %+v", id, got.Results)
	}
	content := w.has(http.StatusOK, id, http.MethodGet, "/v1/subscriptions/mail/parked", "")
	if n := uint64(strings.Count(content, "no such address")); n != parked {
		d.Errorf("node %s: got %d parked events, want %d: %s", id, n, parked, content)
	}
}
