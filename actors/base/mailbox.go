package base

import (
	"container/list"
	"runtime"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// MailboxConfig is what a [Mailbox] is made of.
type MailboxConfig struct {
	// Key names the actor to the observer.
	Key Key

	// Requests bounds the request lane, exactly. Less than 1 means 1.
	Requests int

	// RequestBytes bounds what the requests in the lane take together, as SizeOf says: the last one that is
	// taken may exceed it, so that the lane is full or not for everybody, however large what he has is; and
	// what takes nothing is taken all the same. Less than 1 means that there is no such bound.
	RequestBytes int

	// SizeOf returns what a request takes, in bytes. It gets it without its envelope and runs on the
	// sender's goroutine. Nil means 0.
	SizeOf func(message any) int

	// IsRequest says which messages are requests; it gets them without their
	// envelopes and runs on the sender's goroutine. Everything else goes to the
	// control lane. Nil means that there are no requests.
	IsRequest func(message any) bool

	// Refuse makes the answer to a message which is not taken. It is called only if
	// the message has a sender; nil, and a nil answer, mean that there is none. It
	// runs without a lock held, on the sender's goroutine if the lane is full or
	// the mailbox was closed before, on that of Close for what is queued then.
	Refuse func(message any, why RefuseReason) any

	// System sends the answers. It may be nil if Refuse is.
	System *actor.ActorSystem

	// Blocks says that the actor may block: no sender does its work.
	Blocks bool

	// Observer may be nil.
	Observer Observer
}

// RefuseReason says why a mailbox does not take a message.
type RefuseReason uint8

// admitted is no reason: the message has its place.
const admitted RefuseReason = 0

const (
	// LaneFull: as many requests are queued as the lane may hold.
	LaneFull RefuseReason = iota + 1
	// LaneFullOfBytes: as large ones.
	LaneFullOfBytes
	// Closed: the actor has stopped, or has given up.
	Closed
)

// Mailbox is the queue of one actor, in three lanes: system messages first, then
// control messages, then requests. The request lane is bounded, and is left alone
// while it is on hold; the other two refuse nothing. It implements
// [actor.Mailbox].
//
// It is safe for concurrent use. Posting never blocks, whoever posts: an actor may
// post to itself while its request lane is full.
//
// It also keeps the actor's life straight where the actor system does not: see
// [life].
type Mailbox struct {
	config     MailboxConfig
	traffic    traffic
	invoker    actor.MessageInvoker
	dispatcher actor.Dispatcher
	work       func() // m.drain as a value, made once
	// senderRuns says that a sender who waits may do the actor's work.
	senderRuns bool

	// mu guards what follows. One lock, and not a lock-free queue per lane: whether
	// the actor is to be woken depends on all lanes, on hold and on suspended
	// together, and is decided and acted upon at one moment here. So no wake-up is
	// lost.
	mu       sync.Mutex
	system   ring[any]
	control  ring[any]
	requests ring[request]
	// reserved is how many places belong to requests that are still being copied, see [Borrowed].
	reserved int
	// requestBytes is what the requests take that are queued or have a place reserved.
	requestBytes int
	waiters      list.List // of *waiter; not empty only while the request lane has no room for the first

	// running says that work is scheduled or runs: it takes whatever is posted. It
	// begins as true, so that nothing is taken before Start.
	running   bool
	suspended bool
	held      bool
	closed    bool
	life      life
}

var _ actor.Mailbox = (*Mailbox)(nil)

// NewMailbox returns a mailbox for one actor, which keeps it when it is restarted.
func NewMailbox(c MailboxConfig) *Mailbox {
	c.Requests, c.RequestBytes = bounds(c.Requests, c.RequestBytes)
	c.Observer = observerOf(c.Observer, c.Key)
	m := &Mailbox{config: c, running: true}
	m.work = m.drain
	m.traffic = trafficOf(c.Observer)
	return m
}

// RegisterHandlers implements [actor.Mailbox].
func (m *Mailbox) RegisterHandlers(invoker actor.MessageInvoker, dispatcher actor.Dispatcher) {
	m.invoker, m.dispatcher = invoker, dispatcher
	_, runs := dispatcher.(senderRuns)
	m.senderRuns = runs && !m.config.Blocks
}

// Start implements [actor.Mailbox]: the actor takes messages from now on. What
// was posted earlier, by somebody who knew the actor's name, is not lost.
func (m *Mailbox) Start() {
	m.mu.Lock()
	m.running = false
	m.unlockAndWake()
}

// PostUserMessage implements [actor.Mailbox].
func (m *Mailbox) PostUserMessage(message any) {
	m.PostBorrowed(message, nil)
}

// PostBorrowed is PostUserMessage for what may be borrowed: nil says that it is not.
func (m *Mailbox) PostBorrowed(message any, b Borrowed) {
	if m.post(message, b) {
		m.dispatcher.Schedule(m.work)
	}
}

// PostSystemMessage implements [actor.Mailbox].
func (m *Mailbox) PostSystemMessage(message any) {
	m.observePosted(message)
	m.mu.Lock()
	m.life = m.life.afterPost(message)
	m.system.push(message)
	m.unlockAndWake()
}

// UserMessageCount implements [actor.Mailbox].
func (m *Mailbox) UserMessageCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.control.length + m.requests.length
}

// Requests returns how many requests are queued, those not counted that wait for
// room.
func (m *Mailbox) Requests() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests.length
}

// Hold leaves the request lane alone until Release. Control and system messages
// are taken as ever. A restart changes nothing about it: an actor that uses Hold
// calls Release when it is started.
func (m *Mailbox) Hold() {
	m.mu.Lock()
	m.held = true
	m.mu.Unlock()
}

// Release takes requests again.
func (m *Mailbox) Release() {
	m.mu.Lock()
	m.held = false
	m.unlockAndWake()
}

func (m *Mailbox) isRequest(message any) bool {
	return m.config.IsRequest != nil && m.config.IsRequest(actor.UnwrapEnvelopeMessage(message))
}

// post reports, as everything that posts does, whether the actor is to be woken.
func (m *Mailbox) post(message any, b Borrowed) (wake bool) {
	m.observePosted(message)
	if !m.isRequest(message) {
		return m.postControl(message)
	}
	why, wake := m.postRequest(message, b)
	if why != admitted {
		m.refuse(message, why)
	}
	return wake
}

func (m *Mailbox) postRequest(message any, b Borrowed) (why RefuseReason, wake bool) {
	r := m.request(message)
	m.mu.Lock()
	switch {
	case m.closed:
		m.mu.Unlock()
		return Closed, false
	case !m.hasRoom(r):
		why = m.laneFull()
		m.mu.Unlock()
		return why, false
	case b == nil:
		m.queue(r)
		return admitted, m.unlock()
	}
	m.reserve(r)
	m.mu.Unlock()
	filled, wake := m.fill(r, b)
	if !filled {
		return Closed, false
	}
	return admitted, wake
}

// Tell posts a request that has no sender. It returns what the answer would be if it is not taken, nil if it is.
func (m *Mailbox) Tell(message any, b Borrowed) (refused any) {
	m.observePosted(message)
	why, wake := m.postRequest(message, b)
	if wake {
		m.dispatcher.Schedule(m.work)
	}
	if why == admitted {
		return nil
	}
	refused = m.config.Refuse(message, why)
	m.observeHandled(message)
	return refused
}

func (m *Mailbox) postControl(message any) (wake bool) {
	m.mu.Lock()
	if m.closed && actor.UnwrapEnvelopeSender(message) != nil {
		m.mu.Unlock()
		m.refuse(message, Closed)
		return false
	}
	m.control.push(message)
	return m.unlock()
}

// unlock ends every change after which there may be something to take. If it reports
// that the actor is to be woken, the caller must see to it.
func (m *Mailbox) unlock() (wake bool) {
	wake = !m.running && m.takeable() != noLane
	if wake {
		m.running = true
	}
	m.mu.Unlock()
	return wake
}

func (m *Mailbox) unlockAndWake() {
	if m.unlock() {
		m.dispatcher.Schedule(m.work)
	}
}

type lane uint8

const (
	noLane lane = iota
	systemLane
	controlLane
	requestLane
)

// takeable returns the lane whose turn it is.
func (m *Mailbox) takeable() lane {
	switch {
	case m.system.length > 0:
		return systemLane
	case m.suspended:
		return noLane
	case m.control.length > 0:
		return controlLane
	case m.requests.length > 0 && !m.held:
		return requestLane
	}
	return noLane
}

// take removes the next message. If it returns noLane, the mailbox is idle and
// the caller must not take again.
func (m *Mailbox) take() (any, lane) {
	m.mu.Lock()
	return m.takeAndUnlock()
}

func (m *Mailbox) takeAndUnlock() (any, lane) {
	var message any
	from := m.takeable()
	switch from {
	case systemLane:
		message = m.system.pop()
	case controlLane:
		message = m.control.pop()
	case requestLane:
		r := m.requests.pop()
		message = r.message
		m.dequeued(r)
	case noLane:
		m.running = false
	}
	m.mu.Unlock()
	return message, from
}

// drain runs on a goroutine of the dispatcher until there is nothing to take.
func (m *Mailbox) drain() {
	for !m.handleUntilIdle() {
	}
}

// handleUntilIdle reports whether the mailbox is idle: it is not after a panic.
func (m *Mailbox) handleUntilIdle() (idle bool) {
	var message any
	defer m.escalate(&message)
	var from lane
	for n, limit := 0, m.dispatcher.Throughput(); ; n++ {
		if n > limit {
			n = 0
			runtime.Gosched()
		}
		message, from = m.take()
		if from == noLane {
			return true
		}
		m.handle(message, from)
	}
}

// escalate is deferred while messages are handled.
func (m *Mailbox) escalate(message *any) {
	if reason := recover(); reason != nil {
		m.observeHandled(*message)
		m.invoker.EscalateFailure(reason, *message)
	}
}

func (m *Mailbox) handle(message any, from lane) {
	m.observeTaken(message)
	if from == systemLane {
		m.handleSystem(message)
	} else {
		m.invoker.InvokeUserMessage(message)
	}
	m.observeHandled(message)
}

func (m *Mailbox) handleSystem(message any) {
	switch message.(type) {
	case *actor.SuspendMailbox:
		m.setSuspended(true)
	case *actor.ResumeMailbox:
		m.setSuspended(false)
	default:
		if m.permits(message) {
			m.invoker.InvokeSystemMessage(message)
		}
	}
}

func (m *Mailbox) setSuspended(suspended bool) {
	m.mu.Lock()
	m.suspended = suspended
	m.mu.Unlock()
}

// refuse answers for the actor.
func (m *Mailbox) refuse(message any, why RefuseReason) {
	_, content, sender := actor.UnwrapEnvelope(message)
	if sender != nil && m.config.Refuse != nil {
		if answer := m.config.Refuse(content, why); answer != nil {
			m.traffic.sent(m.config.Key, answer, sender, TraceOf(content))
			m.config.System.Root.Send(sender, answer)
		}
	}
	m.observeHandled(message)
}

func (m *Mailbox) observePosted(message any) {
	if o := m.config.Observer; o != nil {
		o.Posted(m.config.Key, actor.UnwrapEnvelopeMessage(message))
		if m.traffic != nil {
			_, content, sender := actor.UnwrapEnvelope(message)
			m.traffic.received(m.config.Key, content, sender)
		}
	}
}

func (m *Mailbox) observeTaken(message any) {
	if o := m.config.Observer; o != nil {
		o.Taken(m.config.Key, actor.UnwrapEnvelopeMessage(message))
	}
}

func (m *Mailbox) observeHandled(message any) {
	if o := m.config.Observer; o != nil {
		o.Handled(m.config.Key, actor.UnwrapEnvelopeMessage(message))
	}
}
