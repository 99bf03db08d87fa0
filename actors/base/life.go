package base

import "github.com/asynkron/protoactor-go/actor"

// life is what a mailbox knows about its actor from the system messages that pass
// through. It corrects two things that the actor system does:
//
//   - It obeys a Restart whenever one comes. A late one, of a supervisor that
//     waited before it restarted, would bring an actor back to life that was
//     stopped meanwhile, without a name, and would restart an actor twice of which
//     two children failed at once. Here a Restart is obeyed by an actor which has
//     failed since its last start and was not told to stop.
//   - It handles the Failure of a child also while it has failed itself, although
//     all its children will be stopped. Here such a Failure is dropped.
//
// The actor's own goroutine alone changes it, apart from a supervisor that
// resumes a failed child.
type life uint8

const (
	lifeAlive life = iota
	// lifeFailed: the actor has panicked or taken over a child's failure. It waits for
	// a Restart.
	lifeFailed
	// lifeRestarting: the old incarnation waits for its children to end.
	lifeRestarting
	// lifeStopping: it was told to stop, or has stopped.
	lifeStopping
)

// afterPost returns the life after a system message was posted. The actor system
// posts SuspendMailbox at the moment of a failure, and ResumeMailbox when a new
// incarnation is made, before it is started.
func (l life) afterPost(message any) life {
	if l == lifeStopping {
		return lifeStopping
	}
	switch message.(type) {
	case *actor.SuspendMailbox:
		return lifeFailed
	case *actor.ResumeMailbox:
		return lifeAlive
	}
	return l
}

// permits reports whether a system message that was taken may reach the actor.
func (m *Mailbox) permits(message any) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch message.(type) {
	case *actor.Stop:
		m.life = lifeStopping
	case *actor.Restart:
		if m.life != lifeFailed {
			return false
		}
		m.life = lifeRestarting
	case *actor.Failure:
		return m.life == lifeAlive
	}
	return true
}
