package partita_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

// A Close whose context has ended closes nothing, blames nobody, and may be called again.
func TestCloseWithoutTime(t *testing.T) {
	app, err := partita.Open(limit(t), t.TempDir(), billing(), partita.Options{Create: true})
	check(t, err)
	_, err = app.SpawnAppendProcessor(func(context.Context, *partition.DraftContext) error { return nil })
	check(t, err)
	ended, cancel := context.WithCancel(limit(t))
	cancel()
	err = app.Close(ended)
	if !errors.Is(err, context.Canceled) || errors.Is(err, partition.ErrNotClean) || strings.Contains(err.Error(), "hang") {
		t.Errorf("got %v, want only %v", err, context.Canceled)
	}
	check(t, app.Close(limit(t)))
	check(t, app.Close(ended))
}

// looked is a context that ends when somebody looks for the nth time whether it has.
type looked struct {
	context.Context
	mu    sync.Mutex
	looks int
	end   context.CancelFunc
}

func (l *looked) Err() error {
	l.mu.Lock()
	if l.looks--; l.looks == 0 {
		l.end()
	}
	l.mu.Unlock()
	return l.Context.Err()
}

// Whenever the context of a Close ends, its answer says whether all is closed.
func TestCloseSaysWhetherItIsClosed(t *testing.T) {
	dir := t.TempDir()
	for n, ended := 1, true; ended; n++ {
		app, err := partita.Open(limit(t), dir, billing(), partita.Options{Create: true})
		check(t, err)
		invoice(t, app)
		ctx, cancel := context.WithCancel(limit(t))
		answer := app.Close(&looked{Context: ctx, looks: n, end: cancel})
		ended = ctx.Err() != nil
		cancel()
		if errors.Is(answer, context.Canceled) {
			check(t, app.Close(limit(t)))
		} else {
			check(t, answer)
		}
		again, err := bolt.Open(limit(t), dir, billing().Descriptor, bolt.Options{LockTimeout: time.Millisecond})
		if err != nil {
			t.Fatalf("at look %d Close answered %v, then: %v", n, answer, err)
		}
		check(t, again.Close(limit(t)))
		check(t, app.Close(limit(t)))
	}
}

// stopping waits until an actor of the application has been told to stop.
func stopping(t *testing.T, app *partita.App) {
	t.Helper()
	for status, err := range app.Watch(limit(t)) {
		check(t, err)
		if status.State == messages.StateTerminating {
			return
		}
	}
}

// Whoever closes at the same time, or later, gets the same answer. Whoever has no time to wait for it is told so.
func TestCloseTwice(t *testing.T) {
	dir, application := t.TempDir(), billing()
	application.Settings.StopLimit = time.Second
	app, err := partita.Open(limit(t), dir, application, partita.Options{Create: true})
	check(t, err)
	begun, end := make(chan struct{}), make(chan struct{})
	p, err := app.SpawnAppendProcessor(func(context.Context, *partition.DraftContext) error {
		close(begun)
		<-end
		return nil
	})
	check(t, err)
	var all sync.WaitGroup
	all.Go(func() { _, _ = p.Execute(limit(t), messages.Command{Workspace: 1, Kind: shop}) })
	<-begun
	answers := make(chan error, 2)
	for range 2 {
		all.Go(func() { answers <- app.Close(limit(t)) })
	}
	stopping(t, app)
	ended, cancel := context.WithCancel(limit(t))
	cancel()
	if err := app.Close(ended); !errors.Is(err, context.Canceled) || errors.Is(err, partition.ErrNotClean) {
		t.Errorf("while another one closes: got %v, want only %v", err, context.Canceled)
	}
	first := <-answers
	for i, err := range []error{first, <-answers, app.Close(limit(t)), app.Close(ended)} {
		if !errors.Is(err, partition.ErrNotClean) || errors.Is(err, context.DeadlineExceeded) || err.Error() != first.Error() {
			t.Errorf("%d: got %v, want %v and %v", i, err, partition.ErrNotClean, first)
		}
	}
	close(end)
	all.Wait()
	again, err := bolt.Open(limit(t), dir, application.Descriptor, bolt.Options{LockTimeout: time.Millisecond})
	check(t, err)
	check(t, again.Close(limit(t)))
}
