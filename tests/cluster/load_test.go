package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// invoice is the sequence, shop the kind of the workspaces.
const (
	invoice messages.SeqID  = 16
	shop    messages.WSKind = 1
)

// load is clients that append with ids, each to a workspace of its own, at all nodes in turn.
type load struct {
	c       *cluster
	ended   atomic.Bool
	all     sync.WaitGroup
	writers []*writer
}

// writer is one client.
type writer struct {
	c    *cluster
	load *load
	ws   messages.WSID
	// at is the node that it asks first.
	at int
	mu sync.Mutex
	// acknowledged counts appends; last is when the last one was, longest the longest time between two since await began, worst
	// that since worst was asked.
	acknowledged   int
	last           time.Time
	longest, worst time.Duration
	// repeats counts answers that were an earlier try's.
	repeats int
}

func (c *cluster) load(writers int) *load {
	l := &load{c: c}
	for i := range writers {
		w := &writer{c: c, load: l, ws: messages.WSID(i + 1), at: i, last: time.Now()}
		l.writers = append(l.writers, w)
		l.all.Go(w.run)
	}
	return l
}

func (w *writer) run() {
	for n := 1; !w.load.ended.Load(); n++ {
		if !w.append(n) {
			return
		}
	}
}

// append appends the writer's n-th event, at one node after the other until one has answered.
func (w *writer) append(n int) bool {
	to := partition.AppendTo{Workspace: w.ws, Kind: shop, DedupID: idOf(w.ws, n)}
	body, err := appendBody(&to, bodyOf(n))
	check(w.c, err)
	for end := time.Now().Add(patience); ; w.at++ {
		done, err := w.c.post(names[w.at%len(names)], &to, body)
		if err == nil {
			w.note(n, done)
			w.at += n % 50 / 49 // to another node from time to time
			return true
		}
		if time.Now().After(end) || errors.Is(err, messages.ErrDedupMismatch) {
			w.c.Errorf("workspace %d, append %d: %v", w.ws, n, err)
			return false
		}
		<-time.After(5 * time.Millisecond)
	}
}

// appendBody is a request for an invoice.
func appendBody(to *partition.AppendTo, body []byte) ([]byte, error) {
	return httpapi.AppendBody(to, &partition.Draft{Wanted: []partition.Wanted{{Seq: invoice}}, Body: body})
}

// post lets a node append, in one try: where that is of no use, the client has other nodes.
func (c *cluster) post(name string, to *partition.AppendTo, body []byte) (*partition.Appended, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*c.failover)
	defer cancel()
	url := fmt.Sprintf("%s/v1/workspaces/%d/events", c.nodes[name].url, to.Workspace)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(httpapi.IdempotencyKey(to.DedupID))
	response, err := c.web.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if p, ok := httpapi.ReadProblem(content); ok {
		return nil, p
	}
	var answer httpapi.Appended
	if err := json.Unmarshal(content, &answer); err != nil {
		return nil, err
	}
	done, err := answer.Read()
	return &done, err
}

func (w *writer) note(n int, done *partition.Appended) {
	if got := done.Numbers[0].Number; got != messages.Number(n) || done.WLogOffset != messages.WLogOffset(n) {
		w.c.Errorf("workspace %d, append %d: got number %d at offset %d", w.ws, n, got, done.WLogOffset)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	took := now.Sub(w.last)
	w.longest, w.worst, w.last = max(w.longest, took), max(w.worst, took), now
	w.acknowledged++
	if done.Repeated {
		w.repeats++
	}
}

func idOf(ws messages.WSID, n int) (id partition.DedupID) {
	copy(id[:], fmt.Sprintf("%06d%010d", ws, n))
	return id
}

func bodyOf(n int) []byte { return fmt.Appendf(nil, `{"n":%d}`, n) }

// acknowledged returns how many appends were.
func (l *load) acknowledged() (n int) {
	for _, w := range l.writers {
		n += w.count()
	}
	return n
}

// await waits until each writer has had so many more acknowledged, and returns the longest time that one of them has waited
// for one.
func (l *load) await(more int) (longest time.Duration) {
	l.c.Helper()
	wants := make([]int, len(l.writers))
	for i, w := range l.writers {
		w.mu.Lock()
		wants[i], w.longest = w.acknowledged+more, 0
		w.mu.Unlock()
	}
	for i, w := range l.writers {
		for end := time.Now().Add(patience); w.count() < wants[i]; <-time.After(2 * time.Millisecond) {
			if time.Now().After(end) {
				l.c.Fatalf("workspace %d gets no more events", w.ws)
			}
		}
		w.mu.Lock()
		longest = max(longest, w.longest)
		w.mu.Unlock()
	}
	return longest
}

// worst returns the longest time that a writer has waited for an acknowledgement since this was asked last.
func (l *load) worst() (worst time.Duration) {
	for _, w := range l.writers {
		w.mu.Lock()
		worst, w.worst = max(worst, w.worst), 0
		w.mu.Unlock()
	}
	return worst
}

func (w *writer) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.acknowledged
}

// verdict is what the nodes have in the end.
type verdict struct {
	acknowledged, repeats, lost, doubled, gaps, unequal int
}

// end stops the clients, and looks at what each node has.
func (l *load) end() verdict {
	l.c.Helper()
	l.ended.Store(true)
	l.all.Wait()
	v := verdict{acknowledged: l.acknowledged()}
	logs := make(map[string]string)
	for _, w := range l.writers {
		v.repeats += w.repeats
		for _, name := range names {
			v.look(l.c, w, name)
		}
	}
	lasts := l.c.lasts()
	for _, name := range names {
		logs[name] = l.c.plogs(name, lasts)
		if logs[name] != logs[names[0]] {
			v.unequal++
		}
	}
	return v
}

// look compares what a node has of a workspace with what was acknowledged.
func (v *verdict) look(c *cluster, w *writer, name string) {
	c.Helper()
	seen := make(map[string]int)
	offset := 0
	c.each(name, fmt.Sprintf("workspaces/%d/log?at_least=%d", w.ws, w.acknowledged), func(e *event) {
		offset++
		seen[string(e.Body)]++
		if e.Numbers[0].Number != messages.Number(offset) || e.WLogOffset != messages.WLogOffset(offset) {
			v.gaps++
		}
	})
	for n := range w.acknowledged {
		if seen[string(bodyOf(n+1))] == 0 {
			v.lost++
		}
	}
	for _, times := range seen {
		if times > 1 {
			v.doubled++
		}
	}
}

func (v verdict) wrong() bool { return v.lost+v.doubled+v.gaps+v.unequal > 0 }

func (v verdict) String() string {
	return fmt.Sprintf("acknowledged=%d answered-by-an-earlier-try=%d lost=%d doubled=%d gaps=%d unequal=%d",
		v.acknowledged, v.repeats, v.lost, v.doubled, v.gaps, v.unequal)
}

// page is one of a log.
type page struct {
	Results []event
	Next    *string
}

// event is what is looked at of one.
type event struct {
	PLogOffset messages.PLogOffset `json:"plog_offset,string"`
	WLogOffset messages.WLogOffset `json:"wlog_offset,string"`
	Workspace  messages.WSID       `json:"workspace,string"`
	Registered string              `json:"registered_at"`
	Epoch      messages.Epoch      `json:"epoch,string"`
	Numbers    []struct {
		Number messages.Number `json:"number,string"`
	} `json:"numbers"`
	Body rawText `json:"body"`
}

// rawText is JSON as it came.
type rawText string

// UnmarshalJSON implements json.Unmarshaler.
func (r *rawText) UnmarshalJSON(b []byte) error {
	*r = rawText(b)
	return nil
}

// each reads a log of a node's own to its end.
func (c *cluster) each(name, path string, take func(*event)) {
	c.Helper()
	url := c.nodes[name].url + "/v1/" + path + "&limit=200"
	for end := time.Now().Add(patience); ; {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		var p page
		err := getJSON(ctx, url, &p)
		cancel()
		if err != nil {
			if time.Now().After(end) {
				c.Fatalf("node %s: %v", name, err)
			}
			<-time.After(20 * time.Millisecond)
			continue
		}
		end = time.Now().Add(patience)
		for i := range p.Results {
			take(&p.Results[i])
		}
		if p.Next == nil {
			return
		}
		url = c.nodes[name].url + *p.Next
	}
}

// plogs returns a digest of what a node has of all partitions, when it has all that their owners had at the beginning.
func (c *cluster) plogs(name string, lasts []messages.PLogOffset) string {
	c.Helper()
	digest := sha256.New()
	for p, last := range lasts {
		c.each(name, fmt.Sprintf("partitions/%d/log?at_least=%d", p, last), func(e *event) { fmt.Fprintln(digest, p, e) })
	}
	return string(digest.Sum(nil))
}

// lasts returns how many events the owners have of each partition.
func (c *cluster) lasts() []messages.PLogOffset {
	c.Helper()
	all := make([]messages.PLogOffset, 4)
	for p := range all {
		c.each(c.owner(), fmt.Sprintf("partitions/%d/log?wait=0", p), func(e *event) { all[p] = e.PLogOffset })
	}
	return all
}

// verify checks the files of nodes that have ended.
func (c *cluster) verify() {
	c.Helper()
	for _, name := range names {
		for shard := range c.shards {
			out, err := exec.Command(program, "verify", "--db", fmt.Sprintf("%s/shard-%d", c.path(name), shard)).CombinedOutput()
			if err != nil {
				c.Errorf("node %s: verify shard %d: %v\n%s", name, shard, err, out)
			}
		}
	}
}
