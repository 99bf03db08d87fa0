package meter

import (
	"math/bits"
	"sync/atomic"

	"github.com/partita-go/partita/storage"
)

// spreadBounds is how many bounds a spread has: 1, 2, 4 … in whole units. So times in microseconds go up to 16 s,
// sizes in bytes up to 16 MiB.
const spreadBounds = 25

// spread counts values by their size. It is safe for concurrent use.
type spread struct {
	counts [spreadBounds + 1]atomic.Uint64
	sum    atomic.Uint64
}

func (s *spread) add(value uint64) {
	bound := 0
	if value > 1 {
		bound = min(bits.Len64(value-1), spreadBounds)
	}
	s.sum.Add(value)
	s.counts[bound].Add(1)
}

// spread returns the values, which were counted in a unit.
func (s *spread) spread(unit float64) storage.Spread {
	out := storage.Spread{Sum: float64(s.sum.Load()) * unit}
	for i := range spreadBounds {
		out.Count += s.counts[i].Load()
		out.Bounds = append(out.Bounds, float64(uint64(1)<<i)*unit)
		out.AtMost = append(out.AtMost, out.Count)
	}
	out.Count += s.counts[spreadBounds].Load()
	return out
}
