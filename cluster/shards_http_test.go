package cluster

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/replog"
)

// read asks a node for a value.
func read[T any](w *web, id replog.NodeID, target string) (value T) {
	w.Helper()
	if err := json.Unmarshal([]byte(w.has(http.StatusOK, id, http.MethodGet, target, "")), &value); err != nil {
		w.Fatalf("node %s: %s: %v", id, target, err)
	}
	return value
}

// logPage is a page of a log.
type logPage struct {
	Results []struct {
		Partition messages.PartitionID `json:"partition"`
	} `json:"results"`
	Next     *string `json:"next"`
	PollMore string  `json:"poll_more"`
}

// TestShardsOverHTTP asks each node about partitions of all shards, one by one and together.
func TestShardsOverHTTP(t *testing.T) {
	t.Parallel()
	r := newRig(t, sharded)
	w := r.serve()
	r.spread()
	want := 0
	for i, id := range names {
		for ws := range 8 {
			at := fmt.Sprintf("/v1/workspaces/%d", ws+1)
			w.has(http.StatusCreated, id, http.MethodPost, at+"/events", event, "Idempotency-Key", fmt.Sprint("key ", i))
			want++
			if got := w.has(http.StatusOK, id, http.MethodGet, at+"/numbers", ""); !strings.Contains(got, fmt.Sprintf(`"last":"%d"`, i+1)) {
				t.Errorf("node %s, workspace %d: got %s, want number %d", id, ws+1, got, i+1)
			}
			w.has(http.StatusOK, id, http.MethodGet, fmt.Sprintf("/v1/partitions/%d/events/%d", (ws+1)%8, i+1), "")
			w.has(http.StatusOK, id, http.MethodGet, fmt.Sprintf("%s/log?at_least=%d", at, i+1), "")
		}
		for _, other := range names {
			if page := read[logPage](w, other, "/v1/log"); len(page.Results) != want {
				t.Errorf("node %s: the log of all partitions has %d events, want %d that were acknowledged", other, len(page.Results), want)
			}
		}
		if all := read[partitionsPage](w, id, "/v1/partitions"); len(all.Partitions) != 8 || all.Partitions[5].Partition != 5 || all.Partitions[5].State != "normal" {
			t.Errorf("node %s: partitions: got %+v", id, all)
		}
		w.has(http.StatusNotFound, id, http.MethodGet, "/v1/nothing", "")
		w.has(http.StatusNotFound, id, http.MethodGet, "/v1/partitions/8", "")
		w.has(http.StatusMethodNotAllowed, id, http.MethodPost, "/v1/log", "")
		w.has(http.StatusMethodNotAllowed, id, http.MethodPost, "/v1/partitions", "")
		w.has(http.StatusBadRequest, id, http.MethodGet, "/v1/log?limit=0", "")
		for _, target := range []string{"/v1/application", "/v1/openapi.json", "/healthz", "/readyz", "/v1/partitions/3", "/v1/log?consistency=local"} {
			w.has(http.StatusOK, id, http.MethodGet, target, "")
		}
	}
	w.pages(want)
	for i, id := range r.spread() { // again: on a machine that stands still for a while another node may own a shard
		w.actors(i, id)
	}
}

type partitionsPage struct {
	Partitions []struct {
		Partition int    `json:"partition"`
		State     string `json:"state"`
	} `json:"partitions"`
}

// pages reads the log of all partitions, each page at another node, and waits at the end for one more event.
func (w *web) pages(want int) {
	w.Helper()
	got, target := 0, "/v1/log?limit=5"
	for i := 0; ; i++ {
		page := read[logPage](w, names[i%len(names)], target)
		got += len(page.Results)
		if target = page.PollMore; strings.Contains(target, "consistency") {
			w.Errorf("got link %s, want one that reads what was acknowledged", target)
		}
		if page.Next == nil {
			break
		}
	}
	if got != want {
		w.Errorf("got %d events in pages, want %d", got, want)
	}
	polled := make(chan logPage, 1)
	go func() {
		defer close(polled) // also if it fails the test
		polled <- read[logPage](w, names[1], target+"&wait=60")
	}()
	w.has(http.StatusCreated, names[2], http.MethodPost, "/v1/workspaces/5/events", event)
	if page := <-polled; len(page.Results) != 1 || page.Results[0].Partition != 5 {
		w.Errorf("polled: got %+v, want the event of partition 5", page)
	}
}

// actors checks what the node that runs a shard says of its actors.
func (w *web) actors(shard int, id replog.NodeID) {
	w.Helper()
	all := read[shardStatuses](w, id, statusPath)
	if len(all.Actors) == 0 {
		w.Errorf("node %s: got no actors", id)
	}
	for _, a := range all.Actors {
		if a.Shard == nil || *a.Shard != shard {
			w.Errorf("node %s: got an actor %+v, want those of shard %d", id, a, shard)
		}
	}
	got := w.has(http.StatusBadRequest, id, http.MethodGet, statusPath, "", "Accept", "text/event-stream")
	if !strings.Contains(got, "a stream is of one shard, 0 to 2") {
		w.Errorf("got %s, want it to say what to ask for", got)
	}
	w.has(http.StatusBadRequest, id, http.MethodGet, statusPath+"?shard=3", "")
	request, err := http.NewRequestWithContext(w.ctx, http.MethodGet, fmt.Sprintf("%s%s?shard=%d", w.servers[id].URL, statusPath, shard), nil)
	if err != nil {
		w.Fatal(err)
	}
	request.Header.Set("Accept", "text/event-stream")
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		w.Fatal(err)
	}
	defer response.Body.Close()
	first := make([]byte, 5)
	if _, err := io.ReadFull(response.Body, first); err != nil || response.StatusCode != http.StatusOK || string(first) != "data:" {
		w.Errorf("node %s: stream: got %d, %q, %v", id, response.StatusCode, first, err)
	}
}

// TestSubscriptionOfAllShards is one, of which each shard has some lanes.
func TestSubscriptionOfAllShards(t *testing.T) {
	t.Parallel()
	const last = poison + 1
	d := newDeliveries()
	r := newRig(t, func(id replog.NodeID, o *Options) {
		sharded(id, o)
		o.Lead = d.lead
	})
	d.rig = r
	w := r.serve()
	r.spread()
	for ws := messages.WSID(1); ws <= 8; ws++ {
		for i := range last {
			r.append(r.node(names[i%len(names)]), ws, 1000*int(ws)+i+1)
		}
		d.await(ws, last)
	}
	for _, id := range names {
		d.told(w, id, 8)
		all := read[httpapi.Subscription](w, id, "/v1/subscriptions/mail")
		if len(all.Lanes) != 8 || all.Lanes[3].Partition != 3 || all.Parked != 8 || all.State != "running" {
			t.Errorf("node %s: got %+v", id, all)
		}
		w.has(http.StatusNotFound, id, http.MethodGet, "/v1/subscriptions/none", "")
		w.has(http.StatusNotFound, id, http.MethodGet, "/v1/subscriptions/none/parked", "")
		w.has(http.StatusNotFound, id, http.MethodPost, "/v1/subscriptions/none/pause", "{}")
		w.has(http.StatusNotFound, id, http.MethodPost, "/v1/subscriptions/mail/nothing", "{}")
		w.parkedInPages(id)
	}
	w.control("n1", "pause", "{}")
	if all := read[httpapi.Subscription](w, "n2", "/v1/subscriptions/mail"); all.State != "paused" {
		t.Errorf("got %+v, want it paused", all)
	}
	w.control("n2", "drop", `{"partition": 4, "offset": "4"}`)
	w.control("n2", "rewind", `{"partition": 5, "offset": "1"}`)
	w.has(http.StatusUnprocessableEntity, "n2", http.MethodPost, "/v1/subscriptions/mail/rewind", `{"partition": 8, "offset": "1"}`)
	w.control("n3", "resume", "{}")
	r.soon(func() error {
		if all := read[httpapi.Subscription](w, "n3", "/v1/subscriptions/mail"); all.State != "running" || all.Parked != 7 || all.LagEvents != 0 {
			return fmt.Errorf("got %+v, want one parked event less", all)
		}
		return nil
	})
	w.has(http.StatusOK, "n1", http.MethodDelete, "/v1/subscriptions/mail", "")
	w.has(http.StatusNotFound, "n2", http.MethodDelete, "/v1/subscriptions/mail", "")
	if all := read[httpapi.Page[httpapi.Subscription]](w, "n2", "/v1/subscriptions"); len(all.Results) != 0 || all.Next != nil {
		t.Errorf("got %+v, want none", all)
	}
}

// control changes a subscription. It asks again while that is not known because the machine stood still.
func (w *web) control(id replog.NodeID, command, body string) {
	w.Helper()
	tries := 0
	w.soon(func() error {
		tries++
		status, content := w.ask(id, http.MethodPost, "/v1/subscriptions/mail/"+command, body)
		dropped := tries > 1 && command == "drop" && status == http.StatusNotFound
		if status >= http.StatusInternalServerError && w.standing.long(failover) {
			return fmt.Errorf("%s: got %d, %s", command, status, content)
		}
		if status != http.StatusOK && !dropped {
			w.Errorf("node %s: %s: got %d, %s", id, command, status, content)
		}
		return nil
	})
}

// parkedInPages reads what is parked, a few at a time.
func (w *web) parkedInPages(id replog.NodeID) {
	w.Helper()
	var places []messages.PartitionID
	for target := "/v1/subscriptions/mail/parked?limit=3"; ; {
		page := read[httpapi.Page[httpapi.ParkedEvent]](w, id, target)
		for _, e := range page.Results {
			places = append(places, e.Partition)
		}
		if page.Next == nil {
			break
		}
		target = *page.Next
	}
	if got := fmt.Sprint(places); got != "[0 1 2 3 4 5 6 7]" {
		w.Errorf("node %s: got what is parked of partitions %s, want each once", id, got)
	}
}

// TestClusterOfShards tells and changes where each shard stands.
func TestClusterOfShards(t *testing.T) {
	t.Parallel()
	r := newRig(t, sharded)
	w := r.serve()
	owners := r.spread()
	for ws := messages.WSID(1); ws <= 8; ws++ {
		r.append(r.node("n1"), ws, int(ws))
	}
	all := read[StatusJSON](w, "n2", clusterPath)
	if all.Shards != shards || len(all.Members) != shards*len(names) {
		t.Fatalf("got %+v, want %d members", all, shards*len(names))
	}
	for i, m := range all.Members {
		leads := owners[m.Shard] == m.Node
		if m.Shard != i/len(names) || m.Node != names[i%len(names)] || !m.Votes || m.Serves != leads || m.Preferred != leads {
			t.Errorf("got %+v, want it to lead: %v", m, leads)
		}
	}
	c := read[Comparison](w, "n3", comparePath)
	if !c.Same || c.Compared != len(names) || len(c.Members) != shards*len(names) {
		t.Errorf("got %+v", c)
	}
	for _, wrong := range []string{`{"to": "n2"}`, `{"to": "n2", "shard": 3}`, `{"to": "n9", "shard": 1}`} {
		w.has(http.StatusBadRequest, "n1", http.MethodPost, transferPath, wrong)
	}
	w.has(http.StatusOK, "n1", http.MethodPost, transferPath, fmt.Sprintf(`{"to": %q, "shard": 1}`, owners[0]))
	r.led(1, func(id replog.NodeID) bool { return id == owners[0] })
	// The node that leads no shard any more leaves, and comes back.
	w.eventually(owners[0], removePath, owners[1])
	w.voters(owners[0], func(id replog.NodeID) bool { return id != owners[1] })
	w.eventually(owners[2], addPath, owners[1])
	w.voters(owners[0], func(replog.NodeID) bool { return true })
}

// voters waits until a node knows which nodes vote in all shards: who leads knows it first.
func (w *web) voters(id replog.NodeID, want func(replog.NodeID) bool) {
	w.Helper()
	wrong := func(m NodeJSON) bool { return m.Votes != want(m.Node) }
	for end := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
		all := read[StatusJSON](w, id, clusterPath).Members
		if !slices.ContainsFunc(all, wrong) {
			return
		}
		if time.Now().After(end) {
			w.Fatalf("node %s: got %+v, want others to vote", id, all)
		}
	}
}

// TestShardWithoutQuorum lets no node answer for all shards. What each has it tells.
func TestShardWithoutQuorum(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(id replog.NodeID, o *Options) {
		sharded(id, o)
		o.HTTP = httpapi.Options{AppendTimeout: time.Second}
	})
	w := r.serve()
	r.spread()
	for ws := messages.WSID(1); ws <= 8; ws++ {
		r.append(r.node("n1"), ws, int(ws))
		for _, n := range r.others(nil) {
			if err := n.Reader().AwaitWLog(r.ctx, ws, 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, id := range names {
		r.isolate(id)
	}
	for _, n := range r.others(nil) {
		for _, s := range n.Shards() {
			for s.Leader() != "" && r.ctx.Err() == nil {
				<-time.After(5 * time.Millisecond)
			}
		}
	}
	for _, id := range names {
		for _, target := range []string{"/v1/log", "/v1/partitions", "/v1/subscriptions", "/v1/workspaces/2/log", "/readyz"} {
			w.has(http.StatusServiceUnavailable, id, http.MethodGet, target, "")
		}
		if page := read[logPage](w, id, "/v1/log?consistency=local"); len(page.Results) != 8 {
			t.Errorf("node %s: got %d events, want 8", id, len(page.Results))
		}
	}
}
