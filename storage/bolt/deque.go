package bolt

// dequeChunk is how many items a chunk holds: large enough to keep the number of
// allocations low. One that has been begun grows to it from firstChunk, for the sake of
// thousands of partitions with a tail of an event or two.
const (
	dequeChunk = 64
	firstChunk = 2
)

// deque is a queue whose items keep their index for life: pushed at the end,
// dropped at the front. Its items must hold no pointers, so that the garbage
// collector passes a tail of millions of items by.
type deque[T any] struct {
	chunks [][]T
	// base is the index of the first item of the first chunk.
	base uint64
	// first and end delimit the items that are there.
	first, end uint64
}

// restart empties the deque; the next item pushed has the index given.
func (d *deque[T]) restart(index uint64) {
	*d = deque[T]{base: index, first: index, end: index}
}

func (d *deque[T]) len() int { return int(d.end - d.first) }

func (d *deque[T]) push(item T) {
	i := d.end - d.base
	switch c := int(i / dequeChunk); {
	case c == 0 && len(d.chunks) == 0:
		d.chunks = append(d.chunks, make([]T, firstChunk))
	case c == len(d.chunks):
		d.chunks = append(d.chunks, make([]T, dequeChunk))
	case int(i%dequeChunk) == len(d.chunks[c]):
		grown := make([]T, min(dequeChunk, 4*len(d.chunks[c])))
		copy(grown, d.chunks[c])
		d.chunks[c] = grown
	}
	*d.slot(d.end) = item
	d.end++
}

// at returns the item at an index from first up to, not including, end.
func (d *deque[T]) at(index uint64) *T { return d.slot(index) }

func (d *deque[T]) slot(index uint64) *T {
	i := index - d.base
	return &d.chunks[i/dequeChunk][i%dequeChunk]
}

// drop removes all items before an index, which is at most end.
func (d *deque[T]) drop(index uint64) {
	d.first = index
	if d.first == d.end {
		d.restart(d.end)
		return
	}
	n := (d.first - d.base) / dequeChunk
	clear(d.chunks[:n])
	d.chunks = d.chunks[n:]
	d.base += n * dequeChunk
}
