package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

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
	do    func(context.Context, replog.NodeID) error
}

// changes are those that there are, by their paths.
func (s *Shard) changes() map[string]*change {
	return map[string]*change{
		transferPath: {"to", s.transfer},
		addPath:      {"node", s.Add},
		removePath:   {"node", s.Remove},
	}
}

// answerChange does what is asked for, at the node that leads.
func (s *Shard) answerChange(c *change) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if reign, _ := s.now(); reign == nil {
			s.forward(w, r)
			return
		}
		s.makeChange(w, r, c)
	}
}

// makeChange does what is asked for. It passes nothing on: if this node does not lead any more, it says so.
func (s *Shard) makeChange(w http.ResponseWriter, r *http.Request, c *change) {
	body, err := s.part().api.ReadBody(w, r)
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
	var about map[string]replog.NodeID
	if err := json.Unmarshal(body, &about); err != nil {
		return httpapi.Malformed(c.field, err.Error())
	}
	id := about[c.field]
	if _, there := s.o.Peers[id]; !there {
		return httpapi.Malformed(c.field, fmt.Sprintf("got %.80q, want one of %q", id, s.o.nodes()))
	}
	// Whoever has passed it on waits as long.
	ctx, cancel := context.WithTimeout(ctx, s.o.HTTP.AppendTimeout)
	defer cancel()
	err := c.do(ctx, id)
	if errors.Is(err, raftlog.ErrMember) {
		return httpapi.Malformed(c.field, err.Error())
	}
	return err
}

// transfer lets another node lead, unless this one is meant.
func (s *Shard) transfer(ctx context.Context, to replog.NodeID) error {
	if to == s.o.Node {
		return nil
	}
	return s.Transfer(ctx, to)
}
