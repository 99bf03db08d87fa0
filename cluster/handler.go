package cluster

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/partita-go/partita/httpapi"
)

// Paths that each node answers for itself.
const (
	clusterPath  = "/v1/cluster"
	transferPath = clusterPath + "/transfer"
	seedPath     = clusterPath + "/seed"
	positionPath = clusterPath + "/position"
	comparePath  = clusterPath + "/compare"
	addPath      = clusterPath + "/add"
	removePath   = clusterPath + "/remove"
	statusPath   = "/v1/status"
	readyPath    = "/readyz"
)

// Handler returns what answers requests over HTTP: that of package httpapi, at any node. Appends, subscriptions and reads of
// what anybody was told go to the owner; reads with consistency=local or at_least are answered here, and so are /healthz,
// /readyz, /v1/status and /v1/cluster, which are about this node.
func (n *Node) Handler() http.Handler { return n.handler }

func (n *Node) newHandler() http.Handler {
	s := n.shards[0]
	mux := http.NewServeMux()
	for _, path := range []string{"/healthz", "/v1/openapi.json", "/{$}"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { s.part().api.ServeHTTP(w, r) })
	}
	mux.HandleFunc("GET "+readyPath, s.answerReady)
	mux.HandleFunc("GET "+statusPath, s.answerStatuses)
	mux.HandleFunc("GET "+clusterPath, s.answerCluster)
	mux.HandleFunc("GET "+comparePath, s.answerCompare)
	for path, change := range s.changes() {
		mux.HandleFunc("POST "+path, s.answerChange(change))
	}
	mux.HandleFunc("/", s.route)
	return mux
}

// route answers with what this node has, if that is asked for, else as the owner does.
func (s *Shard) route(w http.ResponseWriter, r *http.Request) {
	if isForPeers(r.URL.Path) || r.URL.Path == readyPath {
		s.part().api.ServeHTTP(w, r) // it does not have that, or not with this method
		return
	}
	if isRead(r) {
		if query, err := url.ParseQuery(r.URL.RawQuery); err == nil && httpapi.ReadsLocally(query) {
			s.part().api.ServeHTTP(w, r)
			return
		}
	}
	s.forward(w, r)
}

// isForPeers reports whether only other nodes may ask for a path, through the port of the log.
func isForPeers(path string) bool {
	return path == seedPath || path == ownPrefix || strings.HasPrefix(path, ownPrefix+"/")
}

func isRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }
