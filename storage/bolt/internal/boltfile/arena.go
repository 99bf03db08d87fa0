package boltfile

// arenaChunk is how much memory an arena takes at a time, in bytes.
const arenaChunk = 1 << 20

// ByteArena gives out memory that lives as long as a transaction: bbolt keeps
// values by reference until the commit.
type ByteArena struct{ free []byte }

// Reserve returns an empty slice with room for n bytes.
func (a *ByteArena) Reserve(n int) []byte {
	if cap(a.free)-len(a.free) < n {
		a.free = make([]byte, 0, max(arenaChunk, n))
	}
	start := len(a.free)
	a.free = a.free[:start+n]
	return a.free[start : start : start+n]
}

// LogFill makes pages of append-only buckets full when they split.
const LogFill = 1.0

// StateFill leaves some room in pages: keys are ascending within a partition, a
// workspace or a sequence, not within the bucket.
const StateFill = 0.9
