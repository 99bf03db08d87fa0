package process

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

func start(t *testing.T, script string) *Server {
	t.Helper()
	s, err := Start(exec.CommandContext(t.Context(), "sh", "-c", script), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWaitReady(t *testing.T) {
	s := start(t, "exec sleep 60")
	asked := 0
	err := s.WaitReady(t.Context(), func(context.Context) error {
		if asked++; asked < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || asked != 3 {
		t.Errorf("got %v after %d questions, want none after 3", err, asked)
	}
}

func TestServerThatEnds(t *testing.T) {
	s := start(t, "echo no disk >&2; exit 3")
	err := s.WaitReady(t.Context(), func(context.Context) error { return errors.New("refused") })
	for _, want := range []string{"no disk", "exit status 3", "refused"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

func TestStopKills(t *testing.T) {
	s := start(t, `trap "" TERM; echo up; while :; do sleep 1; done`)
	if err := s.WaitReady(t.Context(), func(context.Context) error {
		if !strings.Contains(s.output.String(), "up") {
			return errors.New("not up")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.Stop(ctx, syscall.SIGTERM); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
	<-s.ended
}

func TestStopTwice(t *testing.T) {
	s := start(t, "trap 'exit 0' INT; echo up; while :; do sleep 0.1; done")
	if err := s.WaitReady(t.Context(), func(context.Context) error {
		if s.output.String() != "up" {
			return errors.New("not up")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Stop(t.Context(), os.Interrupt); err != nil {
			t.Error(err)
		}
	}
}

func TestTail(t *testing.T) {
	var kept tail
	for range 1000 {
		if _, err := kept.Write([]byte("0123456789")); err != nil {
			t.Fatal(err)
		}
	}
	if got := kept.String(); len(got) != tailSize || !strings.HasSuffix(got, "789") {
		t.Errorf("got %d bytes, want the last %d", len(got), tailSize)
	}
}
