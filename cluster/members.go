package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/storage/replog"
	"github.com/partita-go/partita/storage/replog/raftlog"
)

// Add lets a node take part in the log that is among Options.Peers, and was removed, or is new and started with Options.Join.
// It returns when the node has caught up and votes: give ctx a deadline. An [*OwnerError] if this node does not lead; the rest
// is that of [raftlog.Log.Add].
func (s *Shard) Add(ctx context.Context, id replog.NodeID) error {
	return s.asOwner(s.part().log.Add(ctx, id))
}

// Remove takes a node out of the log: it votes no more, and is told nothing more. Stop it then. The node that leads is not
// removed. An [*OwnerError] if this node does not lead; the rest is that of [raftlog.Log.Remove].
func (s *Shard) Remove(ctx context.Context, id replog.NodeID) error {
	return s.asOwner(s.part().log.Remove(ctx, id))
}

// asOwner says who leads, if this node does not.
func (s *Shard) asOwner(err error) error {
	if errors.Is(err, replog.ErrNotOwner) {
		return &OwnerError{s.Leader()}
	}
	return err
}

// change is what somebody asks for over HTTP: of the one who leads, about a node.
type change struct {
	// field names the node in the body.
	field string
	do    func(*Shard, context.Context, replog.NodeID) error
	// done reports whether it has been done, nil if that cannot be said: whoever repeats it for all shards goes on.
	done func(*Shard, replog.NodeID) bool
}

// changes are those that there are, by their paths.
var changes = map[string]*change{
	transferPath: {"to", (*Shard).transfer, nil},
	addPath:      {"node", (*Shard).Add, (*Shard).hasVoter},
	removePath:   {"node", (*Shard).Remove, func(s *Shard, id replog.NodeID) bool { return !s.hasMember(id) }},
}

// changeBody is what the body of a request says.
type changeBody struct {
	To   replog.NodeID `json:"to"`
	Node replog.NodeID `json:"node"`
	// Shard is the shard that is meant. nil is the only one; to add and to remove a node, it is all.
	Shard *int `json:"shard"`
}

func (b *changeBody) about(c *change) replog.NodeID {
	if c.field == "to" {
		return b.To
	}
	return b.Node
}

// answerChange does what is asked for, at the nodes that lead.
func (n *Node) answerChange(c *change) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := n.readBody(w, r)
		var shards []*Shard
		if err == nil {
			shards, err = n.changed(c, body)
		}
		if err != nil {
			httpapi.Refuse(w, r, err)
			return
		}
		// One after the other: the first that refuses answers.
		for i, s := range shards {
			said := newRecorded()
			s.answerChange(said, r, c, body)
			if said.status != http.StatusOK || i == len(shards)-1 {
				said.send(w)
				return
			}
		}
	}
}

// changed returns the shards that a change is about.
func (n *Node) changed(c *change, body []byte) ([]*Shard, error) {
	var b changeBody
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, httpapi.Malformed(c.field, err.Error())
	}
	last := len(n.shards) - 1
	switch {
	case b.Shard != nil && (*b.Shard < 0 || *b.Shard > last):
		return nil, httpapi.Malformed(paramShard, fmt.Sprintf("got %d, want 0 to %d", *b.Shard, last))
	case b.Shard != nil:
		return n.shards[*b.Shard : *b.Shard+1], nil
	case last > 0 && c.done == nil:
		return nil, httpapi.Malformed(paramShard, fmt.Sprintf("it is missing: want 0 to %d", last))
	}
	return n.shards, nil
}

// answerChange does what is asked for, at the node that leads.
func (s *Shard) answerChange(w http.ResponseWriter, r *http.Request, c *change, body []byte) {
	if reign, _ := s.now(); reign == nil {
		s.forwardWith(w, r, body)
		return
	}
	s.makeChange(w, r, c, body, nil)
}

// makeChange does what is asked for, unless the body could not be read. It passes nothing on: if this node does not lead any
// more, it says so.
func (s *Shard) makeChange(w http.ResponseWriter, r *http.Request, c *change, body []byte, err error) {
	if err == nil {
		err = s.change(r.Context(), c, body)
	}
	if err != nil {
		httpapi.Refuse(w, r, err)
		return
	}
	answer(w, s.json())
}

// change does what the body of a request says.
func (s *Shard) change(ctx context.Context, c *change, body []byte) error {
	var b changeBody
	if err := json.Unmarshal(body, &b); err != nil {
		return httpapi.Malformed(c.field, err.Error())
	}
	id := b.about(c)
	if _, there := s.o.Peers[id]; !there {
		return httpapi.Malformed(c.field, fmt.Sprintf("got %.80q, want one of %q", id, s.o.nodes()))
	}
	// Whoever has passed it on waits as long.
	ctx, cancel := context.WithTimeout(ctx, s.o.HTTP.AppendTimeout)
	defer cancel()
	err := c.do(s, ctx, id)
	if errors.Is(err, raftlog.ErrMember) {
		if len(s.node.shards) > 1 && b.Shard == nil && c.done(s, id) {
			return nil
		}
		return httpapi.Malformed(c.field, err.Error())
	}
	return err
}

func (s *Shard) hasVoter(id replog.NodeID) bool {
	return slices.ContainsFunc(s.part().log.Members(), func(m raftlog.Member) bool { return m.Node == id && m.Votes })
}

func (s *Shard) hasMember(id replog.NodeID) bool {
	return slices.ContainsFunc(s.part().log.Members(), func(m raftlog.Member) bool { return m.Node == id })
}

// transfer lets another node lead, unless this one is meant.
func (s *Shard) transfer(ctx context.Context, to replog.NodeID) error {
	if to == s.o.Node {
		return nil
	}
	return s.Transfer(ctx, to)
}
