package linear

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// point is an operation of a long history on one line: the offsets of a log or the
// numbers of a sequence. An event stands at even places, what was read of the line's
// end between two of them.
type point struct {
	line         string
	place        uint64
	call, answer int64
	read         bool
}

// event stands at an offset or number n.
func event(line string, n uint64, call, answer int64) point {
	return point{line: line, place: 2 * n, call: call, answer: answer}
}

// seen is a reader that saw n as the last one.
func seen(line string, n uint64, call, answer int64) point {
	return point{line: line, place: 2*n + 1, call: call, answer: answer, read: true}
}

// disorder returns what contradicts real time, in O(n log n): two events of one place, or two
// points of which the one that comes later on its line had its answer before the other was asked for.
func disorder(points []point) []string {
	slices.SortFunc(points, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.place, b.place))
	})
	var found []string
	// soonest is the point with the first answer among those further along the line.
	soonest := point{answer: math.MaxInt64}
	for end := len(points); end > 0; {
		begin := end - 1
		for begin > 0 && points[begin-1].line == points[begin].line && points[begin-1].place == points[begin].place {
			begin--
		}
		group := points[begin:end]
		if soonest.line != group[0].line {
			soonest = point{line: group[0].line, answer: math.MaxInt64}
		}
		if len(group) > 1 && !group[0].read {
			found = append(found, fmt.Sprintf("%s: given twice: %d", group[0].line, group[0].place/2))
		}
		for _, p := range group {
			if soonest.answer < p.call {
				found = append(found, fmt.Sprintf("%s: %v was answered before %v was asked for", p.line, soonest, p))
			}
		}
		for _, p := range group {
			if p.answer < soonest.answer {
				soonest = p
			}
		}
		end = begin
	}
	return found
}

func (p point) String() string {
	if p.read {
		return fmt.Sprintf("a reader of %d (%d to %d)", p.place/2, p.call, p.answer)
	}
	return fmt.Sprintf("%d (%d to %d)", p.place/2, p.call, p.answer)
}
