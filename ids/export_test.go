package ids

// Skip lets a generator go on as if it had given out so many ids.
func (g *DecimalGenerator) Skip(n uint64) { g.last.Add(n * counterFactor) }
