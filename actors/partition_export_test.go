package actors

// Queued returns how many requests are in the lane of a partition, or wait for
// room in it.
func (p *Partition) Queued() int {
	m := p.mailbox
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests.length + m.waiters.Len()
}

// Lapsed reports whether the transaction has seen the end of its context.
func (t *Transaction) Lapsed() bool { return t.lapsed.Load() }
