package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/cmd/partita/internal/config"
	"github.com/partita-go/partita/cmd/partita/internal/paths"
	"github.com/partita-go/partita/dumps"
)

// dumpLimit is how long the end of a dump may take: a disk that hangs does not keep the server.
const dumpLimit = 5 * time.Second

// dumping is the dump of a server, which may begin and end while that runs: an observer that is there all the time, and
// wants nothing while nothing is dumped.
type dumping struct {
	logger *zap.Logger
	store  string               // the directory that no dump is within
	now    atomic.Pointer[dump] // nil if there is none
}

// dump is a file that messages are written to.
type dump struct {
	*dumps.Writer
	path string
}

var _ actors.TrafficSwitch = (*dumping)(nil)

// startDump makes the dump that the configuration wants, if any, and returns what ends it.
func (s *server) startDump() (end func() error, err error) {
	s.dumps = &dumping{logger: s.logger.Named("dumps"), store: s.config.Dir}
	first, err := s.dumps.open(s.config.Dump, s.config.Dumps)
	if err != nil {
		return nil, err
	}
	s.dumps.now.Store(first)
	s.metrics.WatchDumps(s.dumps)
	return func() error { return s.dumps.take(nil) }, nil
}

// open returns the dump of a path, nil if that is "". It returns ErrConfig if there can be none.
func (d *dumping) open(path string, o dumps.Options) (*dump, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	if err := checkDump(path, d.store); err != nil {
		return nil, err
	}
	o.Failed = func(err error) {
		if err == nil {
			d.logger.Warn("dump is written again", zap.String("file", path))
			return
		}
		d.logger.Warn("dump cannot be written, or not be opened anew", zap.String("file", path), zap.Error(err))
	}
	w, err := dumps.Open(path, o)
	if err != nil {
		return nil, fmt.Errorf("%w: dump: %w", ErrConfig, err)
	}
	return &dump{w, path}, nil
}

// checkDump returns ErrConfig if a dump would be within a store, whose files would be written to, or copied with it.
func checkDump(path, dir string) error {
	if path == "" {
		return nil
	}
	store, err := paths.StoreOf(path, dir)
	switch {
	case err != nil:
		return fmt.Errorf("%w: dump: %w", ErrConfig, err)
	case store != "":
		return fmt.Errorf("%w: dump: got %.200q within the store %s, want a file outside of it", ErrConfig, path, store)
	}
	return nil
}

// take takes another dump in place of the one that there is, and ends that.
func (d *dumping) take(next *dump) error {
	before := d.now.Swap(next)
	if before == nil {
		return nil
	}
	return inTime(dumpLimit, before.Close)
}

// reopen opens the file anew by its name, and returns its path. It returns errNoDump if there is none.
func (d *dumping) reopen(ctx context.Context) (path string, err error) {
	now := d.now.Load()
	if now == nil {
		return "", errNoDump
	}
	ctx, cancel := context.WithTimeoutCause(ctx, dumpLimit, errDumpHangs)
	defer cancel()
	err = now.Reopen(ctx)
	if errors.Is(err, dumps.ErrClosed) {
		err = errNoDump // it has ended since
	}
	return now.path, err
}

// ReopenDump is the name of the operation that opens the dump anew by its name, as after that was given to another file.
const ReopenDump = "reopen-dump"

// Reopened says which file was opened anew.
type Reopened struct {
	File string `json:"file"`
}

var (
	// errNoDump says that there is nothing to open anew.
	errNoDump = errors.New("no messages are dumped")
	// errDumpHangs says that the disk has not answered in time.
	errDumpHangs = fmt.Errorf("the file was not opened within %v; that may happen later", dumpLimit)
)

func (s *server) reopening() Operation {
	return Operation{Name: ReopenDump, Method: http.MethodPost, Answer: func(ctx context.Context, q url.Values) (any, error) {
		if len(q) > 0 {
			return nil, cli.WrongUsage("got %d parameters, want none", len(q))
		}
		path, err := s.dumps.reopen(ctx)
		return Reopened{path}, err
	}}
}

// prepare returns what a configuration changes about the dump, and what forgets that if it is not to be.
func (d *dumping) prepare(c *config.Config) (change func() error, forget func(), err error) {
	now, o := d.now.Load(), dumpOptions(c)
	if now != nil && now.path == c.Dump {
		return func() error {
			now.SetNode(o.Node)
			return now.SetGroups(o.Groups)
		}, func() {}, nil
	}
	next, err := d.open(c.Dump, o)
	if err != nil {
		return nil, nil, err
	}
	change = func() error {
		if err := d.take(next); err != nil { // the change is in force all the same
			d.logger.Warn("dump that has ended is not whole", zap.String("file", now.path), zap.Error(err))
		}
		return nil
	}
	forget = func() {
		if next != nil {
			_ = inTime(dumpLimit, next.Close)
		}
	}
	return change, forget, nil
}

// Counts implements [metrics.Dumps].
func (d *dumping) Counts(tell func(group string, emitted, limited, lost uint64)) (unwritten uint64) {
	if now := d.now.Load(); now != nil {
		return now.Counts(tell)
	}
	return 0
}

// WantsTraffic implements [actors.TrafficSwitch].
func (d *dumping) WantsTraffic(key actors.Key, message any) bool {
	now := d.now.Load()
	return now != nil && now.WantsTraffic(key, message)
}

// Received implements [actors.TrafficObserver].
func (d *dumping) Received(m actors.Traffic) {
	if now := d.now.Load(); now != nil {
		now.Received(m)
	}
}

// Sent implements [actors.TrafficObserver].
func (d *dumping) Sent(m actors.Traffic) {
	if now := d.now.Load(); now != nil {
		now.Sent(m)
	}
}

// Posted implements [actors.Observer].
func (*dumping) Posted(actors.Key, any) {}

// Taken implements [actors.Observer].
func (*dumping) Taken(actors.Key, any) {}

// Handled implements [actors.Observer].
func (*dumping) Handled(actors.Key, any) {}

// heed does what hangups ask for, until it is stopped.
func (s *server) heed(l *live) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-s.config.Hangups:
				s.hangup(ctx, l)
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// hangup reads the configuration, the certificate and the token again, and opens the dump anew. Whoever fails tells.
func (s *server) hangup(ctx context.Context, l *live) {
	if l != nil {
		l.reload(ctx)
	}
	s.reloadSecrets()
	if path, err := s.dumps.reopen(ctx); errors.Is(err, errDumpHangs) {
		s.dumps.logger.Warn("dump was not opened anew", zap.String("file", path), zap.Error(err))
	}
}
