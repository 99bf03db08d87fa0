package cluster

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/replog"
)

// Status is what a node knows of itself and of the others.
type Status struct {
	Node replog.NodeID
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
}

// Status returns where this node stands.
func (s *Shard) Status() Status {
	now, _ := s.part().leadership()
	standing := s.part().log.Standing()
	reign, _ := s.now()
	s.mu.Lock()
	failed := s.failed
	s.mu.Unlock()
	all := Status{
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
	Node    replog.NodeID `json:"node"`
	Address string        `json:"address"`
	// Votes says that the node counts for a majority, as far as the node that was asked knows: one that was added does not yet,
	// one that was removed does not any more. It is told of members only.
	Votes bool `json:"votes"`
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
}

// StatusJSON is what a node answers about all: itself, and what the others answer.
type StatusJSON struct {
	NodeJSON
	Members []NodeJSON `json:"members"`
}

// json returns the node's status as it is answered.
func (s *Shard) json() NodeJSON {
	now := s.Status()
	j := NodeJSON{
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
func (s *Shard) answerCluster(w http.ResponseWriter, r *http.Request) {
	all := StatusJSON{NodeJSON: s.json(), Members: s.askOthers(r.Context())}
	all.Members = append(all.Members, all.NodeJSON)
	slices.SortFunc(all.Members, func(a, b NodeJSON) int { return cmp.Compare(a.Node, b.Node) })
	for _, known := range s.part().log.Members() {
		for i := range all.Members {
			if all.Members[i].Node == known.Node {
				all.Members[i].Votes = known.Votes
			}
		}
	}
	answer(w, &all)
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
