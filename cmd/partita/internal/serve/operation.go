package serve

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/dumps"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
)

// OperationsPath is what the path of every operation begins with.
const OperationsPath = "/v1/store/"

// ServerOperation is the name of the operation that tells which process serves the store.
const ServerOperation = "server"

// Served says which process serves a store, and where.
type Served struct {
	URL string `json:"url"`
	PID int    `json:"pid"`
}

// ErrorTrailer is the trailer of a stream that is not whole: it says why.
const ErrorTrailer = "Partita-Error"

// acceptLimit is how long a client may take to accept what an operation writes at a time.
const acceptLimit = 30 * time.Second

// Operation is something that an operator asks of a store that is open. It changes nothing in the store.
type Operation struct {
	// Name is the last part of its path.
	Name string
	// Method is GET if it is "".
	Method string
	// Answer returns a value, which is answered as JSON.
	Answer func(ctx context.Context, query url.Values) (any, error)
	// Stream writes what is answered instead, of a content type, until it is done or ctx ends. What it has written is
	// sent when it calls flush.
	Stream      func(ctx context.Context, query url.Values, w io.Writer, flush func() error) error
	ContentType string
}

// operations answers those who ask for one of them.
type operations struct {
	dir    string
	logger *zap.Logger
	// stopping ends when streams have to.
	stopping context.Context
	// all are those on a store: when it is another one, they are made anew.
	mu    sync.Mutex
	store *bolt.Store
	all   map[string]Operation
	// streams has room for those that may be under way.
	streams chan struct{}
}

// errStopping is why a stream ends that has no end.
var errStopping = errors.New("the server is stopping")

// serving tells which process serves the store.
func (s *server) serving() Operation {
	return Operation{Name: ServerOperation, Answer: func(_ context.Context, q url.Values) (any, error) {
		if len(q) > 0 {
			return nil, cli.WrongUsage("got %d parameters, want none", len(q))
		}
		return Served{URL: s.url(), PID: os.Getpid()}, nil
	}}
}

// forShard lets the operations of a handler be those on the store of a shard.
func forShard(handler http.Handler, shard int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), shardKey{}, shard)))
	})
}

// shardKey is that of the shard in a context.
type shardKey struct{}

// paramShard names the shard on whose store an operation is, if there are several.
const paramShard = "shard"

// shardOf returns the shard on whose store an operation is, and the request without that.
func shardOf(r *http.Request, shards int, name string) (int, *http.Request, error) {
	if shard, ok := r.Context().Value(shardKey{}).(int); ok {
		return shard, r, nil
	}
	query := r.URL.Query()
	if shards == 1 || !query.Has(paramShard) && (name == ServerOperation || name == ReopenDump) {
		return 0, r, nil
	}
	shard, err := strconv.Atoi(query.Get(paramShard))
	if err != nil || shard < 0 || shard >= shards {
		return 0, r, cli.WrongUsage("%s: got %.40q, want one of the %d stores here: 0 to %d", paramShard, query.Get(paramShard), shards, shards-1)
	}
	query.Del(paramShard)
	r = r.Clone(r.Context())
	r.URL.RawQuery = query.Encode()
	return shard, r, nil
}

// withOperations answers whoever asks for an operation; the API answers all others.
func (s *server) withOperations(stopping context.Context, stores []shardStore, api http.Handler) http.Handler {
	streams := make(chan struct{}, max(1, s.config.Connections/8))
	all := make([]*operations, len(stores))
	for i := range all {
		all[i] = &operations{dir: stores[i].dir, logger: s.logger.Named("serve"), stopping: stopping, streams: streams}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, under := strings.CutPrefix(r.URL.Path, OperationsPath)
		if !under {
			api.ServeHTTP(w, r)
			return
		}
		shard, asked, err := shardOf(r, len(stores), name)
		o := all[shard]
		operation, there := s.operation(o, name, stores[shard].of())
		switch {
		case !there:
			api.ServeHTTP(w, r)
		case r.Method == operation.Method && r.Method != http.MethodGet && !isJSON(r):
			r.Pattern = operation.Method + " " + OperationsPath + name
			// Without it any web page could ask: a browser asks first whether a page may send JSON.
			problem(w, "http.md#wrong-type", http.StatusUnsupportedMediaType, "The body is not JSON", wantJSON)
		case r.Method != operation.Method:
			w.Header().Set("Allow", operation.Method)
			problem(w, "http.md#wrong-method", http.StatusMethodNotAllowed, "The path does not have this method", "the method of this path is "+operation.Method)
		default:
			r.Pattern = operation.Method + " " + OperationsPath + name // it counts by it
			if err != nil {
				o.fail(w, r, err)
				return
			}
			o.serve(w, asked, operation)
		}
	})
}

// operation returns the operation of a name, on the store of now.
func (s *server) operation(o *operations, name string, store *bolt.Store) (operation Operation, there bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.store != store {
		all := []Operation{s.reopening(), s.serving()}
		if s.config.Operations != nil {
			all = append(all, s.config.Operations(o.dir, store)...)
		}
		o.store, o.all = store, make(map[string]Operation)
		for _, operation := range all {
			operation.Method = cmp.Or(operation.Method, http.MethodGet)
			o.all[operation.Name] = operation
		}
	}
	operation, there = o.all[name]
	return operation, there
}

func (o *operations) serve(w http.ResponseWriter, r *http.Request, operation Operation) {
	if operation.Stream != nil {
		o.stream(w, r, operation)
		return
	}
	value, err := operation.Answer(r.Context(), r.URL.Query())
	if err != nil {
		o.fail(w, r, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	answer(w, http.StatusOK, "application/json", value)
}

// stream answers with what an operation writes. An error before the first of it is a problem, a later one a trailer.
func (o *operations) stream(w http.ResponseWriter, r *http.Request, operation Operation) {
	select {
	case o.streams <- struct{}{}:
		defer func() { <-o.streams }()
	default:
		w.Header().Set("Retry-After", "1")
		problem(w, "http.md#too-many-readers", http.StatusServiceUnavailable, "Too many readers wait already", "too many operations are under way")
		return
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(o.stopping, func() { cancel(errStopping) })()
	out := &accepting{w: w, control: http.NewResponseController(w), begin: func(h http.Header) {
		h.Set("Content-Type", operation.ContentType)
		h.Set("Cache-Control", "no-store")
		h.Set("Trailer", ErrorTrailer)
	}}
	err := operation.Stream(ctx, r.URL.Query(), out, out.flush)
	if err != nil && errors.Is(context.Cause(ctx), errStopping) {
		err = errStopping
	}
	switch {
	case err == nil:
		_ = out.flush() // whoever has gone needs nothing
	case !out.begun:
		o.fail(w, r, err)
	default:
		o.tell(r, err)
		w.Header().Set(ErrorTrailer, inLine(err))
	}
}

// fail answers with a problem.
func (o *operations) fail(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, cli.ErrUsage):
		problem(w, "http.md#malformed", http.StatusBadRequest, "The request cannot be understood", inLine(err))
	case errors.Is(err, partition.ErrNoEvent), errors.Is(err, errNoDump):
		problem(w, "http.md#not-found", http.StatusNotFound, "There is no such thing", inLine(err))
	case errors.Is(err, dumps.ErrFile):
		problem(w, "dumps.md#rotation", http.StatusConflict, "The dump cannot be opened anew", inLine(err))
	case errors.Is(err, errDumpHangs):
		w.Header().Set("Retry-After", "30")
		problem(w, "dumps.md#rotation", http.StatusServiceUnavailable, "The dump cannot be opened anew", inLine(err))
	case errors.Is(err, storage.ErrClosed), errors.Is(err, errStopping):
		w.Header().Set("Retry-After", "30")
		problem(w, "http.md#unavailable", http.StatusServiceUnavailable, "The store cannot be used", inLine(err))
	default:
		o.tell(r, err)
		problem(w, "http.md#internal", http.StatusInternalServerError, "The server has failed", inLine(err))
	}
}

// tell logs why an operation has failed, unless it is that the client has gone, or the server goes.
func (o *operations) tell(r *http.Request, err error) {
	if r.Context().Err() == nil && !errors.Is(err, errStopping) {
		o.logger.Error("an operation has failed", zap.String("path", r.URL.Path), zap.Error(err))
	}
}

// accepting gives the client time to accept what is written.
type accepting struct {
	w       http.ResponseWriter
	control *http.ResponseController
	begin   func(http.Header)
	begun   bool
}

func (a *accepting) Write(b []byte) (int, error) {
	a.start()
	return a.w.Write(b)
}

func (a *accepting) start() {
	_ = a.control.SetWriteDeadline(time.Now().Add(acceptLimit))
	if !a.begun {
		a.begun = true
		a.begin(a.w.Header())
	}
}

func (a *accepting) flush() error {
	a.start()
	return a.control.Flush()
}
