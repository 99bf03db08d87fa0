package cluster

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/replog"
)

// answerForAll answers what is about all shards.
func (n *Node) answerForAll(w http.ResponseWriter, r *http.Request) {
	kind, _ := kindOf(r.URL.Path)
	switch {
	case kind == "subscriptions":
		n.answerSubscriptions(w, r)
	case !isRead(r):
		n.shards[0].forward(w, r) // it says that there is no such method
	case kind == "log":
		n.answerLog(w, r)
	default:
		n.answerPartitions(w, r)
	}
}

// answerPartitions answers with the states of all partitions, as the owner of each tells it.
func (n *Node) answerPartitions(w http.ResponseWriter, r *http.Request) {
	type partitions struct {
		Application string            `json:"application"`
		Partitions  []json.RawMessage `json:"partitions"`
	}
	type at struct {
		Partition int `json:"partition"`
	}
	var all partitions
	places := make(map[int]json.RawMessage)
	for _, said := range n.gather(r, nil) {
		if said.status != http.StatusOK {
			said.send(w)
			return
		}
		var some partitions
		err := json.Unmarshal(said.body.Bytes(), &some)
		for _, text := range some.Partitions {
			var p at
			err = errors.Join(err, json.Unmarshal(text, &p))
			places[p.Partition] = text
		}
		if err != nil {
			httpapi.Refuse(w, r, err)
			return
		}
		all.Application = some.Application
	}
	for p := range int(n.o.Application.Descriptor.Partitions) {
		all.Partitions = append(all.Partitions, places[p])
	}
	answer(w, &all)
}

// answerLog answers with the log of all partitions as this node has it, when that has all that anybody was told before.
func (n *Node) answerLog(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	unhook := context.AfterFunc(n.serving, cancel)
	err := n.catchUp(ctx)
	unhook()
	if err != nil {
		httpapi.Refuse(w, r, err)
		return
	}
	n.local().ServeHTTP(w, r.WithContext(replog.Local(r.Context())))
}

// catchUp waits until this node has of all shards what their owners have.
func (n *Node) catchUp(ctx context.Context) error {
	return cmp.Or(each(n, func(s *Shard) error { return s.catchUp(ctx) })...)
}

func (s *Shard) catchUp(ctx context.Context) error {
	p := &pursuit{shard: s, repeatable: true, limit: s.o.HTTP.AppendTimeout, try: func(ctx context.Context, o owner) error {
		if o.here != nil {
			_, err := s.ends(ctx)
			return err
		}
		var ends []messages.PLogOffset
		if err := s.ask(ctx, o.node, endsPath, &ends); err != nil {
			return err
		}
		return s.awaitEnds(ctx, ends)
	}}
	return p.run(ctx)
}

// ends returns where the logs of the shard's partitions end, if this node leads: all that anybody was told to be there.
func (s *Shard) ends(ctx context.Context) (all []messages.PLogOffset, err error) {
	for _, p := range s.Owned() {
		register, err := s.part().store.Register(ctx, p)
		if err != nil {
			return nil, err
		}
		all = append(all, register.Last)
	}
	return all, nil
}

// answerEnds tells another node where the logs end.
func (s *Shard) answerEnds(w http.ResponseWriter, r *http.Request) {
	ends, err := s.ends(r.Context())
	if err != nil {
		httpapi.Refuse(w, r, err)
		return
	}
	answer(w, ends)
}

// awaitEnds waits until this node has come to where the owner's logs end.
func (s *Shard) awaitEnds(ctx context.Context, ends []messages.PLogOffset) error {
	waiting, cancel := context.WithTimeout(ctx, s.o.HTTP.CatchUp)
	defer cancel()
	owned := s.Owned()
	if len(ends) != len(owned) {
		return fmt.Errorf("shard %d: got the ends of %d partitions, want %d", s.index, len(ends), len(owned))
	}
	for i, end := range ends {
		if end == 0 {
			continue
		}
		err := s.part().store.AwaitPLog(waiting, owned[i], end)
		if waiting.Err() != nil && ctx.Err() == nil {
			return fmt.Errorf("%w: this node has not yet what the owner of shard %d has", replog.ErrNotOwner, s.index)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// answerSubscriptions answers about subscriptions, of which each shard has its lanes.
func (n *Node) answerSubscriptions(w http.ResponseWriter, r *http.Request) {
	body, err := n.readBody(w, r)
	if err != nil {
		httpapi.Refuse(w, r, err)
		return
	}
	path := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/v1/"), "/")
	switch {
	case len(path) == 1 && isRead(r):
		n.listSubscriptions(w, r)
	case len(path) == 3 && path[2] == "parked" && isRead(r):
		n.listParked(w, r)
	case len(path) == 3 && slices.Contains([]string{"rewind", "replay", "drop"}, path[2]):
		n.shardIn(body).forwardWith(w, r, body)
	default:
		n.answerSubscription(w, r, body)
	}
}

// shardIn returns the shard of the partition that a body names; any, if it names none: that says what is wrong.
func (n *Node) shardIn(body []byte) *Shard {
	var at struct {
		Partition messages.PartitionID `json:"partition"`
	}
	_ = json.Unmarshal(body, &at)
	return n.ShardOf(at.Partition)
}

// answerSubscription answers about one: each shard that has it.
func (n *Node) answerSubscription(w http.ResponseWriter, r *http.Request, body []byte) {
	all := n.gather(r, body)
	found := slices.DeleteFunc(slices.Clone(all), func(said *recorded) bool { return said.status == http.StatusNotFound })
	if len(found) == 0 {
		all[0].send(w)
		return
	}
	done := slices.ContainsFunc(found, func(said *recorded) bool { return said.status == http.StatusOK })
	for _, said := range found {
		if said.status != http.StatusOK {
			if !isRead(r) && done {
				said.tellMore("in other shards it was done: send it again")
			}
			said.send(w)
			return
		}
	}
	if !isRead(r) {
		found[0].send(w)
		return
	}
	var whole []httpapi.Subscription
	for _, said := range found {
		var some httpapi.Subscription
		if err := json.Unmarshal(said.body.Bytes(), &some); err != nil {
			httpapi.Refuse(w, r, err)
			return
		}
		whole = append(whole, some)
	}
	answer(w, joined(whole))
}

// tellMore adds to the detail of a problem.
func (r *recorded) tellMore(detail string) {
	var members map[string]any
	d := json.NewDecoder(bytes.NewReader(r.body.Bytes()))
	d.UseNumber()
	if d.Decode(&members) != nil {
		return
	}
	members["detail"] = fmt.Sprintf("%v; %s", members["detail"], detail)
	if text, err := json.Marshal(members); err == nil {
		r.body.Reset()
		r.body.Write(text)
		r.header.Del("Content-Length")
	}
}
