package base

// Borrowed is a request that refers to its sender's memory as long as it has no place in
// the request lane: those who wait for one are not bounded, so that a copy each could take
// any amount. When it has a place, its sender's goroutine copies what it refers to, and
// queues it. So the lane's bounds hold for all copies, and nothing but the sender's own
// goroutine ever looks at his memory.
type Borrowed interface{ CopyBorrowed() }

// reserve gives a place to a request whose sender fills it, or gives it back.
func (m *Mailbox) reserve(r request) {
	m.reserved++
	m.requestBytes += r.size
}

func (m *Mailbox) giveBack(r request) {
	m.reserved--
	m.requestBytes -= r.size
}

// fill copies a request that has a place, and queues it. If it was not taken, the mailbox
// has been closed meanwhile; else wake says that the actor is to be woken.
func (m *Mailbox) fill(r request, b Borrowed) (taken, wake bool) {
	b.CopyBorrowed()
	m.mu.Lock()
	m.giveBack(r)
	if m.closed {
		m.mu.Unlock()
		return false, false
	}
	m.queue(r)
	return true, m.unlock()
}
