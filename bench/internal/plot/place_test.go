package plot

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/plot/vg"
)

func TestLabelsDoNotOverlap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const top = 200
	for range 10_000 {
		labels := make([]label, random.IntN(8)+1)
		for i := range labels {
			labels[i].y = vg.Length(random.Float64() * top)
			if random.IntN(3) == 0 {
				labels[i].y = labels[0].y + vg.Length(random.IntN(3))
			}
			labels[i].y = min(labels[i].y, top)
		}
		heights := place(labels, 0, top)
		for i, h := range heights {
			if h < -1e-6 || h > top+1e-6 {
				t.Fatalf("%v: got %v, want between 0 and %d", labels, heights, top)
			}
			if i > 0 && (h-heights[i-1] < labelHeight-1e-6 || labels[i].y < labels[i-1].y) {
				t.Fatalf("%v: got %v, want %d between neighbours, in order", labels, heights, labelHeight)
			}
		}
	}
}

func TestLabelsStayWhereThereIsRoom(t *testing.T) {
	labels := []label{{y: 100}, {y: 10}, {y: 50}}
	if got, want := place(labels, 0, 200), []vg.Length{10, 50, 100}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	near := []label{{y: 100}, {y: 100}}
	if got, want := place(near, 0, 200), []vg.Length{94, 106}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v: as far below as above", got, want)
	}
}

func TestTicks(t *testing.T) {
	for highest, want := range map[float64][]float64{
		249_159: {0, 100_000, 200_000, 300_000},
		99_000:  {0, 25_000, 50_000, 75_000, 100_000},
		100_000: {0, 25_000, 50_000, 75_000, 100_000},
		160_000: {0, 50_000, 100_000, 150_000, 200_000},
		7:       {0, 2.5, 5, 7.5},
	} {
		if got := linearTicks(highest); !slices.Equal(got, want) {
			t.Errorf("%v: got %v, want %v", highest, got, want)
		}
	}
	for _, tt := range []struct {
		lowest, highest float64
		want            []float64
	}{
		{3305, 249_159, []float64{3000, 10_000, 30_000, 100_000, 300_000}},
		{1000, 100_000, []float64{1000, 3000, 10_000, 30_000, 100_000}},
		{2900, 90_000, []float64{1000, 3000, 10_000, 30_000, 100_000}},
		{5, 6, []float64{3, 10}},
	} {
		if got := logTicks(tt.lowest, tt.highest); !slices.Equal(got, tt.want) {
			t.Errorf("%v to %v: got %v, want %v", tt.lowest, tt.highest, got, tt.want)
		}
	}
}

// Whatever is measured lies between the first and the last tick.
func TestTicksHoldEverything(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 10_000 {
		lowest := math.Pow(10, random.Float64()*6)
		highest := lowest * (1 + random.Float64()*100)
		linear, log := linearTicks(highest), logTicks(lowest, highest)
		if linear[0] != 0 || linear[len(linear)-1] < highest || len(linear) < 4 || len(linear) > 6 {
			t.Errorf("up to %v: got %v", highest, linear)
		}
		if log[0] > lowest || log[len(log)-1] < highest {
			t.Errorf("%v to %v: got %v", lowest, highest, log)
		}
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 999: "999", 1000: "1,000", 1_000_000: "1,000,000"} {
		if got := thousands(n); got != want {
			t.Errorf("%v: got %q, want %q", n, got, want)
		}
	}
	for n, want := range map[float64]string{5: "5", 437: "437", 6944: "6,940", 68_730: "68,700", 249_900: "250,000"} {
		if got := rounded(n); got != want {
			t.Errorf("%v: got %q, want %q", n, got, want)
		}
	}
}
