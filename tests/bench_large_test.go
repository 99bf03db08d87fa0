package tests

import (
	"context"
	"errors"
	"fmt"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
)

// BenchmarkWaiting measures the heap while callers wait for a place, all with one body of
// 4 MiB: what is more than before.
func BenchmarkWaiting(b *testing.B) {
	for _, bounds := range []int{1 << 20, 0} {
		name := "default"
		if bounds != 0 {
			name = fmt.Sprintf("%dMiB", bounds>>20)
		}
		for _, callers := range []int{64, 512} {
			b.Run(fmt.Sprintf("bounds=%s/callers=%d", name, callers), func(b *testing.B) {
				for b.Loop() {
					waiting(b, bounds, callers)
				}
				b.ReportMetric(0, "ns/op") // it is the time of the row
			})
		}
	}
}

// held answers nobody before it is released.
type held struct {
	nowhere
	released chan struct{}
}

func (h *held) Submit(_ storage.Batch, done func(error)) bool {
	go func() {
		<-h.released
		done(nil)
	}()
	return true
}

// arrivals counts the appends that have come.
type arrivals struct {
	left atomic.Int64
	all  chan struct{}
}

func (a *arrivals) Posted(_ actors.Key, message any) {
	if _, ok := message.(*messages.Append); ok && a.left.Add(-1) == 0 {
		close(a.all)
	}
}

func (*arrivals) Taken(actors.Key, any)   {}
func (*arrivals) Handled(actors.Key, any) {}

// waiting has callers on a partition whose lane, and what it has in flight, are bounded by so
// many bytes, 0: by the defaults.
func waiting(b *testing.B, bounds, callers int) {
	d := shop(1)
	store := &held{nowhere: nowhere{descriptor: d.Normalized()}, released: make(chan struct{})}
	come := &arrivals{all: make(chan struct{})}
	come.left.Store(int64(callers))
	parts := partition.NewAppParts(system, partition.Options{Observer: come})
	app := must(parts.Deploy(limit(b), partition.Application{
		Descriptor: d, RequestLaneBytes: bounds, Settings: partition.Settings{InFlightBytes: bounds},
	}, store))(b)
	check(b, app.Ready(limit(b)))
	sequencer := must(app.Sequencer(0))(b)
	draft := messages.Draft{Body: make([]byte, 4<<20)}
	ctx, leave := context.WithCancel(context.Background())
	before := heap()
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			_, _ = sequencer.Append(ctx, partition.AppendTo{Workspace: 1, Kind: kindShop, Wait: true}, draft)
		})
	}
	<-come.all
	b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
	leave()
	all.Wait()
	close(store.released)
	check(b, parts.Close(limit(b)))
}

// BenchmarkBesideLarge measures how long small appends take while callers of other
// partitions append groups of 16 MiB, as large as they may be by default. Each row is
// measured once, for some seconds.
func BenchmarkBesideLarge(b *testing.B) {
	for _, large := range []int{0, 1, 4, 8} {
		b.Run(fmt.Sprintf("large=%d", large), func(b *testing.B) {
			for b.Loop() {
				besideLarge(b, large)
			}
		})
	}
}

const (
	besideTime  = 8 * time.Second
	besideSmall = 8
	// A group is this many drafts of bodies of about 1 MiB.
	besideDrafts = 16
	besideBody   = 1<<20 - 512
)

// besideLarge has callers of small appends and of large groups, each on a partition of his own.
func besideLarge(b *testing.B, large int) {
	b.StopTimer()
	d := shop(uint32(besideSmall + large))
	store := must(bolt.Open(limit(b), b.TempDir(), d, bolt.Options{Create: true}))(b)
	parts := partition.NewAppParts(system, partition.Options{})
	app := must(parts.Deploy(limit(b), partition.Application{WorkspaceZero: true, Descriptor: d}, store))(b)
	check(b, app.Ready(limit(b)))
	ctx, cancel := context.WithTimeout(context.Background(), besideTime)
	defer cancel()
	var groups atomic.Int64
	took := make([][]time.Duration, besideSmall)
	most := peakHeap(ctx)
	group := make([]messages.Draft, besideDrafts)
	body := make([]byte, besideBody)
	for i := range group {
		group[i].Body = body
	}
	b.StartTimer()
	var all sync.WaitGroup
	for n := range large {
		all.Go(func() {
			to := partition.AppendTo{Workspace: workspaceIn(d, besideSmall+n), Kind: kindShop, Wait: true}
			for untilEnd(ctx, b, func() error {
				_, err := must(app.SequencerOf(to.Workspace))(b).AppendAll(ctx, to, group)
				return err
			}) {
				groups.Add(1)
			}
		})
	}
	for n := range besideSmall {
		all.Go(func() {
			to := partition.AppendTo{Workspace: workspaceIn(d, n), Kind: kindShop, Wait: true}
			draft := messages.Draft{Wanted: []messages.Wanted{{Seq: seqInvoice}}, Body: make([]byte, 300)}
			for begun := time.Now(); untilEnd(ctx, b, func() error {
				_, err := must(app.SequencerOf(to.Workspace))(b).Append(ctx, to, draft)
				return err
			}); begun = time.Now() {
				took[n] = append(took[n], time.Since(begun))
			}
		})
	}
	all.Wait()
	b.StopTimer()
	sorted := slices.Sorted(slices.Values(slices.Concat(took...)))
	for name, at := range map[string]int{"p50-ms": len(sorted) / 2, "p99-ms": len(sorted) * 99 / 100, "max-ms": len(sorted) - 1} {
		b.ReportMetric(float64(sorted[at].Microseconds())/1000, name)
	}
	b.ReportMetric(float64(<-most)/(1<<20), "peak-MiB")
	b.ReportMetric(float64(len(sorted))/besideTime.Seconds(), "small/s")
	b.ReportMetric(float64(groups.Load()*besideDrafts)/besideTime.Seconds(), "large-MiB/s")
	b.ReportMetric(0, "ns/op") // it is the time of the row
	check(b, parts.Close(limit(b)))
	check(b, store.Close(limit(b)))
	b.StartTimer()
}

// peakHeap tells, when the context has ended, how large the heap was at the most, garbage
// included.
func peakHeap(ctx context.Context) <-chan uint64 {
	result := make(chan uint64, 1)
	go func() {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for most := uint64(0); ; {
			metrics.Read(sample)
			most = max(most, sample[0].Value.Uint64())
			select {
			case <-tick.C:
			case <-ctx.Done():
				result <- most
				return
			}
		}
	}()
	return result
}

// untilEnd does something again and again, and reports whether it was done: it ends with the
// context. Whoever is told to come back later does so at once.
func untilEnd(ctx context.Context, b *testing.B, do func() error) bool {
	for ctx.Err() == nil {
		switch err := do(); {
		case err == nil:
			return true
		case errors.Is(err, messages.ErrDeadlineExceeded):
			return false // which is that of the context
		case ctx.Err() == nil && !errors.Is(err, partition.ErrBusy):
			b.Error(err)
			return false
		}
	}
	return false
}

// workspaceIn returns a workspace of a partition.
func workspaceIn(d messages.Descriptor, p int) messages.WSID {
	ws := messages.WSID(1)
	for messages.PartitionOf(ws, d.Partitions) != messages.PartitionID(p) {
		ws++
	}
	return ws
}
