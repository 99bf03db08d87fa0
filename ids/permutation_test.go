package ids_test

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/partita-go/partita/ids"
)

func permutation(t testing.TB, key uint64, bits int) ids.Permutation {
	t.Helper()
	var k [16]byte
	binary.LittleEndian.PutUint64(k[:], key)
	p, err := ids.NewPermutation(k, bits)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Of each small domain each number comes out once, and leads back.
func TestPermutationIsBijective(t *testing.T) {
	for bits := 1; bits <= 16; bits++ {
		for key := range uint64(3) {
			p, seen := permutation(t, key, bits), make([]bool, 1<<bits)
			for n := uint64(1); n < 1<<bits; n++ {
				out := p.Scatter(n)
				if out == 0 || out >= 1<<bits || seen[out] {
					t.Fatalf("%d bits, key %d: %d becomes %d, which is outside or taken", bits, key, n, out)
				}
				seen[out] = true
				if back := p.Gather(out); back != n {
					t.Fatalf("%d bits, key %d: %d comes back as %d", bits, key, n, back)
				}
			}
		}
	}
}

func TestPermutationLeadsBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		bits := rapid.IntRange(1, 63).Draw(rt, "bits")
		p := permutation(t, rapid.Uint64().Draw(rt, "key"), bits)
		n := rapid.Uint64Range(1, 1<<bits-1).Draw(rt, "n")
		out := p.Scatter(n)
		if out == 0 || out >= 1<<bits {
			rt.Errorf("%d becomes %d, want 1 to %d", n, out, uint64(1)<<bits-1)
		}
		if back := p.Gather(out); back != n {
			rt.Errorf("%d becomes %d, which comes back as %d", n, out, back)
		}
		if forth := p.Scatter(p.Gather(n)); forth != n {
			rt.Errorf("%d back and forth is %d", n, forth)
		}
	})
}

// What is not in the domain becomes 0, and so does all without a key.
func TestPermutationOfWhatIsOutside(t *testing.T) {
	for _, bits := range []int{1, 2, 53, 63} {
		p := permutation(t, 1, bits)
		for _, n := range []uint64{0, 1 << bits, 1<<bits + 1, math.MaxUint64} {
			if p.Scatter(n) != 0 || p.Gather(n) != 0 {
				t.Errorf("%d bits: %d becomes %d and %d, want 0", bits, n, p.Scatter(n), p.Gather(n))
			}
		}
	}
	if n := (ids.Permutation{}).Scatter(1); n != 0 {
		t.Errorf("got %d, want 0", n)
	}
	for _, bits := range []int{-1, 0, 64} {
		if _, err := ids.NewPermutation([16]byte{}, bits); !errors.Is(err, ids.ErrDomain) {
			t.Errorf("%d bits: got %v, want ErrDomain", bits, err)
		}
	}
}

// Ids that are in use depend on it: it never changes.
func TestPermutationStays(t *testing.T) {
	key := [16]byte([]byte("0123456789abcdef"))
	for bits, want := range permuted {
		p, err := ids.NewPermutation(key, bits)
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range want {
			if got := p.Scatter(uint64(i + 1)); got != w {
				t.Errorf("%d bits: %d becomes %d, want %d", bits, i+1, got, w)
			}
		}
	}
}

// permuted was computed by another program, with SipHash and the network written anew.
var permuted = map[int][]uint64{
	3:  {5, 3, 7, 6, 4, 1, 2},
	53: {4991978533403793, 3655540233194928, 6015171534930460},
	63: {2835683163467541517, 6947126136236359791, 3077851185161703390},
}

// Numbers that follow each other come out as if they were drawn: each part of the result, the distance to the next one, and
// where one number goes under many keys are spread evenly. The keys are always the same, so that it is passed or not.
func TestPermutationSpreads(t *testing.T) {
	const n, bins = 1 << 16, 256
	for key := range uint64(4) {
		p := permutation(t, key, 63)
		high, low, distance := make([]int, bins), make([]int, bins), make([]int, bins)
		before := p.Scatter(1)
		for i := uint64(2); i < n+2; i++ {
			out := p.Scatter(i)
			high[out>>55]++
			low[out%bins]++
			distance[(out-before)<<1>>56]++
			before = out
		}
		even(t, "highest bits", high)
		even(t, "lowest bits", low)
		even(t, "distances", distance)
	}
	for _, bits := range []int{5, 8, 9} {
		for _, number := range []uint64{1, 2, 1<<bits - 1} {
			images := make([]int, 1<<bits-1)
			for key := range uint64(100 << bits) {
				images[permutation(t, key, bits).Scatter(number)-1]++
			}
			even(t, "images under many keys", images)
		}
	}
}

// even is Pearson's chi-squared test. With k degrees of freedom the statistic is about normal, of mean k and
// variance 2k: beyond 5 standard deviations is one in millions.
func even(t *testing.T, what string, bins []int) {
	t.Helper()
	total := 0
	for _, n := range bins {
		total += n
	}
	expected, statistic := float64(total)/float64(len(bins)), 0.0
	for _, n := range bins {
		statistic += (float64(n) - expected) * (float64(n) - expected) / expected
	}
	k := float64(len(bins) - 1)
	if limit := 5 * math.Sqrt(2*k); math.Abs(statistic-k) > limit {
		t.Errorf("%s: chi-squared of %d bins: got %.0f, want %.0f within %.0f", what, len(bins), statistic, k, limit)
	}
}
