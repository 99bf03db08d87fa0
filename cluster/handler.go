package cluster

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/messages"
)

// Paths that each node answers for itself.
const (
	clusterPath  = "/v1/cluster"
	transferPath = clusterPath + "/transfer"
	seedPath     = clusterPath + "/seed"
	positionPath = clusterPath + "/position"
	endsPath     = clusterPath + "/ends"
	comparePath  = clusterPath + "/compare"
	addPath      = clusterPath + "/add"
	removePath   = clusterPath + "/remove"
	statusPath   = "/v1/status"
	readyPath    = "/readyz"
)

// Handler returns what answers requests over HTTP: that of package httpapi, at any node. Appends, subscriptions and reads of
// what anybody was told go to the owner; reads with consistency=local or at_least are answered here, and so are /healthz,
// /readyz, /v1/status and /v1/cluster, which are about this node. What is about all shards, if there are several, all owners
// answer together.
func (n *Node) Handler() http.Handler { return n.handler }

func (n *Node) newHandler() http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/healthz", "/v1/openapi.json", "/{$}"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { n.local().ServeHTTP(w, r) })
	}
	mux.HandleFunc("GET "+readyPath, n.answerReady)
	mux.HandleFunc("GET "+statusPath, n.answerStatuses)
	mux.HandleFunc("GET "+clusterPath, n.answerCluster)
	mux.HandleFunc("GET "+comparePath, n.answerCompare)
	for path, change := range changes {
		mux.HandleFunc("POST "+path, n.answerChange(change))
	}
	mux.HandleFunc("/", n.route)
	return mux
}

// route answers with what this node has, if that is asked for, else as the owner does.
func (n *Node) route(w http.ResponseWriter, r *http.Request) {
	if isForPeers(r.URL.Path) || r.URL.Path == readyPath || r.URL.Path == clusterPath {
		n.local().ServeHTTP(w, r) // it does not have that, or not with this method
		return
	}
	if isRead(r) {
		if query, err := url.ParseQuery(r.URL.RawQuery); err == nil && httpapi.ReadsLocally(query) {
			n.local().ServeHTTP(w, r)
			return
		}
	}
	if s, one := n.meant(r.URL.Path); one {
		s.forward(w, r)
		return
	}
	n.answerForAll(w, r)
}

// meant returns the shard that a path is about: the first one, if any can answer, or there is no such path. It reports whether
// it is about one: else it is about all.
func (n *Node) meant(path string) (s *Shard, one bool) {
	if p, is := n.partitionIn(path); is {
		return n.ShardOf(p), true
	}
	if kind, more := kindOf(path); kind == "subscriptions" || !more && (kind == "partitions" || kind == "log") {
		return n.shards[0], len(n.shards) == 1
	}
	return n.shards[0], true
}

// partitionIn returns the partition that a path is about.
func (n *Node) partitionIn(path string) (p messages.PartitionID, is bool) {
	all := strings.SplitN(path, "/", 5)
	if len(all) < 4 || all[1] != "v1" {
		return 0, false
	}
	switch all[2] {
	case "workspaces":
		ws, err := messages.ParseWSID(all[3])
		return messages.PartitionOf(ws, n.o.Application.Descriptor.Partitions), err == nil
	case "partitions":
		p, err := messages.ParsePartitionID(all[3])
		return p, err == nil
	}
	return 0, false
}

// kindOf returns what a path is about, and whether it says more.
func kindOf(path string) (kind string, more bool) {
	kind, _, more = strings.Cut(strings.TrimPrefix(path, "/v1/"), "/")
	return kind, more
}

// isForPeers reports whether only other nodes may ask for a path, through the port of the log.
func isForPeers(path string) bool {
	return path == seedPath || path == positionPath || path == endsPath || path == generatorPath ||
		path == ownPrefix || strings.HasPrefix(path, ownPrefix+"/")
}

func isRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }
