package storagetest

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/partita-go/partita/messages"
)

// follower reads on each time that it is told.
type follower struct {
	name string
	// next waits, reads on, and returns how far it has come: an offset, or a count.
	next func(ctx context.Context) (uint64, error)
	// upTo is how far it must have come when the first events of the history are there.
	upTo func(events int) uint64
	at   chan uint64
	// came is how far it has come.
	came uint64
}

// checkAwaitRace: nobody sleeps on, however appends and flushes fall between looking and
// waiting. Each append waits until all have seen the one before, so that one that is
// missed is missed for ever.
func checkAwaitRace(e *env) {
	e.open()
	p := e.take(0)
	h := newHistory(p, 50)
	ctx, cancel := context.WithCancel(e.Context())
	var running sync.WaitGroup
	written := make(chan int, len(h.batches))
	end := sync.OnceFunc(func() {
		close(written)
		cancel()
		running.Wait()
	})
	store := e.store
	e.Cleanup(func() {
		_ = store.Close(context.Background())
		end()
	})
	followers := e.followers(h)
	for _, f := range followers {
		running.Go(func() { e.follow(ctx, f) })
	}
	running.Go(func() { e.flushBeside(h, written) })
	done := 0
	for i, b := range h.batches {
		if err := e.put(e.Context(), b); err != nil {
			e.Fatalf("append: %v", err)
		}
		written <- i
		done += len(b.Events)
		for j := range followers {
			// Another one is the last to be told to go on, just before the next append.
			f := followers[(i+j)%len(followers)]
			e.awaitFollower(f, f.upTo(done))
		}
	}
	end()
	e.model.append(h.events...)
	e.model.partitions[0].checkpoint = p.checkpoint
}

// followers returns two of each kind and log.
func (e *env) followers(h *history) (all []*follower) {
	for i := range 2 {
		all = append(all, e.plogFollower(h, i), e.countFollower(i))
		for _, ws := range []messages.WSID{0, 3, 6} {
			all = append(all, e.wlogFollower(h, ws, i))
		}
	}
	return all
}

func newFollower(format string, args ...any) *follower {
	return &follower{name: fmt.Sprintf(format, args...), at: make(chan uint64)}
}

func (e *env) plogFollower(h *history, i int) *follower {
	f := newFollower("follower %d of partition 0", i)
	next := 0
	f.next = func(ctx context.Context) (uint64, error) {
		offset := messages.PLogOffset(next) + 1
		err := e.store.AwaitPLog(ctx, 0, offset)
		if err == nil {
			var got []messages.Event
			got, err = collectEvents(e.store.PLog(ctx, 0, offset))
			next += len(got)
			err = firstFailure(err, continues(got, h.events[next-len(got):]))
		}
		return uint64(next), err
	}
	f.upTo = func(events int) uint64 { return uint64(events) }
	return f
}

func (e *env) wlogFollower(h *history, ws messages.WSID, i int) *follower {
	f := newFollower("follower %d of workspace %d", i, ws)
	var log []messages.Event
	upTo := make([]uint64, 1, len(h.events)+1)
	for _, event := range h.events {
		if event.Workspace == ws {
			log = append(log, event)
		}
		upTo = append(upTo, uint64(len(log)))
	}
	next := 0
	f.next = func(ctx context.Context) (uint64, error) {
		offset := messages.WLogOffset(next) + 1
		err := e.store.AwaitWLog(ctx, ws, offset)
		if err == nil {
			var got []messages.Event
			got, err = collectEvents(e.store.WLog(ctx, ws, offset))
			next += len(got)
			err = firstFailure(err, continues(got, log[next-len(got):]))
		}
		return uint64(next), err
	}
	f.upTo = func(events int) uint64 { return upTo[events] }
	return f
}

func (e *env) countFollower(i int) *follower {
	f := newFollower("follower %d of all partitions", i)
	seen := uint64(0)
	f.next = func(ctx context.Context) (uint64, error) {
		n, err := e.store.AwaitAny(ctx, seen)
		if err != nil {
			return seen, err
		}
		there, err := e.count(ctx)
		if err == nil && (n <= seen || n > there) {
			err = fmt.Errorf("it was told of %d events after %d, %d are there", n, seen, there)
		}
		seen = n
		return seen, err
	}
	f.upTo = func(events int) uint64 { return uint64(events) }
	return f
}

func firstFailure(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// continues returns an error unless what was read is something, and how the log goes on.
func continues(got, want []messages.Event) error {
	if len(got) == 0 || len(got) > len(want) || !reflect.DeepEqual(got, want[:len(got)]) {
		return fmt.Errorf("it read %+v, want a beginning of %+v", got, want)
	}
	return nil
}

// follow goes on until its context ends.
func (e *env) follow(ctx context.Context, f *follower) {
	defer close(f.at)
	for {
		at, err := f.next(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			e.Errorf("%s: %v", f.name, err)
			return
		}
		select {
		case f.at <- at:
		case <-ctx.Done():
			return
		}
	}
}

// awaitFollower waits until a follower has come as far as it must.
func (e *env) awaitFollower(f *follower, upTo uint64) {
	e.Helper()
	for f.came < upTo {
		select {
		case at, going := <-f.at:
			if !going {
				e.Fatalf("%s has ended at %d, want it to come to %d", f.name, f.came, upTo)
			}
			f.came = at
		case <-time.After(awaitLimit):
			e.Fatalf("%s sleeps at %d, want it to come to %d", f.name, f.came, upTo)
		}
	}
}

// flushBeside makes the flush of each batch that was written.
func (e *env) flushBeside(h *history, written <-chan int) {
	for i := range written {
		if err := e.store.Flush(e.Context(), h.flushes[i]); err != nil {
			e.Errorf("flush: %v", err)
			return
		}
	}
}
