// Package deque is a queue whose items keep their index for life. The tails of partitions are made of it.
package deque

// chunkLen is how many items a chunk holds: large enough to keep the number of
// allocations low. One that has been begun grows to it from firstChunk, for the sake of
// thousands of partitions with a tail of an event or two.
const (
	chunkLen   = 64
	firstChunk = 2
)

// Deque is a queue whose items keep their index for life: pushed at the end,
// dropped at the front. Its items must hold no pointers, so that the garbage
// collector passes a tail of millions of items by.
type Deque[T any] struct {
	chunks [][]T
	// base is the index of the first item of the first chunk.
	base uint64
	// First and End delimit the items that are there.
	First, End uint64
}

// Restart empties the deque; the next item pushed has the index given.
func (d *Deque[T]) Restart(index uint64) {
	*d = Deque[T]{base: index, First: index, End: index}
}

// Len returns how many items there are.
func (d *Deque[T]) Len() int { return int(d.End - d.First) }

// Push appends an item.
func (d *Deque[T]) Push(item T) {
	i := d.End - d.base
	switch c := int(i / chunkLen); {
	case c == 0 && len(d.chunks) == 0:
		d.chunks = append(d.chunks, make([]T, firstChunk))
	case c == len(d.chunks):
		d.chunks = append(d.chunks, make([]T, chunkLen))
	case int(i%chunkLen) == len(d.chunks[c]):
		grown := make([]T, min(chunkLen, 4*len(d.chunks[c])))
		copy(grown, d.chunks[c])
		d.chunks[c] = grown
	}
	*d.slot(d.End) = item
	d.End++
}

// At returns the item at an index from First up to, not including, End.
func (d *Deque[T]) At(index uint64) *T { return d.slot(index) }

func (d *Deque[T]) slot(index uint64) *T {
	i := index - d.base
	return &d.chunks[i/chunkLen][i%chunkLen]
}

// Copy appends the items from an index up to, not including, another.
func (d *Deque[T]) Copy(to []T, from, end uint64) []T {
	for from < end {
		i := from - d.base
		n := min(end-from, chunkLen-i%chunkLen)
		to = append(to, d.chunks[i/chunkLen][i%chunkLen:][:n]...)
		from += n
	}
	return to
}

// Drop removes all items before an index, which is at most end.
func (d *Deque[T]) Drop(index uint64) {
	d.First = index
	if d.First == d.End {
		d.Restart(d.End)
		return
	}
	n := (d.First - d.base) / chunkLen
	clear(d.chunks[:n])
	d.chunks = d.chunks[n:]
	d.base += n * chunkLen
}
