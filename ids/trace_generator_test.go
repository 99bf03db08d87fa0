package ids_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/partita-go/partita/ids"
)

// perSecond is how many ids a second of a node has.
const perSecond = 4096 * 1023

// The layout's limit of a second is reached, in order, and not passed.
func TestSecondIsUsedUp(t *testing.T) {
	g, clock := ready(ids.TraceOptions{})
	for second := range uint64(2) {
		for n := range uint64(perSecond) {
			id, want := next(t, g), traceID((1_800_000_001+second)%(1<<25), 7, n/1023, n%1023+1)
			if id != want {
				t.Fatalf("id %d: got %v, want %v", n, id, want)
			}
		}
		none(t, g)
		clock.pass(499 * time.Millisecond)
		none(t, g)
		clock.pass(501 * time.Millisecond)
	}
}

// However many take from a second, each of its ids is given out once.
func TestSecondIsUsedUpByMany(t *testing.T) { usedUpByMany(t, 4096) }

// The same for the end of a second, where they get in each other's way.
func TestLastChunksAreUsedUpByMany(t *testing.T) { usedUpByMany(t, 20) }

// usedUpByMany lets goroutines use up the last chunks of two seconds, on several numbers of processors.
func usedUpByMany(t *testing.T, chunks uint32) {
	t.Helper()
	for _, processors := range []int{2, 7} {
		before := runtime.GOMAXPROCS(processors)
		t.Cleanup(func() { runtime.GOMAXPROCS(before) })
		g, clock := ready(ids.TraceOptions{})
		for second := range uint64(2) {
			g.SkipChunks(4096 - chunks)
			seen := make([]atomic.Bool, 1<<22)
			var given atomic.Int64
			var wait sync.WaitGroup
			for range 8 {
				wait.Go(func() {
					for {
						id, err := g.Next(ended())
						if errors.Is(err, ids.ErrSecondUsedUp) {
							return
						}
						if err != nil || id>>22 != traceID((1_800_000_001+second)%(1<<25), 7, 0, 0)>>22 || id&1023 == 0 || seen[id&(1<<22-1)].Swap(true) {
							t.Errorf("got %v, %v, want another id of second %d", id, err, second)
							return
						}
						given.Add(1)
					}
				})
			}
			wait.Wait()
			if given.Load() != int64(chunks)*1023 {
				t.Errorf("got %d ids, want %d", given.Load(), chunks*1023)
			}
			clock.pass(time.Second)
		}
	}
}

// A generator that is made in the second in which another one was used gives ids of the next one.
func TestRestartWithinASecond(t *testing.T) {
	g, clock := ready(ids.TraceOptions{})
	last := next(t, g)
	again := ids.NewTraceGenerator(7, ids.TraceOptions{Clock: clock})
	if err := none(t, again); !strings.Contains(err.Error(), "was made in second 1800000001:") {
		t.Errorf("got %v, want the reason", err)
	}
	clock.pass(500 * time.Millisecond)
	if id := next(t, again); id.Compare(last) <= 0 || id.Time(clock.Now()).Unix() != 1_800_000_002 {
		t.Errorf("got %v after %v, want the next second", id, last)
	}
}

// Also where the clock says 1970, and before.
func TestEarlyClocks(t *testing.T) {
	for _, unix := range []int64{-1 << 40, -2, 0} {
		clock := newClock(unix)
		g := ids.NewTraceGenerator(7, ids.TraceOptions{Clock: clock})
		none(t, g)
		clock.set(time.Unix(1, 0))
		if id := next(t, g); id != traceID(1, 7, 0, 1) {
			t.Errorf("got %v, want the first of second 1", id)
		}
	}
}

// When the clock is set back, ids go on in the second in which they were, and rise. When that is used up they come once
// the clock has caught up.
func TestClockIsSetBack(t *testing.T) {
	g, clock := ready(ids.TraceOptions{})
	last := next(t, g)
	clock.set(clock.Now().Add(-10 * time.Second))
	g.SkipChunks(4096 - 10)
	for n := range 10*1023 - 1 {
		if n%1000 == 999 && n < 7000 {
			clock.pass(time.Second)
		}
		id := next(t, g)
		if id <= last || id>>38 != last>>38 {
			t.Fatalf("got %v after %v, want a greater one of the same second", id, last)
		}
		last = id
	}
	if err := none(t, g); !strings.Contains(err.Error(), "the clock is 3 s behind") {
		t.Errorf("got %v, want how far the clock is behind", err)
	}
	clock.pass(3 * time.Second)
	none(t, g)
	clock.pass(time.Second)
	if id := next(t, g); id.Compare(last) <= 0 {
		t.Errorf("got %v after %v, want a greater one", id, last)
	}
}

// An id has the second of the clock when it is taken, however long its chunk was not used.
func TestIdleGeneratorKnowsTheTime(t *testing.T) {
	g, clock := ready(ids.TraceOptions{})
	for _, d := range []time.Duration{500 * time.Millisecond, time.Second, time.Hour, 100 * time.Hour} {
		next(t, g)
		clock.pass(d)
		if id := next(t, g); !id.Time(clock.Now()).Equal(clock.Now().Truncate(time.Second)) {
			t.Errorf("got an id of %v, want %v", id.Time(clock.Now()), clock.Now())
		}
	}
	clock.pass(time.Second)
	clock.mu.Lock()
	defer clock.mu.Unlock()
	if len(clock.timers) != 0 {
		t.Errorf("got %d timers of an idle generator, want none", len(clock.timers))
	}
}

// Whatever the clock does and however often a node starts again: ids rise, no second is ahead of the clock, and none is
// behind it but by the clock's steps. A node that starts again finds the clock where it was or later.
func TestIDsRise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := newClock(rapid.SampledFrom([]int64{1_800_000_000, 54<<25 - 20}).Draw(t, "now"))
		o := ids.TraceOptions{Clock: clock, Ordered: rapid.Bool().Draw(t, "ordered")}
		g, latest := ids.NewTraceGenerator(7, o), clock.Now().Unix()
		made := latest
		var last ids.TraceID
		t.Repeat(map[string]func(*rapid.T){
			"next": func(t *rapid.T) {
				for range rapid.SampledFrom([]int{1, 3, 1023, 5000}).Draw(t, "ids") {
					id, err := g.Next(ended())
					if err != nil {
						if now := clock.Now().Unix(); !errors.Is(err, ids.ErrSecondUsedUp) || now > made {
							t.Fatalf("got %v in second %d, made in %d", err, now, made)
						}
						return
					}
					if second := id.Time(clock.Now()).Unix(); second > latest || second <= made {
						t.Fatalf("got second %d, want one after %d, up to %d", second, made, latest)
					}
					if last != 0 && id.Compare(last) <= 0 {
						t.Fatalf("got %v after %v, want a greater one", id, last)
					}
					last = id
				}
			},
			"time passes": func(t *rapid.T) {
				clock.pass(time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond)
				latest = max(latest, clock.Now().Unix())
			},
			"clock is set": func(t *rapid.T) {
				clock.set(clock.Now().Add(time.Duration(rapid.IntRange(-10_000, 10_000).Draw(t, "ms")) * time.Millisecond))
				latest = max(latest, clock.Now().Unix())
			},
			"node starts again": func(t *rapid.T) {
				if clock.Now().Unix() < latest {
					t.Skip("the clock is behind what was used")
				}
				g, made = ids.NewTraceGenerator(7, o), latest
			},
		})
	})
}

// As long as calls do not overlap, ids rise, whichever goroutine calls, and on whichever processor.
func TestIDsRiseFromHandToHand(t *testing.T) {
	g, _ := ready(ids.TraceOptions{})
	const hands, rounds = 8, 5000
	last := make(chan ids.TraceID)
	var wait sync.WaitGroup
	for range hands {
		wait.Go(func() {
			for before := range last {
				id, err := g.Next(ended())
				if err != nil || before != 0 && id <= before {
					t.Errorf("got %v, %v after %v, want a greater one", id, err, before)
				}
				runtime.Gosched()
				last <- id
			}
		})
	}
	id := ids.TraceID(0)
	for range rounds {
		last <- id
		id = <-last
	}
	close(last)
	wait.Wait()
}

// From many goroutines at a time, seconds do not fall; in order, no id does.
func TestOrderOfMany(t *testing.T) {
	for name, test := range map[string]struct {
		ordered bool
		part    func(ids.TraceID) uint64
	}{
		"seconds":     {false, func(id ids.TraceID) uint64 { return uint64(id>>38) + 1 }},
		"ids ordered": {true, func(id ids.TraceID) uint64 { return uint64(id) }},
	} {
		t.Run(name, func(t *testing.T) {
			g, clock := ready(ids.TraceOptions{Ordered: test.ordered})
			var returned atomic.Uint64 // the greatest that was returned
			var wait sync.WaitGroup
			for taker := range 6 {
				wait.Go(func() {
					for n := range 30_000 {
						before := returned.Load()
						id, err := g.Next(ended())
						got := test.part(id)
						if err != nil || got < before || test.ordered && got == before {
							t.Errorf("got %x, %v after %x was returned", got, err, before)
							return
						}
						for old := returned.Load(); old < got && !returned.CompareAndSwap(old, got); {
							old = returned.Load()
						}
						if taker == 0 && n%1000 == 0 {
							clock.pass(700 * time.Millisecond)
						}
					}
				})
			}
			wait.Wait()
		})
	}
}

// Next waits by the machine's clock, and goes on in the next second.
func TestNextWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ids.NewTraceGenerator(7, ids.TraceOptions{})
		made := time.Now().Truncate(time.Second)
		for second := range 2 {
			for n := range 3 * 1023 {
				if n == 1 {
					g.SkipChunks(4096 - 3)
				}
				id, err := g.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if got, want := id.Time(time.Now()), made.Add(time.Duration(second+1)*time.Second); !got.Equal(want) {
					t.Fatalf("got an id of %v, want %v", got, want)
				}
			}
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, errors.New("too long"))
		defer cancel()
		before := time.Now()
		_, err := g.Next(ctx)
		if !errors.Is(err, ids.ErrSecondUsedUp) || !strings.Contains(err.Error(), "too long") || time.Since(before) != 300*time.Millisecond {
			t.Errorf("got %v after %v, want the context's cause after 300ms", err, time.Since(before))
		}
	})
}

// All who wait for the next second go on in it.
func TestManyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ids.NewTraceGenerator(7, ids.TraceOptions{})
		const callers = 50
		got := make(chan ids.TraceID, callers)
		for range callers {
			go func() {
				id, err := g.Next(t.Context())
				if err != nil {
					t.Error(err)
				}
				got <- id
			}()
		}
		all := make(map[ids.TraceID]bool)
		for range callers {
			all[<-got] = true
		}
		if len(all) != callers {
			t.Errorf("got %d different ids, want %d", len(all), callers)
		}
	})
}

func TestNextAllocatesNothing(t *testing.T) {
	g, _ := ready(ids.TraceOptions{})
	ctx := ended()
	if n := testing.AllocsPerRun(10_000, func() { _, _ = g.Next(ctx) }); n != 0 {
		t.Errorf("got %v allocations an id, want none", n)
	}
}
