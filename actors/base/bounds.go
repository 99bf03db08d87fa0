package base

import "math"

// SetBounds changes the bounds of the request lane, see [MailboxConfig]. What is queued stays, also above them; whoever
// waits gets the room that there is now.
func (m *Mailbox) SetBounds(requests, bytes int) {
	m.mu.Lock()
	m.config.Requests, m.config.RequestBytes = bounds(requests, bytes)
	m.admitWaiters()
	m.unlockAndWake()
}

// bounds returns what bounds of a request lane mean.
func bounds(requests, bytes int) (atMost, bytesAtMost int) {
	if bytes < 1 {
		bytes = math.MaxInt
	}
	return max(requests, 1), bytes
}

// LaneFigures are about a request lane.
type LaneFigures struct {
	// Key is that of the actor.
	Key Key
	// Requests are those that wait, Bytes what they take of memory.
	Requests, Bytes int
	// MostRequests and MostBytes are the bounds.
	MostRequests, MostBytes int
}

// Lane returns what waits in the request lane.
func (m *Mailbox) Lane() LaneFigures {
	m.mu.Lock()
	defer m.mu.Unlock()
	return LaneFigures{m.config.Key, m.requests.length, m.requestBytes, m.config.Requests, m.config.RequestBytes}
}

// Queued returns how many requests are in the lane, or wait for room in it.
func (m *Mailbox) Queued() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests.length + m.waiters.Len()
}
