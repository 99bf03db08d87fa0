package serve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/partita-go/partita/dumps"
	"github.com/partita-go/partita/messages"
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
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.reopenDump(ctx, w)
	}()
	return func() error {
		cancel()
		<-ended
		return inTime(dumpLimit, w.Close)
	}, nil
}

func (s *server) dumpFails(err error) {
	if err == nil {
		s.logger.Warn("dump is written again", zap.String("file", s.config.Dump))
		return
	}
	s.logger.Warn("dump cannot be written, or not be opened anew", zap.String("file", s.config.Dump), zap.Error(err))
}

// reopenDump opens the file anew when it is told to, until ctx ends. If that fails, the writer tells.
func (s *server) reopenDump(ctx context.Context, w *dumps.Writer) {
	for {
		select {
		case <-s.config.Reopen:
			_ = w.Reopen(ctx)
		case <-ctx.Done():
			return
		}
	}
}
