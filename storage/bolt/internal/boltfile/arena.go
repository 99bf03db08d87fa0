package boltfile

// arenaChunk is how much memory an arena takes at a time, in bytes.
const arenaChunk = 1 << 20

// ByteArena gives out memory that lives as long as a transaction: bbolt keeps
// values by reference until the commit. After Reset it serves the next one.
type ByteArena struct {
	chunks [][]byte
	// used is how many of them the transaction has taken.
	used int
}

// Reserve returns an empty slice with room for n bytes. What is larger than a chunk does not serve again.
func (a *ByteArena) Reserve(n int) []byte {
	if n > arenaChunk {
		return make([]byte, 0, n)
	}
	if a.used == 0 || cap(a.chunks[a.used-1])-len(a.chunks[a.used-1]) < n {
		a.used++
		if a.used > len(a.chunks) {
			a.chunks = append(a.chunks, make([]byte, 0, arenaChunk))
		}
	}
	chunk := &a.chunks[a.used-1]
	start := len(*chunk)
	*chunk = (*chunk)[:start+n]
	return (*chunk)[start : start : start+n]
}

// Size returns how much memory the arena keeps, in bytes.
func (a *ByteArena) Size() int64 { return int64(len(a.chunks)) * arenaChunk }

// Reset makes the arena empty. The transaction must have ended.
func (a *ByteArena) Reset() {
	for i := range a.chunks {
		a.chunks[i] = a.chunks[i][:0]
	}
	a.used = 0
}

// LogFill makes pages of append-only buckets full when they split.
const LogFill = 1.0

// StateFill leaves some room in pages: keys are ascending within a partition, a
// workspace or a sequence, not within the bucket.
const StateFill = 0.9
