package soak

import (
	"fmt"
	"slices"
	"testing"
)

// verdict says whether something has grown.
type verdict struct {
	what          string
	before, after int64
	most          int64
	// missing says that there was nothing to judge by.
	missing bool
}

func (v verdict) right() bool { return !v.missing && v.after <= v.most }

func (v verdict) String() string {
	if v.missing {
		return fmt.Sprintf("soak: %s: not enough samples", v.what)
	}
	word := "ok"
	if !v.right() {
		word = "GROWN"
	}
	return fmt.Sprintf("soak: %s: %d, then %d, at most %d: %s", v.what, v.before, v.after, v.most, word)
}

const mebi = 1 << 20

// judge compares what there was under load in the second quarter with what there was in
// the last one, as medians, and what was left at rest: after the first store that is
// what libraries keep for good, and never more later. Memory is judged if the load was
// long enough.
func judge(samples []sample, memory bool) []verdict {
	var loaded, atRest []sample
	for _, s := range samples {
		if s.Rest {
			atRest = append(atRest, s)
		} else {
			loaded = append(loaded, s)
		}
	}
	live := func(s *sample) int64 { return s.Live }
	goroutines := func(s *sample) int64 { return s.Goroutines }
	descriptors := func(s *sample) int64 { return s.Descriptors }
	actors := func(s *sample) int64 { return s.Actors }
	verdicts := []verdict{
		neverMore("goroutines at rest", atRest, goroutines),
		neverMore("open files at rest", atRest, descriptors),
		neverMore("actors at rest", atRest, actors),
	}
	if !memory {
		return verdicts
	}
	return append(verdicts,
		flat("heap under load", loaded, live, 110, 16*mebi),
		flat("heap at rest", atRest, live, 100, mebi),
		flat("goroutines under load", loaded, goroutines, 110, 16),
		flat("open files under load", loaded, descriptors, 100, 2))
}

// flat compares the medians of the second and of the last quarter. The last one may be so
// many percent of the second, and so much more.
func flat(what string, samples []sample, of func(*sample) int64, percent, more int64) verdict {
	quarter := len(samples) / 4
	if quarter == 0 {
		return verdict{what: what, missing: true}
	}
	before, after := median(samples[quarter:2*quarter], of), median(samples[len(samples)-quarter:], of)
	return verdict{what: what, before: before, after: after, most: before*percent/100 + more}
}

func median(samples []sample, of func(*sample) int64) int64 {
	values := make([]int64, len(samples))
	for i := range samples {
		values[i] = of(&samples[i])
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// neverMore compares the first with the largest of the others.
func neverMore(what string, samples []sample, of func(*sample) int64) verdict {
	if len(samples) < 2 {
		return verdict{what: what, missing: true}
	}
	first, largest := of(&samples[0]), of(&samples[1])
	for i := range samples[1:] {
		largest = max(largest, of(&samples[1+i]))
	}
	return verdict{what: what, before: first, after: largest, most: first}
}

// grown returns which verdicts are not right.
func grown(verdicts []verdict) (names []string) {
	for _, v := range verdicts {
		if !v.right() {
			names = append(names, v.what)
		}
	}
	return names
}

func TestJudge(t *testing.T) {
	made := func(change func(i int, s *sample)) []sample {
		var all []sample
		for i := range 400 {
			s := sample{Rest: i%20 == 19, Live: 100*mebi + int64(i%7)*mebi, Goroutines: 500 + int64(i%9), Descriptors: 9}
			if s.Rest {
				s.Live, s.Goroutines, s.Descriptors = 20*mebi, 12, 7
			}
			change(i, &s)
			all = append(all, s)
		}
		return all
	}
	for name, tt := range map[string]struct {
		change func(i int, s *sample)
		want   []string
	}{
		"flat": {func(int, *sample) {}, nil},
		"a cache fills": {func(i int, s *sample) {
			if i < 100 {
				s.Live /= 2
			}
		}, nil},
		"heap grows": {func(i int, s *sample) { s.Live += int64(i) * mebi / 5 }, []string{"heap under load", "heap at rest"}},
		"a little is left of each store": {func(i int, s *sample) {
			if s.Rest {
				s.Live += int64(i) * 8 << 10
			}
		}, []string{"heap at rest"}},
		"a goroutine is left": {func(i int, s *sample) { s.Goroutines += int64(i / 399) }, []string{"goroutines at rest"}},
		"a file is left open": {func(i int, s *sample) { s.Descriptors += int64(i / 399) }, []string{"open files at rest"}},
		"an actor is left":    {func(i int, s *sample) { s.Actors += int64(i / 399) }, []string{"actors at rest"}},
		"goroutines grow": {func(i int, s *sample) {
			if !s.Rest {
				s.Goroutines += int64(i)
			}
		}, []string{"goroutines under load"}},
	} {
		if got := grown(judge(made(tt.change), true)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
	if got := grown(judge(nil, true)); len(got) != 7 {
		t.Errorf("without samples: got %q, want all", got)
	}
}
