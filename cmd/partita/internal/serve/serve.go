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
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/net/netutil"

	"github.com/partita-go/partita/httpapi"
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
// events are answered at once. Started is called when the server listens, with its URL and
// the name of the application. Notes gets a line for what goes wrong.
//
// It returns ErrConfig; the error of opening the store or of listening; ErrNotClean of
// package partition if not everything could be finished or flushed.
func Run(ctx context.Context, c Config, notes io.Writer, started func(url, application string)) (err error) {
	place, err := c.check()
	if err != nil {
		return err
	}
	store, err := bolt.OpenExisting(ctx, c.Dir, bolt.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, inTime(closeLimit, store.Close)) }()
	listener, err := net.ListenTCP("tcp", place.address)
	if err != nil {
		return err
	}
	s := &server{config: &c, place: place, listener: listener, logger: newLogger(notes), metrics: metrics.New(metrics.Options{})}
	defer s.closeListener()
	endDump, err := s.startDump()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, endDump()) }()
	return s.run(ctx, store, started)
}

// inTime calls what ends something, and gives it some time, whoever wants an end now.
func inTime(limit time.Duration, end func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return end(ctx)
}

func newLogger(w io.Writer) *zap.Logger {
	config := zap.NewProductionEncoderConfig()
	config.EncodeTime = zapcore.RFC3339TimeEncoder
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(config), zapcore.Lock(zapcore.AddSync(w)), zap.WarnLevel))
}

// server is an application that is served.
type server struct {
	config   *Config
	place    place
	listener net.Listener
	logger   *zap.Logger
	metrics  *metrics.Metrics
	// dumps is nil if nothing is dumped.
	dumps partition.Observer
	// maxHeader is how large the headers of a request may be, in bytes.
	maxHeader int
}

// closeListener is for a listener that nobody has come to serve.
func (s *server) closeListener() { _ = s.listener.Close() }

// run deploys the application, serves it, and undeploys it.
func (s *server) run(ctx context.Context, store *bolt.Store, started func(url, application string)) (err error) {
	system := actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
		// The throttle of dead letters keeps a goroutine for so long; nobody reads what it says.
		actor.WithDeadLetterThrottleInterval(time.Millisecond))
	defer system.Shutdown()
	parts := partition.NewAppParts(system, partition.Options{
		Logger: s.logger, Observer: partition.Observers(s.metrics, s.dumps), Traces: s.config.traces(),
	})
	defer func() { err = errors.Join(err, inTime(closeLimit, parts.Close)) }()
	app, err := parts.Deploy(ctx, partition.Application{Descriptor: store.Descriptor()}, store)
	if err != nil {
		return err
	}
	defer s.metrics.Watch(app, store)()
	api, err := httpapi.New(app, app.Reader(), s.config.options(s.logger))
	if err != nil {
		return err
	}
	s.maxHeader = maxHeader + 2*maxCursorShare*int(app.Partitions())
	started(s.url(), app.Name())
	return s.serve(ctx, api)
}

func (s *server) url() string {
	scheme := "http://"
	if s.place.tls != nil {
		scheme = "https://"
	}
	return scheme + s.listener.Addr().String()
}

// serve answers requests until ctx ends, and finishes those under way.
func (s *server) serve(ctx context.Context, api *httpapi.API) error {
	errorLog, err := zap.NewStdLogAt(s.logger, zap.WarnLevel)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           s.metrics.CountRequests(s.guard(s.withMetrics(api))),
		ConnState:         s.metrics.ConnState,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    s.maxHeader,
		Protocols:         new(http.Protocols),
		TLSConfig:         s.place.tls,
		ErrorLog:          errorLog,
	}
	// One request at a time on each connection: so the connections bound all of them.
	server.Protocols.SetHTTP1(true)
	ended := make(chan error, 1)
	go func() { ended <- s.accept(server) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	api.Stop()
	if err = inTime(requestsLimit, server.Shutdown); err != nil {
		err = errors.Join(partition.ErrNotClean, err, server.Close())
	}
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

func (s *server) accept(server *http.Server) error {
	listener := netutil.LimitListener(s.listener, s.config.Connections)
	if s.place.tls != nil {
		return server.ServeTLS(listener, "", "")
	}
	return server.Serve(listener)
}

// withMetrics answers who asks for /metrics; the API answers all others.
func (s *server) withMetrics(api http.Handler) http.Handler {
	page := s.metrics.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" || r.Method != http.MethodGet && r.Method != http.MethodHead {
			api.ServeHTTP(w, r)
			return
		}
		r.Pattern = "GET /metrics" // it counts by it
		page.ServeHTTP(w, r)
	})
}

// guard lets in those who may ask.
func (s *server) guard(next http.Handler) http.Handler {
	if s.config.Token == "" {
		return httpapi.OnlyLoopback(next)
	}
	return httpapi.RequireToken(next, s.config.Token)
}
