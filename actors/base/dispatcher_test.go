package base_test

import (
	"bytes"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/partita-go/partita/actors/base"
)

// goroutines returns how many goroutines a dispatcher has.
func goroutines(d *base.Dispatcher) int {
	stacks := make([]byte, 1<<24)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return bytes.Count(stacks, fmt.Appendf(nil, "(*Dispatcher).run(%p", d))
}

// block schedules n functions that wait until release is called.
func block(d *base.Dispatcher, n int) (release func()) {
	gate := make(chan struct{})
	var begun sync.WaitGroup
	begun.Add(n)
	for range n {
		d.Schedule(func() { begun.Done(); <-gate })
	}
	begun.Wait()
	return func() { close(gate); synctest.Wait() }
}

func TestDispatcherNeverQueuesBehindBusyGoroutines(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		d := base.NewDispatcher()
		block(d, 1)() // leaves one idle
		block(d, 500)()
		d.Close()
	})
}

func TestDispatcherReusesABoundedNumberOfGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bound := 64 * runtime.GOMAXPROCS(0)
		d := base.NewDispatcher()
		block(d, bound/2)()
		if n := goroutines(d); n != bound/2 {
			t.Errorf("got %d idle goroutines after %d at once", n, bound/2)
		}
		for range 10 * bound {
			block(d, 1)()
		}
		if n := goroutines(d); n != bound/2 {
			t.Errorf("got %d idle goroutines, want still %d: they are used again", n, bound/2)
		}
		block(d, 10*bound)()
		if n := goroutines(d); n != bound {
			t.Errorf("got %d idle goroutines, want %d", n, bound)
		}
		d.Close()
		synctest.Wait()
		if n := goroutines(d); n != 0 {
			t.Errorf("got %d goroutines after Close", n)
		}
	})
}

func TestDispatcherCloseLosesNoWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := base.NewDispatcher()
		release := block(d, 3)
		d.Close()
		done := make(chan struct{})
		d.Schedule(func() { close(done) })
		<-done
		release()
		d.Close()
		if n := goroutines(d); n != 0 {
			t.Errorf("got %d goroutines after Close", n)
		}
	})
}

func TestDispatcherRunsEverythingOnce(t *testing.T) {
	const senders, each = 8, 5_000
	d := base.NewDispatcher()
	var ran atomic.Int64
	var all sync.WaitGroup
	for sender := range senders {
		all.Go(func() {
			for n := range each {
				all.Add(1)
				d.Schedule(func() { ran.Add(1); all.Done() })
				if sender == 0 && n == each/2 {
					d.Close()
				}
			}
		})
	}
	all.Wait()
	if n := ran.Load(); n != senders*each {
		t.Errorf("got %d runs, want %d", n, senders*each)
	}
}
