package base

// Observer is told about every message of the actors that have it, user and
// system messages alike, without their envelopes. A nil Observer costs one
// comparison a call.
//
// Each message that is Posted is Handled exactly once, after Posted. Taken comes
// between the two, and is missing if the mailbox answered or dropped the message
// itself: the request lane was full, the mailbox was closed, or the sender stopped
// waiting for room or for its turn.
//
// What a message refers to must not be looked at in Handled: with the answer on its
// way, its memory may be in use again.
//
// The goroutine of an actor that is a partition is, for a few messages, that of a sender
// whoever waits for the answer: see [Mailbox.PostAndRun].
//
// The methods are called without any lock held. They must be safe for concurrent
// use, must not block and must not panic.
type Observer interface {
	// Posted is called when a message arrives, on the sender's goroutine.
	Posted(key Key, message any)
	// Taken is called before the actor handles the message, on its goroutine.
	Taken(key Key, message any)
	// Handled is called when nothing is left to do about the message: on the
	// actor's goroutine after it has handled it, also if it panicked; on the
	// sender's, or that of Close, otherwise.
	Handled(key Key, message any)
}

// KeyedObserver is an Observer that has another one for each actor: it is asked once, when the actor's mailbox is
// made, and what happens to the actor is told to the one that it has returned, nil for none. So whoever tells actors
// apart need not look them up at every message. Its own methods are never called by a [Mailbox].
type KeyedObserver interface {
	Observer
	// ForActor must be safe for concurrent use. Actors of one key may follow each other.
	ForActor(key Key) Observer
}

// observerOf returns the observer of one actor, nil for none.
func observerOf(o Observer, key Key) Observer {
	if keyed, ok := o.(KeyedObserver); ok {
		return keyed.ForActor(key)
	}
	return o
}

// Observers returns an Observer that tells several, in their order. Those that are nil are left out; if none is left,
// it is nil.
func Observers(all ...Observer) Observer {
	var some observers
	for _, o := range all {
		if o != nil {
			some = append(some, o)
		}
	}
	switch len(some) {
	case 0:
		return nil
	case 1:
		return some[0]
	}
	return some
}

// observers are several.
type observers []Observer

var _ KeyedObserver = observers(nil)

// ForActor implements [KeyedObserver].
func (all observers) ForActor(key Key) Observer {
	its := make([]Observer, len(all))
	for i, o := range all {
		its[i] = observerOf(o, key)
	}
	return Observers(its...)
}

// Posted implements [Observer].
func (all observers) Posted(key Key, message any) {
	for _, o := range all {
		o.Posted(key, message)
	}
}

// Taken implements [Observer].
func (all observers) Taken(key Key, message any) {
	for _, o := range all {
		o.Taken(key, message)
	}
}

// Handled implements [Observer].
func (all observers) Handled(key Key, message any) {
	for _, o := range all {
		o.Handled(key, message)
	}
}
