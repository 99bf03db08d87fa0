package raftlog

import (
	"bytes"
	"slices"
	"sync"
	"testing"
	"time"
)

// BenchmarkAppend writes events of 300 bytes to three nodes in this process, over TCP, each with files of its own: one
// caller, or 256 who wait, whose events go together as one entry a commit.
func BenchmarkAppend(b *testing.B) {
	event := bytes.Repeat([]byte{'e'}, 300)
	for name, callers := range map[string]int{"callers=1": 1, "callers=256": 256} {
		b.Run(name, func(b *testing.B) {
			c := newCluster(b, newSockets(b, false), nil)
			r := newRig(b, c)
			r.lead(nodes[0])
			l := r.log(nodes[0])
			wants := make(chan chan struct{}, callers)
			entries := 0
			var group sync.WaitGroup
			group.Go(func() {
				for first := range wants {
					waiting := []chan struct{}{first}
					for range len(wants) {
						waiting = append(waiting, <-wants)
					}
					if err := l.Append(r.ctx, r.books[nodes[0]].end().Head, bytes.Repeat(event, len(waiting))); err != nil {
						b.Error(err)
					}
					entries++
					for _, w := range waiting {
						close(w)
					}
				}
			})
			took := write(b, wants, callers)
			close(wants)
			group.Wait()
			slices.Sort(took)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(entries)/b.Elapsed().Seconds(), "entries/s")
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

// write lets callers write b.N events, and returns how long each took.
func write(b *testing.B, wants chan<- chan struct{}, callers int) []time.Duration {
	took := make([]time.Duration, b.N)
	next := make(chan int, callers)
	var group sync.WaitGroup
	b.ResetTimer()
	for range callers {
		group.Go(func() {
			for i := range next {
				began, done := time.Now(), make(chan struct{})
				wants <- done
				<-done
				took[i] = time.Since(began)
			}
		})
	}
	for i := range b.N {
		next <- i
	}
	close(next)
	group.Wait()
	b.StopTimer()
	return took
}

// BenchmarkVerify asks for 64 readers.
func BenchmarkVerify(b *testing.B) {
	r := newRig(b, newCluster(b, newSockets(b, false), nil))
	r.lead(nodes[0])
	l := r.log(nodes[0])
	b.SetParallelism(32) // times the processors
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := l.Verify(r.ctx); err != nil {
				b.Error(err)
			}
		}
	})
}
