package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/replog"
)

// Status is what a node knows of itself and of the others.
type Status struct {
	// Shard is the number of the shard that all of this is about.
	Shard int
	Node  replog.NodeID
	// Leader is who leads, or is about to, as far as this node knows; "" if it does not.
	Leader replog.NodeID
	// Term is that of this node's leadership, 0 if it does not lead.
	Term uint64
	// Serves says that the application runs here and takes transactions.
	Serves bool
	// Peers are where all nodes listen for each other.
	Peers map[replog.NodeID]string
	// Head is how many entries of the log this node's store has. Behind is how many more a majority has, as far as this node
	// knows: a node that hears nobody does not know.
	Head, Behind uint64
	// Heard is when this node heard the leader last, zero if it has not heard one, or leads.
	Heard time.Time
	// Stopped is why this node takes no part in the log any more, nil if it does: see [replog.Leadership].
	Stopped error
	// Full is why the store here refuses appends, nil if it has room: see [storage.Roomy]. Who leads then lets another node lead.
	Full error
	// Failed is why the application could not begin here, or what Lead has returned, nil if neither has failed.
	Failed error
	// HandedOver says that somebody wanted another node to lead, see [Shard.Transfer], and neither this one nor the preferred one
	// has since.
	HandedOver bool
}

// Status returns where this node stands.
func (s *Shard) Status() Status {
	now, _ := s.part().leadership()
	standing := s.part().log.Standing()
	reign, _ := s.now()
	s.mu.Lock()
	failed, handedOver := s.failed, s.handedOver
	s.mu.Unlock()
	all := Status{
		Shard: s.index, HandedOver: handedOver,
		Node: s.o.Node, Leader: now.Leader, Term: now.Term, Serves: reign != nil, Peers: make(map[replog.NodeID]string),
		Head: standing.Applied.Head, Behind: standing.Behind, Heard: standing.Heard, Stopped: now.Stopped,
		Full: s.o.full(s.part().store), Failed: failed,
	}
	for id := range s.o.Peers {
		all.Peers[id] = s.o.address(id)
	}
	return all
}

// NodeJSON is a node's status as it is answered.
type NodeJSON struct {
	// Shard is the shard that all of this is about.
	Shard   int           `json:"shard"`
	Node    replog.NodeID `json:"node"`
	Address string        `json:"address"`
	// Votes says that the node counts for a majority, as far as the node that was asked knows: one that was added does not yet,
	// one that was removed does not any more. It is told of members only.
	Votes bool `json:"votes"`
	// Preferred says that the node is to lead when it has kept up, if there are several shards. It is told of members only.
	Preferred bool `json:"preferred,omitempty"`
	// Unreachable is why the node was not asked; all that follows is missing then.
	Unreachable string        `json:"unreachable,omitempty"`
	Leader      replog.NodeID `json:"leader"`
	Term        uint64        `json:"term,string"`
	Serves      bool          `json:"serves"`
	Head        uint64        `json:"head,string"`
	Behind      uint64        `json:"behind,string"`
	// SilentMS is for how long the leader was not heard, in milliseconds, 0 if the node leads, or has not heard one.
	SilentMS int64  `json:"silent_ms"`
	Stopped  string `json:"stopped,omitempty"`
	Full     string `json:"full,omitempty"`
	Failed   string `json:"failed,omitempty"`
	// HandedOver says that somebody wanted another node to lead, and neither this one nor the preferred one has since.
	HandedOver bool `json:"handed_over,omitempty"`
}

// StatusJSON is what a node answers about all: itself, in the first shard, and what it and the others say of each shard.
type StatusJSON struct {
	NodeJSON
	// Shards is how many there are.
	Shards  int        `json:"shards"`
	Members []NodeJSON `json:"members"`
}

// json returns the node's status as it is answered.
func (s *Shard) json() NodeJSON {
	now := s.Status()
	j := NodeJSON{
		Shard: now.Shard, HandedOver: now.HandedOver,
		Node: now.Node, Address: now.Peers[now.Node], Leader: now.Leader, Term: now.Term, Serves: now.Serves, Head: now.Head, Behind: now.Behind,
		Stopped: errorText(now.Stopped), Full: errorText(now.Full), Failed: errorText(now.Failed),
	}
	if !now.Heard.IsZero() && now.Term == 0 {
		j.SilentMS = time.Since(now.Heard).Milliseconds()
	}
	return j
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// askTime is how long another node may take to say where it stands.
const askTime = time.Second

// answerCluster tells where all nodes stand. Those that do not answer are told as such.
func (n *Node) answerCluster(w http.ResponseWriter, r *http.Request) {
	all := StatusJSON{NodeJSON: n.shards[0].json(), Shards: len(n.shards)}
	all.Members = slices.Concat(each(n, func(s *Shard) []NodeJSON { return s.members(r.Context()) })...)
	answer(w, &all)
}

// members tells where all nodes stand, in the order of their names.
func (s *Shard) members(ctx context.Context) []NodeJSON {
	all := append(s.askOthers(ctx), s.json())
	slices.SortFunc(all, func(a, b NodeJSON) int { return cmp.Compare(a.Node, b.Node) })
	best := s.preferred()
	for _, known := range s.part().log.Members() {
		for i := range all {
			if all[i].Node == known.Node {
				all[i].Votes, all[i].Preferred = known.Votes, known.Node == best
			}
		}
	}
	return all
}

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(value) // who does not listen any more is not told
}

// answerReady says whether this node can take requests: it leads and all partitions take events, or it knows who leads.
func (s *Shard) answerReady(w http.ResponseWriter, r *http.Request) {
	now, _ := s.part().leadership()
	reign, _ := s.now()
	switch {
	case reign != nil:
		reign.api.ServeHTTP(w, r)
	case s.node.serving.Err() != nil:
		httpapi.Refuse(w, r, storage.ErrClosed)
	case now.Stopped != nil:
		httpapi.Refuse(w, r, errors.Join(storage.ErrClosed, now.Stopped))
	case now.Leader == "" || now.Leader == s.o.Node:
		httpapi.Refuse(w, r, s.noQuorum())
	default:
		answer(w, map[string]string{"status": "ok"})
	}
}

// answerReady says whether this node can take requests, whatever their shard.
func (n *Node) answerReady(w http.ResponseWriter, r *http.Request) {
	for _, s := range n.shards[1:] {
		said := newRecorded()
		if s.answerReady(said, r); said.status != http.StatusOK {
			said.send(w)
			return
		}
	}
	n.shards[0].answerReady(w, r)
}

// answerStatuses tells of the actors here. Where the application does not run there are none.
func (n *Node) answerStatuses(w http.ResponseWriter, r *http.Request) {
	s, given, err := n.wanted(r)
	switch {
	case err != nil:
		httpapi.Refuse(w, r, err)
	case given:
		s.answerStatuses(w, without(r, paramShard))
	case len(n.shards) == 1:
		n.shards[0].answerStatuses(w, r)
	case httpapi.WantsStream(r):
		httpapi.Refuse(w, r, httpapi.Malformed(paramShard, fmt.Sprintf("it is missing: a stream is of one shard, 0 to %d", len(n.shards)-1)))
	default:
		answer(w, n.statuses())
	}
}

// shardStatus is what an actor of a shard does; what is no actor has none.
type shardStatus struct {
	httpapi.ActorStatus
	Shard *int `json:"shard,omitempty"`
}

// shardStatuses is [httpapi.Statuses] where there are several shards.
type shardStatuses struct {
	Application string        `json:"application"`
	Actors      []shardStatus `json:"actors"`
}

// statuses returns what all actors here do.
func (n *Node) statuses() *shardStatuses {
	all := &shardStatuses{Application: n.o.Application.Descriptor.Application, Actors: []shardStatus{}}
	for i, s := range n.shards {
		if reign, _ := s.now(); reign != nil {
			for _, a := range reign.app.Actors() {
				all.Actors = append(all.Actors, shardStatus{httpapi.NewActorStatus(&a), &i})
			}
		}
	}
	if others := n.o.HTTP.Others; others != nil {
		for _, o := range others() {
			all.Actors = append(all.Actors, shardStatus{ActorStatus: o})
		}
	}
	return all
}

// answerStatuses tells of the actors here. Where the application does not run there are none.
func (s *Shard) answerStatuses(w http.ResponseWriter, r *http.Request) {
	if reign, _ := s.now(); reign != nil {
		reign.api.ServeHTTP(w, r)
		return
	}
	all := httpapi.Statuses{Application: s.part().store.Descriptor().Application, Actors: []httpapi.ActorStatus{}}
	if others := s.o.HTTP.Others; others != nil {
		all.Actors = append(all.Actors, others()...)
	}
	answer(w, &all)
}
