package base

import (
	"container/list"
	"context"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/messages"
)

// waiter is a request that waits for room in the lane. Whoever removes it from
// the list of waiters sends its result, with the mailbox locked, unless it is the
// waiting goroutine itself.
type waiter struct {
	request
	borrowed Borrowed
	result   chan error // holds one; nil means that the request is queued or, if it is borrowed, has its place
}

// AwaitPost posts a request as soon as the request lane has room for it, first
// come, first served among those who bring something. If it returns nil, the request is queued and will be
// answered; otherwise it was not posted and never will be. The error is the cause
// of ctx's end, or [messages.ErrStopped] if the mailbox is closed.
//
// An actor must not call it. Like [Mailbox.PostAndRun], it may do the actor's work.
func (m *Mailbox) AwaitPost(ctx context.Context, message any) error {
	return m.AwaitPostBorrowed(ctx, message, nil)
}

// AwaitPostBorrowed is AwaitPost for what may be borrowed: nil says that it is not.
func (m *Mailbox) AwaitPostBorrowed(ctx context.Context, message any, b Borrowed) error {
	m.observePosted(message)
	err := m.awaitAndPost(ctx, m.request(message), b)
	if err != nil {
		m.observeHandled(message)
	}
	return err
}

func (m *Mailbox) awaitAndPost(ctx context.Context, r request, b Borrowed) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m.mu.Lock()
	switch {
	case m.closed:
		m.mu.Unlock()
		return messages.ErrStopped
	case !m.hasRoom(r):
		w := &waiter{request: r, borrowed: b, result: make(chan error, 1)}
		place := m.waiters.PushBack(w)
		m.mu.Unlock()
		if err := m.awaitPlace(ctx, w, place); err != nil || b == nil {
			return err
		}
	case b == nil:
		m.queue(r)
		if m.unlock() {
			m.run()
		}
		return nil
	default:
		m.reserve(r)
		m.mu.Unlock()
	}
	taken, wake := m.fill(r, b)
	if !taken {
		return messages.ErrStopped
	}
	if wake {
		m.run()
	}
	return nil
}

// awaitPlace waits until a waiter has what it waits for.
func (m *Mailbox) awaitPlace(ctx context.Context, w *waiter, place *list.Element) error {
	select {
	case err := <-w.result:
		return err
	case <-ctx.Done():
	}
	m.mu.Lock()
	select {
	case err := <-w.result: // decided meanwhile
		if err != nil || w.borrowed == nil {
			m.mu.Unlock()
			return err
		}
		m.giveBack(w.request)
	default:
		m.waiters.Remove(place)
	}
	m.admitWaiters() // also if it had no place: whoever is behind may take nothing
	// Where all places are those of requests being copied, the actor is idle.
	m.unlockAndWake()
	return context.Cause(ctx)
}

// waiterAt returns what the list of waiters holds: nothing else.
func waiterAt(place *list.Element) *waiter {
	w, _ := place.Value.(*waiter)
	return w
}

// request is a message on its way into the request lane, with what it takes.
type request struct {
	message any
	size    int
}

func (m *Mailbox) request(message any) request {
	if m.config.SizeOf == nil {
		return request{message: message}
	}
	return request{message, m.config.SizeOf(actor.UnwrapEnvelopeMessage(message))}
}

// hasRoom reports whether the request lane takes one more. Whoever waits for bytes, and whoever waits behind him, can
// be overtaken by what takes none only, until the lane is below its bound.
func (m *Mailbox) hasRoom(r request) bool {
	return m.requests.length+m.reserved < m.config.Requests && (r.size == 0 || m.requestBytes < m.config.RequestBytes)
}

// laneFull returns which bound it is that leaves no room.
func (m *Mailbox) laneFull() RefuseReason {
	if m.requests.length+m.reserved < m.config.Requests {
		return LaneFullOfBytes
	}
	return LaneFull
}

func (m *Mailbox) queue(r request) {
	m.requests.push(r)
	m.requestBytes += r.size
}

// dequeued gives the place that a request has had to those who have waited longest. So there is
// no room for the first as long as somebody waits.
func (m *Mailbox) dequeued(r request) {
	m.requestBytes -= r.size
	m.admitWaiters()
}

// admitWaiters queues those who wait, in their order, as far as there is room.
func (m *Mailbox) admitWaiters() {
	for first := m.waiters.Front(); first != nil; first = m.waiters.Front() {
		w := waiterAt(first)
		if !m.hasRoom(w.request) {
			return
		}
		m.waiters.Remove(first)
		if w.borrowed == nil {
			m.queue(w.request)
		} else {
			m.reserve(w.request)
		}
		w.result <- nil
	}
}

// Close ends the taking of requests, for good. The actor calls it when it is
// stopped, or gives up; somebody else may when the actor hangs. Queued requests,
// and queued control messages that have a sender, are answered as Closed, and so is
// every later user message with a sender; those that wait for room get
// [messages.ErrStopped]. System messages, and control messages without a sender,
// are taken as ever. Closing again is harmless.
func (m *Mailbox) Close() {
	for _, message := range m.close() {
		m.refuse(message, Closed)
	}
}

// close marks the mailbox as closed and returns what is to be answered.
func (m *Mailbox) close() []any {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for place := m.waiters.Front(); place != nil; place = m.waiters.Front() {
		m.waiters.Remove(place)
		waiterAt(place).result <- messages.ErrStopped
	}
	var unanswered []any
	for m.requests.length > 0 {
		r := m.requests.pop()
		m.requestBytes -= r.size
		unanswered = append(unanswered, r.message)
	}
	m.requests = ring[request]{}
	for range m.control.length {
		message := m.control.pop()
		if actor.UnwrapEnvelopeSender(message) == nil {
			m.control.push(message)
		} else {
			unanswered = append(unanswered, message)
		}
	}
	return unanswered
}
