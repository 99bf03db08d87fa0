package ids_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/partita-go/partita/ids"
)

// hurried is a clock that goes on by a second each time that the chunks of one are asked for: nobody waits, though ids
// are taken faster than the layout has them.
type hurried struct {
	asked atomic.Int64
}

func (h *hurried) Now() time.Time { return time.Unix(1_800_000_000+h.asked.Add(1)/4000, 0) }

func (h *hurried) AfterFunc(d time.Duration, f func()) ids.Timer { return time.AfterFunc(d, f) }

func BenchmarkTraceID(b *testing.B) {
	for _, kind := range []struct {
		name    string
		ordered bool
	}{{"chunks=own", false}, {"chunks=one", true}} {
		b.Run(kind.name+"/goroutines=1", func(b *testing.B) {
			g := hurriedGenerator(b, kind.ordered)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := g.Next(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(kind.name+"/goroutines=processors", func(b *testing.B) {
			g, ctx := hurriedGenerator(b, kind.ordered), b.Context()
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := g.Next(ctx); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

// hurriedGenerator returns one whose first second has passed.
func hurriedGenerator(b *testing.B, ordered bool) *ids.TraceGenerator {
	clock := new(hurried)
	g := ids.NewTraceGenerator(7, ids.TraceOptions{Clock: clock, Ordered: ordered})
	clock.asked.Add(4000)
	return g
}

func BenchmarkDecimalID(b *testing.B) {
	g, err := ids.NewDecimalGenerator(b.Context(), new(counter), 1)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Next(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPermutation(b *testing.B) {
	p, err := ids.NewPermutation([16]byte{1}, 63)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	n := uint64(1)
	for b.Loop() {
		n = p.Scatter(n)
	}
}
