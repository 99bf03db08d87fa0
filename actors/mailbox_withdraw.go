package actors

// Withdraw takes a request back that still waits in the request lane, and reports
// whether it did: then the actor will never see it. The message is the one that
// was posted, envelope and all.
func (m *Mailbox) Withdraw(message any) bool {
	m.mu.Lock()
	withdrawn := m.requests.remove(message)
	if withdrawn {
		m.dequeued(message)
	}
	m.mu.Unlock()
	if withdrawn {
		m.observeHandled(message)
	}
	return withdrawn
}
