// Package serve runs the application of a store and serves it over HTTP, until it is told
// to stop.
package serve

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"
	"golang.org/x/net/netutil"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/logs"
	"github.com/partita-go/partita/metrics"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

// What a client may take of the server before it has asked for anything.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 32 << 10
	// maxCursorShare is what the text of a feed's cursor needs for one partition. A request
	// may have two of them: where it began, and how far it has come.
	maxCursorShare = 14
)

// How long the steps of a stop may take: requests first, then the application and the store.
const (
	requestsLimit = 30 * time.Second
	closeLimit    = 40 * time.Second
)

// Run serves the application that a store holds, and returns when ctx has ended and
// everything is stopped and closed: requests under way are finished, those that wait for
// events are answered at once. While the store is being opened the server says that it lives, and
// how far it is. Started is called when that is done, with the server's URL and
// the name of the application. Notes gets a line for what goes wrong.
//
// It returns ErrConfig; the error of opening the store or of listening; ErrNotClean of
// package partition if not everything could be finished or flushed.
func Run(ctx context.Context, c Config, notes io.Writer, started func(url, application string)) (err error) {
	place, err := c.check()
	if err != nil {
		return err
	}
	damage := new(damage)
	l, err := c.newLogs(notes, damage)
	if err != nil {
		return err
	}
	defer func() { _ = l.Sync() }() // a terminal cannot be synced
	listener, err := net.ListenTCP("tcp", place.address)
	if err != nil {
		return err
	}
	s := &server{
		config: &c, listener: listener, logs: l, logger: zap.New(l), metrics: metrics.New(metrics.Options{Keys: c.Keys, Logs: l, Connections: c.Connections}),
		damage: damage,
	}
	s.secrets.Store(&place.secrets)
	defer s.closeListener()
	endDump, err := s.startDump()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, endDump()) }()
	opening, err := s.startOpening()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opening.end()) }()
	if c.Node.Name != "" {
		return s.runNode(ctx, &place, opening, started)
	}
	store, err := opening.open(ctx, &c, place.descriptor)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	defer func() { err = errors.Join(err, inTime(closeLimit, store.Close)) }()
	return s.run(ctx, store, opening.handOver, started)
}

// unlessStopped returns an error of a start, nil if it is that somebody wants an end: nothing was begun that had to be ended.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// inTime calls what ends something, and gives it some time, whoever wants an end now.
func inTime(limit time.Duration, end func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return end(ctx)
}

// server is an application that is served.
type server struct {
	config   *Config
	listener *net.TCPListener
	// secrets are those of now.
	secrets atomic.Pointer[secrets]
	logs    *logs.Logs
	logger  *zap.Logger
	metrics *metrics.Metrics
	dumps   *dumping
	// damage is what was found damaged, scrubs are what looks for it.
	damage *damage
	scrubs atomic.Pointer[scrubber]
}

// closeListener is for a listener that nobody has come to serve.
func (s *server) closeListener() { _ = s.listener.Close() }

// run deploys the application, serves it when handOver has given it the listener, and undeploys it.
func (s *server) run(ctx context.Context, store *bolt.Store, handOver func() error, started func(url, application string)) (err error) {
	system := actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
		// The throttle of dead letters keeps a goroutine for so long; nobody reads what it says.
		actor.WithDeadLetterThrottleInterval(time.Millisecond))
	defer system.Shutdown()
	parts := partition.NewAppParts(system, s.runtime())
	defer func() { err = errors.Join(err, inTime(closeLimit, parts.Close)) }()
	app, err := parts.Deploy(ctx, s.config.application(store.Descriptor()), store)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	defer s.metrics.Watch(app, store)()
	api, err := httpapi.New(app, app.Reader(), s.options())
	if err != nil {
		return err
	}
	return s.serveStore(ctx, &served{
		name: app.Name(), partitions: app.Partitions(), stores: []shardStore{{s.config.StoreDir(), func() *bolt.Store { return store }}}, handler: api, configure: app.Configure, setTraces: parts.SetTraces, ready: app.Ready,
		status: func() string { return statusOf(app) }, stop: api.Stop,
	}, handOver, started)
}

// runtime is what applications run with.
func (s *server) runtime() partition.Options {
	return partition.Options{
		Logger: s.logger, Observer: partition.Observers(s.metrics, s.dumps), Traces: s.config.traces(),
		AlarmAfter: s.config.AlarmAfter, RestartDelay: s.config.RestartDelay, Restarts: s.config.Restarts,
	}
}

// shardStore is a store and where it is.
type shardStore struct {
	dir string
	// of returns the store: that of a node may be another one later.
	of func() *bolt.Store
}

// served is what is served: an application that runs here, or a node of several.
type served struct {
	name       string
	partitions uint32
	// stores are that of the application: of a node several, one for each shard.
	stores    []shardStore
	handler   http.Handler
	configure func(context.Context, partition.Config) error
	setTraces func(*ids.TraceGenerator)
	// ready waits until it can take requests, status says in a line what it does.
	ready  func(context.Context) error
	status func() string
	// stop ends what waits.
	stop func()
}

// options are those of the API. What is no actor is told when it is there.
func (s *server) options() httpapi.Options {
	o := s.config.options(s.logger)
	o.Others = func() []httpapi.ActorStatus { return append(s.damage.statuses(), s.scrubs.Load().statuses()...) }
	return o
}

// serveStore serves what there is, when handOver has given it the listener, until ctx ends.
func (s *server) serveStore(ctx context.Context, own *served, handOver func() error, started func(url, application string)) (err error) {
	scrubs, endScrubs := s.startScrubbing(own.stores)
	defer endScrubs()
	s.scrubs.Store(scrubs)
	s.metrics.WatchUpkeep(upkeep{s.damage, scrubs})
	l := s.live(own)
	defer s.heed(l)()
	operating, endOperating := context.WithCancel(context.Background())
	defer endOperating()
	handler := s.withMetrics(s.withConfig(l, s.withOperations(operating, own.stores, own.handler)))
	fronts, closeFronts, err := s.fronts(handler, own.stores, maxHeader+2*maxCursorShare*int(own.partitions))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeFronts()) }()
	if err := handOver(); err != nil {
		return err
	}
	started(s.url(), own.name)
	defer s.startNotifying(ctx, own)()
	return s.serve(ctx, fronts, func() {
		own.stop()
		endOperating()
	})
}

// front is a server and what it listens to.
type front struct {
	server *http.Server
	accept func(*http.Server) error
}

// fronts returns the servers of a handler: for those who may ask over the net, and for the operator, who has the
// socket of each store. Headers of a request may have so many bytes.
func (s *server) fronts(handler http.Handler, stores []shardStore, headers int) (all []front, end func() error, err error) {
	var ends []func() error
	end = func() error {
		var errs []error
		for _, remove := range ends {
			errs = append(errs, remove())
		}
		return errors.Join(errs...)
	}
	open, err := s.newServer(s.guard(handler), headers)
	if err != nil {
		return nil, end, err
	}
	all = []front{{open, func(server *http.Server) error { return s.accept(server, s.limit(s.listener)) }}}
	for i, store := range stores {
		socket := s.startSocket(store.dir)
		if socket == nil {
			continue
		}
		own, err := s.newServer(forShard(handler, i), headers)
		if err != nil {
			return nil, end, errors.Join(err, socket.remove())
		}
		own.ConnState = nil // these connections are not of those that are bounded
		all = append(all, front{own, func(server *http.Server) error { return server.Serve(socket) }})
		ends = append(ends, socket.remove)
	}
	return all, end, nil
}

func (s *server) url() string {
	scheme := "http://"
	if s.secrets.Load().certificate != nil {
		scheme = "https://"
	}
	return scheme + s.listener.Addr().String()
}

// newServer returns a server of a handler. Headers of a request may have so many bytes.
func (s *server) newServer(handler http.Handler, headers int) (*http.Server, error) {
	errorLog, err := zap.NewStdLogAt(s.logger.Named("http"), zap.WarnLevel)
	if err != nil {
		return nil, err
	}
	server := &http.Server{
		Handler:           s.metrics.CountRequests(handler),
		ConnState:         s.metrics.ConnState,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headers,
		Protocols:         new(http.Protocols),
		TLSConfig:         s.tlsConfig(),
		ErrorLog:          errorLog,
	}
	// One request at a time on each connection: so the connections bound all of them.
	server.Protocols.SetHTTP1(true)
	return server, nil
}

// serve answers requests until ctx ends, and finishes those under way.
func (s *server) serve(ctx context.Context, fronts []front, stop func()) error {
	ended := make(chan error, len(fronts))
	for _, f := range fronts {
		go func() { ended <- f.accept(f.server) }()
	}
	running := len(fronts)
	var failed error
	select {
	case failed = <-ended:
		running--
	case <-ctx.Done():
	}
	stop()
	err := inTime(requestsLimit, func(ctx context.Context) error { return shutDown(ctx, fronts) })
	for range running {
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
	}
	return errors.Join(failed, err)
}

// shutDown lets servers finish the requests under way, those of all at the same time.
func shutDown(ctx context.Context, fronts []front) error {
	var all sync.WaitGroup
	errs := make([]error, len(fronts))
	for i, f := range fronts {
		all.Go(func() {
			if err := f.server.Shutdown(ctx); err != nil {
				errs[i] = errors.Join(partition.ErrNotClean, err, f.server.Close())
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// limit bounds the connections.
func (s *server) limit(l net.Listener) net.Listener {
	return netutil.LimitListener(l, s.config.Connections)
}

func (s *server) accept(server *http.Server, listener net.Listener) error {
	if server.TLSConfig != nil {
		return server.ServeTLS(listener, "", "")
	}
	return server.Serve(listener)
}

// withMetrics answers whoever asks for /metrics; the API answers all others.
func (s *server) withMetrics(api http.Handler) http.Handler {
	page := s.metrics.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/metrics":
			api.ServeHTTP(w, r)
		case r.Method == http.MethodGet || r.Method == http.MethodHead:
			r.Pattern = "GET /metrics" // it counts by it
			page.ServeHTTP(w, r)
		default:
			r.Pattern = "/metrics"
			tellMethods(w, r, "GET, HEAD, OPTIONS")
		}
	})
}

// guard lets in those who may ask. A browser asks without a token whether a page may.
func (s *server) guard(next http.Handler) http.Handler {
	if s.secrets.Load().token == "" {
		return allowOrigins(httpapi.OnlyLoopback(next), s.config.Origins)
	}
	return allowOrigins(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpapi.RequireToken(next, s.secrets.Load().token).ServeHTTP(w, r)
	}), s.config.Origins)
}
