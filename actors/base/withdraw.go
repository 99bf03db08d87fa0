package base

// Withdraw takes a request back that still waits in the request lane, and reports
// whether it did: then the actor will never see it. The message is the one that
// was posted, envelope and all.
func (m *Mailbox) Withdraw(message any) bool {
	m.mu.Lock()
	r, withdrawn := m.requests.remove(func(r request) bool { return r.message == message })
	if withdrawn {
		m.dequeued(r)
	}
	m.mu.Unlock()
	if withdrawn {
		m.observeHandled(message)
	}
	return withdrawn
}
