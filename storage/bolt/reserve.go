package bolt

import (
	"math"
	"os"
	"sync"
	"sync/atomic"
)

// A commit that writes where the file has no blocks yet waits for the file system's
// journal too, and for what else that is about to write: 0.34 ms instead of 0.21, and
// 1.2 ms instead of 0.55 while a flush is being synced. So zeroes are written behind
// the end of log.db before the log comes there.
const (
	// reserveChunk is what is written at a time.
	reserveChunk = 1 << 20
	// A log shorter than this has no reserve. A longer one has a quarter of its
	// length, up to reserveMost.
	reserveFrom = 16 << 20
	reserveMost = 64 << 20
	// reserveSlack is what a commit may take beyond twice the size of what it writes: the
	// pages that lead to it. It is many times that, since a page beyond would be lost.
	reserveSlack = 32 << 20
)

// reserve writes zeroes ahead of the log. The committer says before each commit how
// far it may write; the reserve keeps behind that.
type reserve struct {
	file *os.File
	// zeroes is a chunk, aligned as direct writes want it.
	zeroes []byte
	// limit is the largest size of the file, 0 if there is none; a log shorter than
	// least has no reserve.
	limit, least int64

	// bound is how far the committer may write, from where the next chunk goes: no
	// chunk is ever written before it. It is math.MaxInt64 until there is one.
	bound, from atomic.Int64
	// writing is held while a chunk is written.
	writing sync.Mutex
	wake    chan struct{}
	ended   chan struct{}
}

// newReserve returns the reserve of a log, nil if the system has no direct writes:
// others would make the commits wait for them. It writes to no other file, if that
// has come to the log's place.
func newReserve(log *os.File, path string, limit int64) *reserve {
	out, zeroes := openDirect(path, reserveChunk)
	if out == nil {
		return nil
	}
	if !isSame(log, out) {
		closeDirect(out, zeroes)
		return nil
	}
	r := &reserve{file: out, zeroes: zeroes, limit: limit, least: reserveFrom, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	r.from.Store(math.MaxInt64)
	return r
}

// claim leaves the space to a commit of so many bytes that begins when the log's
// pages end at end.
func (r *reserve) claim(end, bytes int64) {
	if r == nil {
		return
	}
	bound := end + 2*bytes + reserveSlack
	r.bound.Store(bound) // before from is read: see start
	from := r.from.Load()
	if bound > from {
		// A chunk may be on its way there.
		r.writing.Lock()
		r.from.Store(max(r.from.Load(), bound))
		r.writing.Unlock()
	}
	if end >= r.least && (from == math.MaxInt64 || bound+aheadOf(end)/2 > from) {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
}

// aheadOf is how much is reserved behind a log.
func aheadOf(end int64) int64 { return min(end/4, reserveMost) }

// run fills the reserve whenever the committer has come near its end. It ends when
// there is no space: a commit that finds none will say so.
func (r *reserve) run(closing <-chan struct{}) {
	defer close(r.ended)
	defer closeDirect(r.file, r.zeroes)
	for {
		select {
		case <-r.wake:
			if !r.fill(closing) {
				return
			}
		case <-closing:
			return
		}
	}
}

// fill reports whether there will be more to fill.
func (r *reserve) fill(closing <-chan struct{}) bool {
	r.start()
	for r.from.Load() < r.bound.Load()+aheadOf(r.bound.Load()) {
		select {
		case <-closing:
			return false
		default:
		}
		if !r.writeChunk() {
			return false
		}
	}
	return true
}

// start chooses where the first chunk goes. A commit that has not seen the choice has
// said before how far it may write.
func (r *reserve) start() {
	if r.from.Load() != math.MaxInt64 {
		return
	}
	for from := int64(0); from < r.bound.Load(); {
		from = r.bound.Load()
		r.from.Store(from)
	}
}

func (r *reserve) writeChunk() bool {
	r.writing.Lock()
	defer r.writing.Unlock()
	from := (r.from.Load() + reserveChunk - 1) / reserveChunk * reserveChunk
	if r.limit > 0 && from+reserveChunk > r.limit {
		return false
	}
	if _, err := r.file.WriteAt(r.zeroes, from); err != nil {
		return false
	}
	r.from.Store(from + reserveChunk)
	return true
}

// wait waits until the reserve has ended.
func (r *reserve) wait() {
	if r != nil {
		<-r.ended
	}
}

func isSame(a, b *os.File) bool {
	infoA, errA := a.Stat()
	infoB, errB := b.Stat()
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
