package watch

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

var topic = Topic{Log: Partition, ID: 7}

// reached returns what tells whether a counter has come to n.
func reached(ctx context.Context, counter *atomic.Int64, n int64) func() (bool, error) {
	return func() (bool, error) { return counter.Load() >= n, ctx.Err() }
}

func ringOne(b *Board, t Topic) { b.Ring(func(ring func(Topic)) { ring(t) }) }

// TestAwait: whoever waits is woken by its own topic, and asks again.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Board
		var counter, asked atomic.Int64
		ended := make(chan error, 1)
		go func() {
			ended <- b.Await(t.Context(), topic, func() (bool, error) {
				asked.Add(1)
				return counter.Load() >= 2, nil
			})
		}()
		synctest.Wait()
		for i, step := range []func(){
			func() { ringOne(&b, Topic{Log: Workspace, ID: 7}) },
			func() { ringOne(&b, topic) },
			func() { counter.Store(2) },
		} {
			step()
			synctest.Wait()
			if want := []int64{1, 2, 2}[i]; asked.Load() != want || len(ended) > 0 {
				t.Fatalf("step %d: asked %d times, want %d; ended %d", i, asked.Load(), want, len(ended))
			}
		}
		ringOne(&b, topic)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		b.mustBeEmpty(t)
	})
}

// TestAwaitEnds with the context, with an error, with all bells.
func TestAwaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Board
		ctx, cancel := context.WithCancel(t.Context())
		var counter atomic.Int64
		ended := make(chan error, 2)
		go func() { ended <- b.Await(ctx, topic, reached(ctx, &counter, 1)) }()
		go func() { ended <- b.Await(t.Context(), Topic{}, reached(t.Context(), &counter, 1)) }()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		counter.Store(1)
		b.RingAll()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		b.mustBeEmpty(t)
	})
}

func (b *Board) mustBeEmpty(t *testing.T) {
	t.Helper()
	if len(b.bells) != 0 || b.waiting.Load() != 0 {
		t.Fatalf("%d bells are left, %d wait", len(b.bells), b.waiting.Load())
	}
}

// TestNewsWhileLooking: what comes when the waiter has looked, and does not wait yet, is not
// missed. In a bubble, whoever waits for ever fails the test.
func TestNewsWhileLooking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Board
		asked := 0
		err := b.Await(t.Context(), topic, func() (bool, error) {
			if asked++; asked == 1 {
				ringOne(&b, topic)
			}
			return asked > 1, nil
		})
		if err != nil || asked != 2 {
			t.Fatalf("asked %d times, got %v; want 2", asked, err)
		}
		b.mustBeEmpty(t)
	})
}

// TestNobodySleepsOn: whatever the order of counting and waiting, each who waits for a
// number that was counted ends.
func TestNobodySleepsOn(t *testing.T) {
	var b Board
	var counter atomic.Int64
	const most = 2000
	var waiting sync.WaitGroup
	for w := range 8 {
		waiting.Go(func() {
			for n := int64(1 + w%3); n <= most; n += int64(1 + w%5) {
				if err := b.Await(t.Context(), topic, reached(t.Context(), &counter, n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range most {
		counter.Add(1)
		ringOne(&b, topic)
	}
	waiting.Wait()
	b.mustBeEmpty(t)
}
