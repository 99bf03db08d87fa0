package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt"
)

// A store that was not closed, or whose state.db is gone, takes long to open. Meanwhile the server answers already:
// that it lives, and how far it is. Only then is it known what there is to serve, and so another http.Server serves it:
// how large the headers of a request may be depends on it.

// opening is a server whose store is being opened.
type opening struct {
	logger  *zap.Logger
	manager manager
	// now is what it does, told when the service manager was told last.
	now  atomic.Pointer[string]
	told time.Time
	// rebuilding is when that began, zero if nothing is rebuilt.
	rebuilding time.Time
	// handOver lets the next server have the listener. Whoever has connected already is still told that the server is
	// not ready: http.Server.Shutdown would answer nothing. end ends that, too.
	handOver, end func() error
}

// startOpening answers requests until what it returns is ended.
func (s *server) startOpening() (*opening, error) {
	o := &opening{logger: s.logger.Named("serve"), manager: manager{s.logger}}
	o.does("opening the store")
	server, err := s.newServer(s.guard(httpapi.NotReady(func() string { return *o.now.Load() })), maxHeader)
	if err != nil {
		return nil, err
	}
	server.SetKeepAlivesEnabled(false) // another one answers the next request
	lent := &lent{TCPListener: s.listener}
	limited := s.limit(lent)
	ended := make(chan error, 1)
	go func() { ended <- s.accept(server, limited) }()
	o.handOver = sync.OnceValue(func() error {
		err := limited.Close()
		if served := <-ended; !errors.Is(served, net.ErrClosed) {
			err = errors.Join(err, served)
		}
		return errors.Join(err, lent.takeBack())
	})
	o.end = func() error { return errors.Join(o.handOver(), server.Close()) }
	return o, nil
}

// does says what the server does before it is ready. One goroutine calls it.
func (o *opening) does(what string) {
	before := o.now.Swap(&what)
	if before == nil || *before != what || time.Since(o.told) > moreTime/4 {
		o.manager.starting(what)
		o.told = time.Now()
	}
}

// open opens the store, and says how far it is.
func (o *opening) open(ctx context.Context, c *Config, d messages.Descriptor) (*bolt.Store, error) {
	options := c.Store
	options.Progress = o.progress
	store, err := c.openStore(ctx, d, options, o.logger)
	if err == nil && !o.rebuilding.IsZero() {
		o.logger.Warn("state.db is rebuilt", zap.Duration("took", time.Since(o.rebuilding)))
	}
	o.does("starting the partitions")
	return store, err
}

func (o *opening) progress(p bolt.Progress) {
	what := "reading the end of the log"
	if p.Phase == bolt.PhaseRebuild {
		what = "rebuilding state.db"
		if o.rebuilding.IsZero() {
			o.rebuilding = time.Now()
			o.logger.Warn("state.db is missing, or far behind the log: it is rebuilt, and the server is not ready before", zap.Uint64("events", p.Total))
		}
	}
	o.does(fmt.Sprintf("%s: %d %%", what, percent(p.Done, p.Total)))
}

// percent is how much of something is done.
func percent(done, total uint64) uint64 {
	if total == 0 {
		return 100
	}
	return uint64(100 * float64(min(done, total)) / float64(total))
}

// lent is a listener that a server has for some time: when the server closes it, it is given back.
type lent struct {
	*net.TCPListener
	back atomic.Bool
}

// Accept implements net.Listener.
func (l *lent) Accept() (net.Conn, error) {
	c, err := l.TCPListener.Accept()
	if err != nil && l.back.Load() {
		return nil, net.ErrClosed
	}
	return c, err
}

// Close implements net.Listener: it wakes whoever accepts.
func (l *lent) Close() error {
	l.back.Store(true)
	return l.SetDeadline(time.Unix(1, 0))
}

// takeBack lets the listener be lent again.
func (l *lent) takeBack() error { return l.SetDeadline(time.Time{}) }
