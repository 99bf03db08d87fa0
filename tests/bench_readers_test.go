package tests

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/storagetest"
)

// BenchmarkFollowBehind measures a follower that starts behind: of a partition, of a
// workspace that is alone in its partition, and of the feed of 8 partitions. Bar: at least
// 300,000 events/s. With -short it starts less far behind.
func BenchmarkFollowBehind(b *testing.B) {
	n := events(1_000_000)
	if testing.Short() {
		n = events(100_000)
	}
	b.Run("partition", func(b *testing.B) {
		benchmarkBehind(b, n, 1, 10_000, func(ctx context.Context, r *partition.Reader) iter.Seq2[messages.Event, error] {
			return r.FollowPLog(ctx, 0, 1)
		})
	})
	b.Run("workspace", func(b *testing.B) {
		benchmarkBehind(b, n, 1, 1, func(ctx context.Context, r *partition.Reader) iter.Seq2[messages.Event, error] {
			return r.FollowWLog(ctx, 0, 1)
		})
	})
	b.Run("feed", func(b *testing.B) {
		benchmarkBehind(b, n, 8, 10_000, func(ctx context.Context, r *partition.Reader) iter.Seq2[messages.Event, error] {
			return must(r.Feed(ctx, partition.Cursor{}))(b).Follow(ctx)
		})
	})
}

// benchmarkBehind follows a log of n events to its end, all of it in the projections.
func benchmarkBehind(b *testing.B, n int, partitions uint32, workspaces uint64, follow func(context.Context, *partition.Reader) iter.Seq2[messages.Event, error]) {
	app := partition.Application{Descriptor: shop(partitions)}
	store := openBolt(b, flushedStoreOf(b, app, n, workspaces), app.Descriptor, bolt.Options{})
	reader := partition.NewReader(store)
	b.ResetTimer()
	for b.Loop() {
		got := 0
		for _, err := range follow(context.Background(), reader) {
			check(b, err)
			if got++; got == n {
				break
			}
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
	check(b, store.Close(limit(b)))
}

// BenchmarkIdleFollowers measures appends beside 1,000 followers of workspaces to which
// nobody writes, and without them, in turn, so that both have the same machine. Bars: with
// them at least 0.9 of the events/s, and at most 1.1 of the CPU time.
func BenchmarkIdleFollowers(b *testing.B) {
	const followers, turns, slice = 1000, 6, 10_000
	l := newReadersLoad(b)
	var alone, beside effort
	unnoticed := func(messages.WSID, messages.WLogOffset) {}
	for b.Loop() {
		for range turns {
			alone.add(l.run(b, slice, unnoticed))
			stop := l.startIdle(b, followers)
			beside.add(l.run(b, slice, unnoticed))
			stop()
		}
	}
	if alone.cpu > 0 {
		b.ReportMetric(float64(beside.cpu)/float64(alone.cpu), "cpu-ratio")
	}
	b.ReportMetric(float64(alone.time)/float64(beside.time), "rate-ratio")
	b.ReportMetric(float64(b.N*turns*slice)/alone.time.Seconds(), "events/s")
	l.stop(b)
}

// effort is what appends have taken.
type effort struct{ time, cpu time.Duration }

func (e *effort) add(o effort) { e.time, e.cpu = e.time+o.time, e.cpu+o.cpu }

// startIdle returns when the followers wait.
func (l readersLoad) startIdle(b *testing.B, followers int) (stop func()) {
	parent, cancel := context.WithCancel(context.Background())
	ctx := storagetest.NewLookout(parent)
	var running sync.WaitGroup
	for i := range followers {
		ws := messages.WSID(loadWorkspaces + i)
		running.Go(func() {
			for _, err := range l.app.Reader().FollowWLog(ctx, ws, 1) {
				if !errors.Is(err, context.Canceled) {
					b.Errorf("workspace %d: got an event, or %v", ws, err)
				}
			}
		})
	}
	for range followers {
		<-ctx.Waits()
	}
	return func() {
		cancel()
		running.Wait()
	}
}

// BenchmarkFeedFollowers measures the CPU time of appends at full write load, until each of 100 followers of the
// feed has seen them, and without followers, in turn, so that both have the same machine. Bar: at most 3 times. If
// each follower reads for itself, it is 7 to 10 times.
func BenchmarkFeedFollowers(b *testing.B) {
	const followers, turns, slice = 100, 4, 10_000
	l := newReadersLoad(b)
	feed := must(l.app.Reader().Feed(limit(b), partition.Cursor{}))(b)
	var alone, beside effort
	for b.Loop() {
		for range turns {
			alone.add(l.run(b, slice, func(messages.WSID, messages.WLogOffset) {}))
			for _, err := range feed.Events(limit(b)) {
				check(b, err)
			}
			beside.add(l.runFollowed(b, slice, followers, feed.Cursor()))
		}
	}
	if alone.cpu > 0 {
		b.ReportMetric(float64(beside.cpu)/float64(alone.cpu), "cpu-ratio")
	}
	b.ReportMetric(float64(alone.time)/float64(beside.time), "rate-ratio")
	b.ReportMetric(float64(b.N*turns*slice)/alone.time.Seconds(), "events/s")
	l.stop(b)
}

// runFollowed appends n events that followers of the feed see from a cursor at its end.
func (l readersLoad) runFollowed(b *testing.B, n, followers int, end partition.Cursor) effort {
	ctx := limit(b)
	before, cpu := time.Now(), cpuTime()
	var running sync.WaitGroup
	for range followers {
		feed := must(l.app.Reader().Feed(ctx, end))(b)
		running.Go(func() {
			seen := 0
			for _, err := range feed.Follow(ctx) {
				if err != nil {
					b.Errorf("after %d of %d events: %v", seen, n, err)
					return
				}
				if seen++; seen == n {
					return
				}
			}
		})
	}
	l.run(b, n, func(messages.WSID, messages.WLogOffset) {})
	running.Wait()
	return effort{time: time.Since(before), cpu: cpuTime() - cpu}
}

// BenchmarkLiveFollowers measures how long after an append's answer a follower sees the
// event, at full write load: 100 followers of workspaces, and 100 of the 8 partitions, each
// of which sees every event of its partition. Bar: p99 at most 50 ms.
func BenchmarkLiveFollowers(b *testing.B) {
	const followers = 100
	b.Run("of=workspaces", func(b *testing.B) {
		benchmarkLive(b, followers, func(ctx context.Context, r *partition.Reader, i int) iter.Seq2[messages.Event, error] {
			return r.FollowWLog(ctx, messages.WSID(i), 1)
		})
	})
	b.Run("of=partitions", func(b *testing.B) {
		benchmarkLive(b, followers, func(ctx context.Context, r *partition.Reader, i int) iter.Seq2[messages.Event, error] {
			return r.FollowPLog(ctx, messages.PartitionID(i%loadPartitions), 1)
		})
	})
}

// stamps are the times at which the events of a workspace were answered, by offset, and at
// which they were seen. A follower may see an event before its answer: that is no lag.
type stamps struct {
	mu       sync.Mutex
	answered []time.Time
	seen     []sighting
}

type sighting struct {
	offset messages.WLogOffset
	at     time.Time
}

func benchmarkLive(b *testing.B, followers int, follow func(context.Context, *partition.Reader, int) iter.Seq2[messages.Event, error]) {
	l := newReadersLoad(b)
	all := make([]stamps, stampedWorkspaces)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	var seen atomic.Int64
	for i := range followers {
		running.Go(func() {
			for e, err := range follow(ctx, l.app.Reader(), i) {
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						b.Errorf("follower %d: %v", i, err)
					}
					return
				}
				seen.Add(1)
				if ws := int(e.Workspace); ws < stampedWorkspaces {
					all[ws].see(e.WLogOffset, time.Now())
				}
			}
		})
	}
	b.ResetTimer()
	took := l.run(b, b.N, func(ws messages.WSID, offset messages.WLogOffset) {
		if ws < stampedWorkspaces {
			all[ws].answer(offset, time.Now())
		}
	})
	b.StopTimer()
	cancel()
	running.Wait()
	reportLags(b, all)
	b.ReportMetric(float64(b.N)/took.time.Seconds(), "events/s")
	b.ReportMetric(float64(seen.Load())/took.time.Seconds(), "seen/s")
	l.stop(b)
}

// reportLags reports how long after their answers events were seen.
func reportLags(b *testing.B, all []stamps) {
	lags := sortedLags(b, all)
	for name, q := range map[string]float64{"p50-ms": 0.5, "p99-ms": 0.99, "max-ms": 1} {
		b.ReportMetric(quantile(lags, q), name)
	}
	b.ReportMetric(float64(len(lags)), "lags")
}

func sortedLags(b *testing.B, all []stamps) (lags []time.Duration) {
	for i := range all {
		lags = append(lags, all[i].lags()...)
	}
	if len(lags) == 0 {
		if b.N >= stampedWorkspaces*stampedEvery {
			b.Fatal("nobody saw an event")
		}
		lags = append(lags, 0) // a run that only looks how many make a second
	}
	slices.Sort(lags)
	return lags
}

// quantile is in milliseconds.
func quantile(sorted []time.Duration, q float64) float64 {
	return float64(sorted[int(q*float64(len(sorted)-1))].Microseconds()) / 1000
}

func (s *stamps) answer(offset messages.WLogOffset, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for messages.WLogOffset(len(s.answered)) <= offset {
		s.answered = append(s.answered, time.Time{})
	}
	s.answered[offset] = at
}

func (s *stamps) see(offset messages.WLogOffset, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, sighting{offset, at})
}

// lags returns how long after its answer each event was seen, by each who saw it.
func (s *stamps) lags() (lags []time.Duration) {
	for _, seen := range s.seen {
		if int(seen.offset) < len(s.answered) && !s.answered[seen.offset].IsZero() {
			lags = append(lags, max(0, seen.at.Sub(s.answered[seen.offset])))
		}
	}
	return lags
}

const (
	loadPartitions = 8
	loadWorkspaces = 10_000
	loadCallers    = 256
	// stampedWorkspaces are the first ones, to which one event of so many goes.
	stampedWorkspaces, stampedEvery = 100, 10
)

// readersLoad is an application at full write load.
type readersLoad struct{ *deployment }

func newReadersLoad(b *testing.B) readersLoad {
	descriptor := shop(loadPartitions)
	store := openBolt(b, b.TempDir(), descriptor, bolt.Options{})
	return readersLoad{deploy(b, partition.Application{Descriptor: descriptor}, store, partition.Options{})}
}

// run appends n events, from as many callers as load the disk. answered is told of each.
func (l readersLoad) run(b *testing.B, n int, answered func(messages.WSID, messages.WLogOffset)) effort {
	ctx := context.Background()
	draft := messages.Draft{Wanted: []messages.Wanted{{Seq: seqInvoice, Count: 3}}, Body: make([]byte, 300)}
	var next atomic.Int64
	var running sync.WaitGroup
	before, cpu := time.Now(), cpuTime()
	for range loadCallers {
		running.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				ws := messages.WSID(i % loadWorkspaces)
				if i%stampedEvery == 0 {
					ws = messages.WSID(i / stampedEvery % stampedWorkspaces)
				}
				done, err := l.append(ctx, ws, draft)
				if err != nil {
					b.Error(err)
					return
				}
				answered(ws, done.WLogOffset)
			}
		})
	}
	running.Wait()
	return effort{time: time.Since(before), cpu: cpuTime() - cpu}
}

func (l readersLoad) append(ctx context.Context, ws messages.WSID, draft messages.Draft) (*messages.Appended, error) {
	sequencer, err := l.app.SequencerOf(ws)
	if err != nil {
		return nil, err
	}
	return sequencer.Append(ctx, partition.AppendTo{Workspace: ws, Kind: kindShop}, draft)
}
