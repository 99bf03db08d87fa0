package tests

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// BenchmarkSlowSubscription measures nine subscriptions of an application at full write load,
// beside a tenth that handles 10 events/s: how long after an append's answer the nine get the
// event, and how much more of the heap is in use after so many events than after as many
// before the tenth was there. Bars: p99 at most 100 ms, and at most 32 MiB.
func BenchmarkSlowSubscription(b *testing.B) {
	const fast, pace = 9, 100 * time.Millisecond
	l := newReadersLoad(b)
	f := newFastOnes(b, l, fast)
	f.load(b, l)
	alone, before := quantile(sortedLags(b, f.seen), 0.99), l.heapFlushed(b)
	slow := startSlow(b, l, pace)
	b.ResetTimer()
	f.reset(b.N)
	took := f.load(b, l)
	b.StopTimer()
	b.ReportMetric(float64(l.heapFlushed(b)-before)/(1<<20), "grown-MiB")
	reportLags(b, f.seen)
	b.ReportMetric(alone, "alone-p99-ms")
	b.ReportMetric(float64(b.N)/took.time.Seconds(), "events/s")
	b.ReportMetric(float64(slow.handled.Load())/took.time.Seconds(), "slow/s")
	slow.end(b)
	l.stop(b)
}

// heapFlushed returns how much of the heap is in use when every event is flushed: how many
// wait for a flush differs by tens of MiB from one moment to the next.
func (l readersLoad) heapFlushed(b *testing.B) int64 {
	deadline := limit(b)
	for p := range l.app.Partitions() {
		for r := l.register(b, messages.PartitionID(p)); r.Checkpoint <= r.Last; r = l.register(b, messages.PartitionID(p)) {
			select {
			case <-time.After(time.Millisecond):
			case <-deadline.Done():
				b.Fatalf("partition %d: checkpoint %d, the log ends at %d", p, r.Checkpoint, r.Last)
			}
		}
	}
	return heap()
}

// fastOnes are subscriptions whose handlers do nothing but look at the time.
type fastOnes struct {
	many int64
	// handled is how many events they have got together, and all says that it is as many as
	// were appended.
	handled, appended atomic.Int64
	all               chan struct{}
	seen              []stamps
}

func newFastOnes(b *testing.B, l readersLoad, many int) *fastOnes {
	f := &fastOnes{many: int64(many), all: make(chan struct{}, 1)}
	f.reset(b.N)
	for i := range many {
		must(l.app.Subscribe(context.Background(), partition.SubscriptionConfig{Name: fmt.Sprint("fast ", i), Handler: f.handle}))(b)
	}
	return f
}

// reset makes room for what is seen of n events, so that it is not part of what is measured.
func (f *fastOnes) reset(n int) {
	f.seen = make([]stamps, stampedWorkspaces)
	each := n/stampedWorkspaces/5 + 100
	for i := range f.seen {
		f.seen[i].answered = make([]time.Time, 0, each)
		f.seen[i].seen = make([]sighting, 0, each*int(f.many))
	}
}

func (f *fastOnes) handle(_ context.Context, d partition.Delivery) error {
	now := time.Now()
	for i := range d.Events {
		if e := &d.Events[i]; e.Workspace < stampedWorkspaces {
			f.seen[e.Workspace].see(e.WLogOffset, now)
		}
	}
	if f.handled.Add(int64(len(d.Events))) == f.many*f.appended.Load() {
		select {
		case f.all <- struct{}{}:
		default: // it says so already
		}
	}
	return nil
}

// load appends b.N events, and returns when all have got them.
func (f *fastOnes) load(b *testing.B, l readersLoad) effort {
	f.appended.Add(int64(b.N))
	took := l.run(b, b.N, func(ws messages.WSID, offset messages.WLogOffset) {
		if ws < stampedWorkspaces {
			f.seen[ws].answer(offset, time.Now())
		}
	})
	select {
	case <-f.all:
	case <-limit(b).Done():
		b.Fatalf("got %d events, want %d for each of %d", f.handled.Load(), f.appended.Load(), f.many)
	}
	return took
}

// slowOne is a subscription whose handler takes its time over each event.
type slowOne struct {
	subscription *partition.Subscription
	handled      atomic.Int64
	over         chan struct{}
}

var errOver = errors.New("the benchmark is over")

// startSlow starts one that handles an event whenever pace has passed, in all its lanes
// together.
func startSlow(b *testing.B, l readersLoad, pace time.Duration) *slowOne {
	s := &slowOne{over: make(chan struct{})}
	turns := time.NewTicker(pace)
	b.Cleanup(turns.Stop)
	s.subscription = must(l.app.Subscribe(context.Background(), partition.SubscriptionConfig{
		Name: "slow",
		Handler: func(_ context.Context, d partition.Delivery) error {
			for range d.Events {
				select {
				case <-turns.C:
					s.handled.Add(1)
				case <-s.over:
					return errOver
				}
			}
			return nil
		},
	}))(b)
	return s
}

func (s *slowOne) end(b *testing.B) {
	close(s.over)
	check(b, s.subscription.End(limit(b)))
}
