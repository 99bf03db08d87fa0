// Package process starts servers as child processes, waits for them and stops
// them.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// Server is a child process that runs until it is stopped. It ends with this
// process where the system can see to that.
type Server struct {
	command *exec.Cmd
	output  *tail
	ended   chan struct{}
	err     error // how it ended; read it after ended is closed
}

// Start starts a server. Its output goes into errors; stdout, if it is not nil,
// gets the standard output instead.
func Start(command *exec.Cmd, stdout io.Writer) (*Server, error) {
	s := &Server{command: command, output: new(tail), ended: make(chan struct{})}
	command.Stdout, command.Stderr = s.output, s.output
	if stdout != nil {
		command.Stdout = stdout
	}
	EndWithParent(command)
	if err := command.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.err = command.Wait()
		close(s.ended)
	}()
	return s, nil
}

// PID is the server's process.
func (s *Server) PID() int { return s.command.Process.Pid }

// retryPeriod is how often a server is asked whether it is ready.
const retryPeriod = 50 * time.Millisecond

// WaitReady asks until the answer is nil. It fails if the server ends or the
// context does.
func (s *Server) WaitReady(ctx context.Context, ask func(context.Context) error) error {
	ticker := time.NewTicker(retryPeriod)
	defer ticker.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-s.ended:
			return s.failure(fmt.Errorf("it ended: %w", errors.Join(s.err, err)))
		case <-ctx.Done():
			return s.failure(fmt.Errorf("it is not ready: %w", errors.Join(context.Cause(ctx), err)))
		}
	}
}

// Stop asks the server to end by a signal, and kills it when the context ends.
func (s *Server) Stop(ctx context.Context, signal os.Signal) error {
	if err := s.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return s.failure(err)
	}
	select {
	case <-s.ended:
	case <-ctx.Done():
		return s.failure(errors.Join(fmt.Errorf("it had to be killed: %w", context.Cause(ctx)), s.command.Process.Kill()))
	}
	if s.err != nil {
		return s.failure(s.err)
	}
	return nil
}

func (s *Server) failure(err error) error {
	return fmt.Errorf("%s: %w\n%s", s.command.Path, err, s.output)
}

// tailSize is how much of a server's output is kept.
const tailSize = 4 << 10

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if cut := len(t.kept) - tailSize; cut > 0 {
		t.kept = append(t.kept[:0], t.kept[cut:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.kept))
}
