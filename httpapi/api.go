package httpapi

import (
	"context"
	_ "embed"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// API is an http.Handler that serves one application. It is safe for concurrent use.
type API struct {
	app           *partition.App
	reader        *partition.Reader
	subscriptions *partition.SubscriptionAdmin
	descriptor    messages.Descriptor
	printer       messages.Printer
	options       Options
	mux           *http.ServeMux
	polls         slots
	streams       slots

	// stopping ends with Stop.
	stopping context.Context
	stop     context.CancelFunc
}

// New returns the API of a deployed application, which reads with a reader of its store.
// It returns ErrOptions if an option is wrong.
func New(app *partition.App, reader *partition.Reader, o Options) (*API, error) {
	a, err := newAPI(reader, o)
	if err != nil {
		return nil, err
	}
	a.app, a.subscriptions = app, app.SubscriptionAdmin()
	a.register(a.routes())
	return a, nil
}

// Stop ends long polls, with an empty page, streams, and changes of subscriptions that wait
// for a handler, and makes /readyz say that the server is not ready. All other requests are
// served as before. It does not wait: that is what http.Server's Shutdown does.
func (a *API) Stop() { a.stop() }

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// As the mux would redirect it. The name of a subscription may have slashes and dots.
	if p := r.URL.EscapedPath(); !strings.HasPrefix(p, "/") || path.Clean(p) != p {
		a.serve(w, r, route{handle: nowhere})
		return
	}
	a.mux.ServeHTTP(w, r)
}

// route is an operation: a method of a path.
type route struct {
	method, path string
	handle       func(*call) error
	// query are the parameters that it knows.
	query []string
	// anywhere says that it needs neither the application nor its store.
	anywhere bool
}

const (
	paramAfter = "after"
	paramFrom  = "from"
	paramTo    = "to"
	paramLimit = "limit"
	paramWait  = "wait"
)

func (a *API) routes() []route {
	offsets := []string{paramConsistency, paramAtLeast}
	logQuery := append([]string{paramAfter, paramLimit, paramWait}, offsets...)
	pageQuery := []string{paramAfter, paramLimit}
	recordsQuery := append([]string{paramFrom, paramTo, paramLimit}, offsets...)
	s := a.subscriptions
	return []route{
		{http.MethodPost, "/v1/workspaces/{wsid}/events", a.appendEvent, nil, false},
		{http.MethodGet, "/v1/workspaces/{wsid}/events/{offset}", a.ofWorkspace(a.workspaceEvent), offsets, false},
		{http.MethodGet, "/v1/workspaces/{wsid}/log", a.ofWorkspace(a.workspaceLog), logQuery, false},
		{http.MethodGet, "/v1/workspaces/{wsid}/numbers", a.ofWorkspace(a.numbers), offsets, false},
		{http.MethodGet, "/v1/workspaces/{wsid}/records/{sequence}", a.ofWorkspace(a.records), recordsQuery, false},
		{http.MethodGet, "/v1/workspaces/{wsid}/records/{sequence}/{number}", a.ofWorkspace(a.record), offsets, false},
		{http.MethodGet, "/v1/application", a.application, nil, false},
		{http.MethodGet, "/v1/status", a.statuses, nil, false},
		{http.MethodGet, "/v1/partitions", a.partitions, nil, false},
		{http.MethodGet, "/v1/partitions/{id}", a.partition, nil, false},
		{http.MethodGet, "/v1/partitions/{id}/events/{offset}", a.ofPartition(a.partitionEvent), offsets, false},
		{http.MethodGet, "/v1/partitions/{id}/log", a.ofPartition(a.partitionLog), logQuery, false},
		{http.MethodGet, "/v1/log", ofAll(a.applicationLog), []string{paramAfter, paramLimit, paramWait, paramConsistency}, false},
		{http.MethodGet, "/v1/subscriptions", a.listSubscriptions, pageQuery, false},
		{http.MethodGet, "/v1/subscriptions/{name}", a.subscriptionStatus, nil, false},
		{http.MethodDelete, "/v1/subscriptions/{name}", a.deleteSubscription, nil, false},
		{http.MethodPost, "/v1/subscriptions/{name}/pause", plainly(s.Pause), nil, false},
		{http.MethodPost, "/v1/subscriptions/{name}/resume", plainly(s.Resume), nil, false},
		{http.MethodPost, "/v1/subscriptions/{name}/skip", plainly(s.SkipToEnd), nil, false},
		{http.MethodPost, "/v1/subscriptions/{name}/rewind", eventChange(a.rewind), nil, false},
		{http.MethodGet, "/v1/subscriptions/{name}/parked", a.parked, pageQuery, false},
		{http.MethodPost, "/v1/subscriptions/{name}/replay", eventChange(s.Replay), nil, false},
		{http.MethodPost, "/v1/subscriptions/{name}/drop", eventChange(s.Drop), nil, false},
		{http.MethodGet, "/v1/openapi.json", a.document, nil, true},
		{http.MethodGet, "/{$}", a.document, nil, true},
		{http.MethodGet, "/healthz", a.healthy, nil, true},
		{http.MethodGet, "/readyz", a.ready, nil, false},
	}
}

func (a *API) register(routes []route) {
	methods := make(map[string][]string)
	handle := func(pattern string, to route) {
		a.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, to) })
	}
	for _, to := range routes {
		handle(to.method+" "+to.path, to)
		methods[to.path] = append(methods[to.path], to.method)
	}
	for path, allowed := range methods {
		if slices.Contains(allowed, http.MethodGet) {
			allowed = append(allowed, http.MethodHead) // as the mux has it
		}
		handle(path, route{handle: onlyWith(allowed)})
	}
	handle("/", route{handle: nowhere})
}

func nowhere(c *call) error {
	return &problem{kind: notFound, detail: "there is nothing at this path"}
}

func onlyWith(methods []string) func(*call) error {
	allow := strings.Join(append(methods, http.MethodOptions), ", ")
	return func(c *call) error {
		c.w.Header().Set("Allow", allow)
		if c.r.Method == http.MethodOptions {
			c.w.WriteHeader(http.StatusNoContent)
			return nil
		}
		return &problem{kind: wrongMethod, detail: "the methods of this path are " + allow}
	}
}

//go:embed openapi.json
var openAPI []byte

func (a *API) document(c *call) error { return c.send(http.StatusOK, jsonType, openAPI) }

// slots bound how many requests do something at the same time.
type slots chan struct{}

// take reports whether there was one; free gives it back.
func (s slots) take() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s slots) free() { <-s }
