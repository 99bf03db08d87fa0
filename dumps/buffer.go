package dumps

import (
	"math/rand/v2"
	"runtime"
	"sync"
)

// buffer is where the lines of one processor wait to be written.
type buffer struct {
	mu     sync.Mutex
	lines  []byte
	closed bool
	// It is alone in its cache lines: each processor changes its own.
	_ [128]byte
}

// buffers are as many as there are processors. Nobody knows on which one he runs: one is drawn, and
// another one taken if somebody else has it. The lock is held while bytes are copied, never longer.
type buffers struct {
	each []buffer
	size int
	// some has an element when there is something to write, much when a buffer is half full.
	some, much chan struct{}
}

// newBuffers shares memory between the buffers and the piece that is being written.
func newBuffers(memory int) *buffers {
	n := runtime.GOMAXPROCS(0)
	return &buffers{each: make([]buffer, n), size: memory / (n + 1), some: make(chan struct{}, 1), much: make(chan struct{}, 1)}
}

// add reports whether there was room for a line.
func (b *buffers) add(line []byte) bool {
	own := b.lock()
	before := len(own.lines)
	added := !own.closed && before+len(line) <= b.size
	if added {
		if own.lines == nil {
			own.lines = make([]byte, 0, b.size) // the first line: nobody who dumps nothing pays for it
		}
		own.lines = append(own.lines, line...)
	}
	own.mu.Unlock()
	switch half := b.size / 2; {
	case !added:
	case before == 0:
		signal(b.some)
	case before < half && before+len(line) >= half:
		signal(b.much)
	}
	return added
}

func (b *buffers) lock() *buffer {
	first := rand.IntN(len(b.each))
	for i := range b.each {
		if own := &b.each[(first+i)%len(b.each)]; own.mu.TryLock() {
			return own
		}
	}
	own := &b.each[first]
	own.mu.Lock()
	return own
}

// take exchanges the memory of the ith buffer for an empty one.
func (b *buffers) take(i int, empty []byte) []byte {
	own := &b.each[i]
	own.mu.Lock()
	defer own.mu.Unlock()
	lines := own.lines
	own.lines = empty
	return lines
}

// close lets nothing more in.
func (b *buffers) close() {
	for i := range b.each {
		b.each[i].mu.Lock()
		b.each[i].closed = true
		b.each[i].mu.Unlock()
	}
}

func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
