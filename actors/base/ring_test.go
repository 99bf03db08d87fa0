package base

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestRingIsAQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r ring[any]
		var model []any
		n := 0
		for range rapid.IntRange(1, 40).Draw(t, "rounds") {
			for range rapid.IntRange(0, 100).Draw(t, "pushes") {
				n++
				r.push(n)
				model = append(model, n)
			}
			for range min(len(model), rapid.IntRange(0, 120).Draw(t, "pops")) {
				if got := r.pop(); got != model[0] {
					t.Fatalf("got %v, want %v", got, model[0])
				}
				model = model[1:]
			}
			for range rapid.IntRange(0, 3).Draw(t, "removals") {
				v := rapid.IntRange(0, n).Draw(t, "removed")
				at := slices.Index(model, any(v))
				if _, was := r.remove(func(have any) bool { return have == v }); was != (at >= 0) {
					t.Fatalf("remove %d: want %v", v, at >= 0)
				}
				if at >= 0 {
					model = slices.Delete(model, at, at+1)
				}
			}
			if r.length != len(model) {
				t.Fatalf("got length %d, want %d", r.length, len(model))
			}
			queued := 0
			for _, v := range r.buffer {
				if v != nil {
					queued++
				}
			}
			if queued != len(model) {
				t.Fatalf("the buffer holds on to %d values, %d are queued", queued, len(model))
			}
		}
	})
}

func TestRingGivesBackABurst(t *testing.T) {
	var r ring[any]
	for n := range 10_000 {
		r.push(n)
	}
	for r.length > 0 {
		r.pop()
	}
	for range 40_000 {
		r.push(1)
		r.pop()
	}
	if len(r.buffer) != minRing {
		t.Errorf("got capacity %d long after a burst, want %d", len(r.buffer), minRing)
	}
}

func TestRingAllocatesNothingInASteadyFlow(t *testing.T) {
	for _, burst := range []int{1, minRing, 64, 100, 1000} {
		var r ring[any]
		value := any(&r)
		round := func() {
			for range burst {
				r.push(value)
			}
			for range burst {
				r.pop()
			}
		}
		round()
		if n := testing.AllocsPerRun(100, round); n > 0 {
			t.Errorf("bursts of %d: got %v allocations a burst", burst, n)
		}
	}
}

func TestRingKeepsOrderAcrossResizes(t *testing.T) {
	var r ring[any]
	for n := range minRing {
		r.push(n)
	}
	for range 5 {
		r.push(r.pop()) // the head is not at 0 any more
	}
	r.push(minRing)
	want := []any{5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 16}
	var got []any
	for r.length > 0 {
		got = append(got, r.pop())
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
