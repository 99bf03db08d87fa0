package ids

// SkipChunks lets the generator go on as if it had used up so many chunks of the clock's second.
func (g *TraceGenerator) SkipChunks(n uint32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.askClock()
	g.used += n
}

// Skip lets a generator go on as if it had given out so many ids.
func (g *DecimalGenerator) Skip(n uint64) { g.last.Add(n * counterFactor) }
