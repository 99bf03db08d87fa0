package bolt

import "slices"

// sortKey is a key to sort by, and whose it is.
type sortKey struct {
	key uint64
	at  uint32
}

// Keys are sorted by their digits. That looks at each a few times, where comparing would look at it seventeen times in a
// flush of 131,072 events.
const (
	digitBits = 11
	digits    = 1 << digitBits
)

// sortKeys sorts the keys. Equal ones stay in the order in which they are.
func (p *projection) sortKeys() {
	differ := uint64(0)
	for i := range p.keys {
		differ |= p.keys[i].key ^ p.keys[0].key
	}
	p.spare = slices.Grow(p.spare[:0], len(p.keys))[:len(p.keys)]
	for shift := 0; shift < 64; shift += digitBits {
		if differ>>shift%digits != 0 {
			byDigit(p.spare, p.keys, shift)
			p.keys, p.spare = p.spare, p.keys
			p.s.yield(0)
		}
	}
}

// byDigit copies keys in the order of a digit.
func byDigit(sorted, keys []sortKey, shift int) {
	var next [digits]int
	for i := range keys {
		next[keys[i].key>>shift%digits]++
	}
	end := 0
	for i, n := range next {
		next[i], end = end, end+n
	}
	for _, k := range keys {
		at := &next[k.key>>shift%digits]
		sorted[*at] = k
		*at++
	}
}

// arrange brings items into the order that sorted keys say.
func arrange[T any](items []T, keys []sortKey) {
	for i := range keys {
		first := items[i]
		for at := uint32(i); ; {
			from := keys[at].at
			keys[at].at = at // it is there
			if from == uint32(i) {
				items[at] = first
				break
			}
			items[at] = items[from]
			at = from
		}
	}
}
