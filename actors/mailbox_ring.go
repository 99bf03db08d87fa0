package actors

// minRing is the smallest capacity of a ring that holds anything.
const minRing = 16

// ring is a queue in a circular buffer, whose capacity is 0 or a power of two.
// It doubles when it is full and halves when it has been mostly empty for long,
// so that a steady flow allocates nothing and a burst is given back. The zero
// ring is empty and ready to use. It is not safe for concurrent use.
type ring struct {
	buffer []any
	head   int // index of the first element
	length int
	// calm counts the pops since one that found more than a quarter full.
	calm int
}

func (r *ring) push(v any) {
	if r.length == len(r.buffer) {
		r.resize(max(minRing, 2*len(r.buffer)))
	}
	r.buffer[(r.head+r.length)&(len(r.buffer)-1)] = v
	r.length++
}

// pop removes the first element. There must be one.
func (r *ring) pop() any {
	v := r.buffer[r.head]
	r.buffer[r.head] = nil // do not keep it from the garbage collector
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

// remove removes the element that is v, and reports whether there was one. The
// order of the others stays.
func (r *ring) remove(v any) bool {
	mask := len(r.buffer) - 1
	for i := range r.length {
		if r.buffer[(r.head+i)&mask] != v {
			continue
		}
		for ; i+1 < r.length; i++ {
			r.buffer[(r.head+i)&mask] = r.buffer[(r.head+i+1)&mask]
		}
		r.length--
		r.buffer[(r.head+r.length)&mask] = nil
		return true
	}
	return false
}

// resize moves the elements to a buffer of the given capacity, which must hold
// them.
func (r *ring) resize(capacity int) {
	buffer := make([]any, capacity)
	n := copy(buffer, r.buffer[r.head:min(r.head+r.length, len(r.buffer))])
	copy(buffer[n:], r.buffer[:r.length-n])
	r.buffer, r.head, r.calm = buffer, 0, 0
}
