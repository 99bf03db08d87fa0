package verify

import "math/bits"

// findings are the faults of a pass that depend on what the sieve selects: what it does
// not select any more is found again by a later pass, and must not count twice.
//
// A fault's class goes by how far its hash is from the first one that the sieve selects,
// in bits, which is what narrowing goes by. Class 0 are all other faults.
type findings struct {
	counts [2 + 64]uint64
	// classes are those of the faults in words, as far as there are any but 0.
	classes []int
}

// mark is how many faults there were at some moment.
type mark struct {
	count uint64
	words int
}

func (f *files) mark() mark { return mark{count: f.report.FaultCount, words: len(f.report.Faults)} }

func classOf(distance uint64) int { return 1 + bits.Len64(distance) }

// note notes the faults since a mark as those of a hash.
func (s *findings) note(r *Report, since mark, distance uint64) {
	if r.FaultCount == since.count {
		return
	}
	s.counts[classOf(distance)] += r.FaultCount - since.count
	for len(s.classes) < since.words {
		s.classes = append(s.classes, 0)
	}
	for len(s.classes) < len(r.Faults) {
		s.classes = append(s.classes, classOf(distance))
	}
}

// drop takes back the faults of hashes further from the first than width.
func (s *findings) drop(r *Report, width uint64) {
	largest := classOf(width)
	for class := largest + 1; class < len(s.counts); class++ {
		r.FaultCount -= s.counts[class]
		s.counts[class] = 0
	}
	kept, classes := r.Faults[:0], s.classes[:0]
	for i, fault := range r.Faults {
		class := 0
		if i < len(s.classes) {
			class = s.classes[i]
		}
		if class <= largest {
			kept, classes = append(kept, fault), append(classes, class)
		}
	}
	r.Faults, s.classes = kept, classes
}
