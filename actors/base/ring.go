package base

// firstRing is the capacity of a ring that holds anything for the first time: most rings of
// thousands of actors never hold more. minRing is the smallest that one shrinks to.
const (
	firstRing = 2
	minRing   = 16
)

// ring is a queue in a circular buffer, whose capacity is 0 or a power of two.
// It doubles when it is full and halves when it has been mostly empty for long,
// so that a steady flow allocates nothing and a burst is given back. The zero
// ring is empty and ready to use. It is not safe for concurrent use.
type ring[T any] struct {
	buffer []T
	head   int // index of the first element
	length int
	// calm counts the pops since one that found more than a quarter full.
	calm int
}

func (r *ring[T]) push(v T) {
	if r.length == len(r.buffer) {
		r.resize(max(firstRing, 2*len(r.buffer)))
	}
	r.buffer[(r.head+r.length)&(len(r.buffer)-1)] = v
	r.length++
}

// pop removes the first element. There must be one.
func (r *ring[T]) pop() T {
	v := r.buffer[r.head]
	clear(r.buffer[r.head : r.head+1]) // do not keep it from the garbage collector
	r.head = (r.head + 1) & (len(r.buffer) - 1)
	if r.length > len(r.buffer)/4 {
		r.calm = 0
	} else {
		r.calm++
	}
	r.length--
	if r.calm >= len(r.buffer) && len(r.buffer) > minRing {
		r.resize(len(r.buffer) / 2)
	}
	return v
}

// remove removes the first element that is the one, and reports whether there was one. The
// order of the others stays.
func (r *ring[T]) remove(isIt func(T) bool) (removed T, was bool) {
	mask := len(r.buffer) - 1
	for i := range r.length {
		removed = r.buffer[(r.head+i)&mask]
		if !isIt(removed) {
			continue
		}
		for ; i+1 < r.length; i++ {
			r.buffer[(r.head+i)&mask] = r.buffer[(r.head+i+1)&mask]
		}
		r.length--
		last := (r.head + r.length) & mask
		clear(r.buffer[last : last+1])
		return removed, true
	}
	return removed, false
}

// resize moves the elements to a buffer of the given capacity, which must hold
// them.
func (r *ring[T]) resize(capacity int) {
	buffer := make([]T, capacity)
	n := copy(buffer, r.buffer[r.head:min(r.head+r.length, len(r.buffer))])
	copy(buffer[n:], r.buffer[:r.length-n])
	r.buffer, r.head, r.calm = buffer, 0, 0
}
