package base

// senderHandles is how many messages a sender handles before the dispatcher goes on:
// his own, an answer to what the actor has asked for because of it, and the same for
// somebody who has come meanwhile.
const senderHandles = 4

// senderRuns is a dispatcher that need not know of all that runs.
type senderRuns interface{ SenderRuns() }

// PostAndRun is PostUserMessage for a goroutine that will wait for the answer. If the
// actor is idle, the goroutine does the actor's work until that is idle again, or for a
// few messages: then there is no other one to wake, which takes longer than a short
// message does. System messages, and whatever is left, are the dispatcher's.
//
// So it is for actors that do not block. It is PostUserMessage if the actor has another
// dispatcher than [Dispatcher]: that one may want to know what runs when.
func (m *Mailbox) PostAndRun(message any) { m.PostAndRunBorrowed(message, nil) }

// PostAndRunBorrowed is PostAndRun for what may be borrowed: nil says that it is not.
func (m *Mailbox) PostAndRunBorrowed(message any, b Borrowed) {
	if m.post(message, b) {
		m.run()
	}
}

// run does the work of an actor that is to be woken. Whatever becomes of the sender's
// goroutine, the actor goes on.
func (m *Mailbox) run() {
	idle := false
	defer func() {
		if !idle {
			m.dispatcher.Schedule(m.work)
		}
	}()
	if m.senderRuns {
		idle = m.handleSome()
	}
}

// handleSome reports whether the mailbox is idle, as handleUntilIdle does.
func (m *Mailbox) handleSome() (idle bool) {
	var message any
	defer m.escalate(&message)
	var from lane
	for range senderHandles {
		message, from = m.takeUser()
		switch from {
		case noLane:
			return true
		case systemLane:
			return false
		case controlLane, requestLane:
			m.handle(message, from)
		}
	}
	return false
}

// takeUser is take, but leaves system messages where they are.
func (m *Mailbox) takeUser() (any, lane) {
	m.mu.Lock()
	if m.system.length > 0 {
		m.mu.Unlock()
		return nil, systemLane
	}
	return m.takeAndUnlock()
}
