package metrics

import (
	"net/http"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/partita-go/partita/logs"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
)

// Options say what is told apart. The zero value is fine.
type Options struct {
	// Keys are the groups of actors of which each actor has series of its own, with the label actor_key: "partition",
	// "command-processor", "lane", or a kind of leaf. Default: none, since there may be many actors in a group.
	Keys []string
	// Logs are whose lines are counted. Default: none.
	Logs *logs.Logs
	// Connections is how many connections the HTTP server takes whose they are that [Metrics.ConnState] counts. Default: it
	// is not told.
	Connections int
}

// Metrics collects all that there is to tell. It is a [prometheus.Collector] to be registered, and a
// [partition.Observer]. It is safe for concurrent use.
type Metrics struct {
	options  Options // its Keys are guarded by mu
	handling *prometheus.HistogramVec
	waiting  *prometheus.HistogramVec
	http     httpMetrics

	mu      sync.Mutex
	groups  map[partition.ActorKey]*group
	actors  int
	watched []*source
	dumps   []*Dumps
	upkeep  Upkeep
	node    []func() Node
	// failures counts what could not be looked up.
	failures prometheus.Counter
}

var (
	_ prometheus.Collector    = (*Metrics)(nil)
	_ partition.KeyedObserver = (*Metrics)(nil)
)

// New returns metrics of nothing yet. Give it to partition.NewAppParts as the observer, and to Watch what was deployed.
func New(o Options) *Metrics {
	o.Keys = slices.Clone(o.Keys)
	return &Metrics{
		options:  o,
		groups:   make(map[partition.ActorKey]*group),
		handling: newHandling(),
		waiting:  newWaiting(),
		http:     newHTTPMetrics(o.Connections),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "partita_collection_failures_total", Help: "What could not be looked up for the metrics.",
		}),
	}
}

// App is what is to be known of a deployed application; a [partition.App] is one.
type App interface {
	Name() string
	Status() []partition.Status
	Actors() []partition.ActorStatus
	Figures() partition.AppFigures
	SubscriptionAdmin() *partition.SubscriptionAdmin
}

// source is an application, and its store if that can tell.
type source struct {
	app   App
	store storage.Measured
}

// Watch tells about an application from now on, and about its store, which may be nil, until forget is called, which is
// harmless when called again. No two applications that are watched may have the same name.
func (m *Metrics) Watch(app App, store storage.Measured) (forget func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &source{app, store}
	m.watched = append(m.watched, s)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.watched = slices.DeleteFunc(m.watched, func(o *source) bool { return o == s })
	}
}

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range descs {
		to <- d
	}
	m.handling.Describe(to)
	m.waiting.Describe(to)
	m.http.Describe(to)
	m.failures.Describe(to)
}

// Collect implements [prometheus.Collector]. It asks no actor.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	m.mu.Lock()
	watched, dumps, keys, upkeep, node := slices.Clone(m.watched), slices.Clone(m.dumps), m.options.Keys, m.upkeep, m.node
	groups := make([]*group, 0, len(m.groups))
	for _, g := range m.groups {
		groups = append(groups, g)
	}
	m.mu.Unlock()
	collectGroups(to, groups)
	collectDumps(to, dumps)
	collectUpkeep(to, upkeep)
	collectNode(to, node)
	m.handling.Collect(to)
	m.waiting.Collect(to)
	states := map[string]*states{partitionGroup: {}}
	for _, s := range watched {
		c := collection{source: s, to: to, keys: keys, failed: m.failures.Inc, states: states}
		c.collect()
	}
	for group, counted := range states {
		for s, n := range counted {
			to <- prometheus.MustNewConstMetric(activeActors, prometheus.GaugeValue, float64(n), group, messages.ActorState(s).String())
		}
	}
	m.http.Collect(to)
	collectLogs(to, m.options.Logs)
	m.failures.Collect(to)
}

// askedAtOnce is how many may ask for the metrics at the same time.
const askedAtOnce = 4

// Handler returns a handler that answers with these metrics, and with those of the Go runtime and of the process.
// Whoever has a registry of his own registers m there instead.
func (m *Metrics) Handler() http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(m, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: askedAtOnce, EnableOpenMetrics: true})
}
