package serve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/partita-go/partita/dumps"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// dumpLimit is how long the end of a dump may take: a disk that hangs does not keep the server.
const dumpLimit = 5 * time.Second

// startDump makes the dump that the configuration wants, if any, the observer of actors, and returns what ends it.
func (s *server) startDump() (end func() error, err error) {
	if s.config.Dump == "" {
		return func() error { return nil }, nil
	}
	o := s.config.Dumps
	o.Failed = s.dumpFails
	w, err := dumps.Open(s.config.Dump, o)
	if errors.Is(err, messages.ErrSettings) {
		return nil, fmt.Errorf("%w: dump: %w", ErrConfig, err)
	}
	if err != nil {
		return nil, err
	}
	s.dumps = w
	s.metrics.WatchDumps(w)
	return func() error { return inTime(dumpLimit, w.Close) }, nil
}

// observer returns who is told what actors do.
func (s *server) observer() partition.Observer {
	if s.dumps == nil {
		return s.metrics
	}
	return partition.Observers(s.metrics, s.dumps)
}

func (s *server) dumpFails(err error) {
	logger := s.logger.Named("dumps")
	if err == nil {
		logger.Warn("dump is written again", zap.String("file", s.config.Dump))
		return
	}
	logger.Warn("dump cannot be written, or not be opened anew", zap.String("file", s.config.Dump), zap.Error(err))
}

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
	if s.dumps != nil {
		_ = s.dumps.Reopen(ctx)
	}
}
