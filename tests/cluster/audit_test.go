package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// Auditors append to the same workspaces, and read at all nodes what their last numbers are. What they were told must have an
// order in which each number is the next one, and each read shows the last one: that of one node, told at once.
const (
	auditors  = 3
	auditGaps = 10 * time.Millisecond
	// auditLength is how many operations a history has: then the auditors go to the next workspace.
	auditLength = 1500
	// firstAudited is the first of their workspaces.
	firstAudited messages.WSID = 1_000_000
)

// operation is one of a history: an append of an event, or a read if there is none.
type operation struct {
	ws   messages.WSID
	body string
}

// audit is what auditors have done.
type audit struct {
	c     *cluster
	began time.Time
	ended atomic.Bool
	all   sync.WaitGroup

	mu  sync.Mutex
	ops []porcupine.Operation
	// bodies are what the workspaces have, by offsets.
	bodies map[messages.WSID]map[int]string
}

// audit lets some groups of auditors work: those of each have workspaces in common.
func (c *cluster) audit(groups int) *audit {
	a := &audit{c: c, began: time.Now(), bodies: make(map[messages.WSID]map[int]string)}
	for g := range groups {
		var done atomic.Int64
		for i := range auditors {
			a.all.Go(func() {
				for n := 1; !a.ended.Load(); n++ {
					ws := firstAudited + messages.WSID(g) + messages.WSID(groups)*messages.WSID(done.Add(1)/auditLength)
					if !a.do(g*auditors+i, n, ws) {
						return
					}
					<-time.After(rand.N(2 * auditGaps))
				}
			})
		}
	}
	return a
}

// do does one operation, at one node after the other until one has answered.
func (a *audit) do(client, n int, ws messages.WSID) bool {
	o := porcupine.Operation{ClientId: client, Input: operation{ws: ws}}
	try := a.read
	if rand.N(3) > 0 {
		o.Input = operation{ws: ws, body: fmt.Sprintf(`{"auditor":%d,"n":%d}`, client, n)}
		try = func(name string, o *porcupine.Operation) error { return a.append(name, n, o) }
	}
	o.Call = int64(time.Since(a.began))
	for end, at := time.Now().Add(patience), rand.IntN(len(names)); ; at++ {
		err := try(names[at%len(names)], &o)
		if err == nil {
			break
		}
		if time.Now().After(end) {
			a.c.Errorf("auditor %d, workspace %d: %v", client, ws, err)
			return false
		}
		<-time.After(5 * time.Millisecond)
	}
	o.Return = int64(time.Since(a.began))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ops = append(a.ops, o)
	return true
}

func (a *audit) append(name string, n int, o *porcupine.Operation) error {
	in := o.Input.(operation)
	var id partition.DedupID
	copy(id[:], fmt.Sprintf("%06d%010d", o.ClientId, n))
	to := partition.AppendTo{Workspace: in.ws, Kind: shop, DedupID: id}
	body, err := appendBody(&to, []byte(in.body))
	check(a.c, err)
	done, err := a.c.post(name, &to, body)
	if err != nil {
		return err
	}
	at := int(done.WLogOffset)
	if got := done.Numbers[0].Number; got != messages.Number(at) {
		a.c.Errorf("workspace %d: got number %d at offset %d", in.ws, got, at)
	}
	o.Output = at
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.bodies[in.ws] == nil {
		a.bodies[in.ws] = make(map[int]string)
	}
	a.bodies[in.ws][at] = in.body
	return nil
}

// read reads the last offset. Only the try that was answered is in the history.
func (a *audit) read(name string, o *porcupine.Operation) error {
	o.Call = int64(time.Since(a.began))
	ctx, cancel := context.WithTimeout(context.Background(), 2*a.c.failover)
	defer cancel()
	url := fmt.Sprintf("%s/v1/workspaces/%d/numbers", a.c.nodes[name].url, o.Input.(operation).ws)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := a.c.web.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var numbers struct {
		AsOf int `json:"as_of_offset,string"`
	}
	switch response.StatusCode {
	case http.StatusOK:
		err = json.NewDecoder(response.Body).Decode(&numbers)
	case http.StatusNotFound: // it has no event
	default:
		err = fmt.Errorf("%s: %s", url, response.Status)
	}
	o.Output = numbers.AsOf
	return err
}

// counter is a workspace: the state is its last offset.
var counter = porcupine.Model{
	Partition: func(all []porcupine.Operation) (parts [][]porcupine.Operation) {
		of := make(map[messages.WSID]int)
		for _, o := range all {
			ws := o.Input.(operation).ws
			i, there := of[ws]
			if !there {
				i = len(parts)
				of[ws] = i
				parts = append(parts, nil)
			}
			parts[i] = append(parts[i], o)
		}
		return parts
	},
	Init: func() any { return 0 },
	Step: func(state, input, output any) (bool, any) {
		last, told := state.(int), output.(int)
		if input.(operation).body != "" {
			last++
		}
		return told == last, last
	},
}

// end stops the auditors, looks whether what they were told can be, and whether it is there at each node.
func (a *audit) end() {
	a.c.Helper()
	a.ended.Store(true)
	a.all.Wait()
	if got := porcupine.CheckOperationsTimeout(counter, a.ops, patience); got != porcupine.Ok {
		a.c.Errorf("the histories of %d operations: got %v, want %v", len(a.ops), got, porcupine.Ok)
	}
	for ws, bodies := range a.bodies {
		for _, name := range names {
			have := 0
			a.c.each(name, fmt.Sprintf("workspaces/%d/log?at_least=%d", ws, len(bodies)), func(e *event) {
				if have++; string(e.Body) != bodies[have] {
					a.c.Errorf("node %s, workspace %d, offset %d: got %s, want %s", name, ws, have, e.Body, bodies[have])
				}
			})
			if have != len(bodies) {
				a.c.Errorf("node %s, workspace %d: got %d events, want %d", name, ws, have, len(bodies))
			}
		}
	}
}
