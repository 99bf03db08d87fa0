package base

import (
	"context"
	"math"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/messages"
)

// maxIdlePorts bounds how many unused ports a pool keeps registered.
const maxIdlePorts = 1024

// Ports is a pool of reply ports of one actor system: addresses at which a
// goroutine that is no actor awaits an answer. It is safe for concurrent use.
//
// At most 1,024 ports stay registered while nobody uses them.
type Ports struct {
	system *actor.ActorSystem

	mu     sync.Mutex
	idle   []*port // the last is used first
	closed bool
}

// NewPorts returns a pool without ports. Close unregisters those that it will
// have.
func NewPorts(system *actor.ActorSystem) *Ports { return &Ports{system: system} }

// Ask sends message to pid and waits for the answer or until ctx ends. The message
// is not sent if ctx has ended before.
//
// If ctx ends first, Ask returns the cause, and the answer, when it arrives, is
// passed to late, exactly once, on the goroutine that runs the actor which answers; late
// must neither block nor panic, and may be nil. If ctx ends while the answer arrives, either
// happens, never both.
//
// It returns [messages.ErrStopped] if there is no actor at pid, or if the pool is
// closed; late is not called when the first is found out after ctx has ended.
func (p *Ports) Ask(ctx context.Context, pid *actor.PID, message any, late func(reply any)) (any, error) {
	return p.AskThrough(ctx, message, late, func(e *actor.MessageEnvelope) error {
		p.system.Root.Send(pid, e)
		return nil
	})
}

// AskThrough posts a question whose sender is a port, and awaits the answer there. If
// post returns an error, there will be no answer.
func (p *Ports) AskThrough(ctx context.Context, message any, late func(reply any), post func(*actor.MessageEnvelope) error) (any, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	port, err := p.take()
	if err != nil {
		return nil, err
	}
	if err := post(port.question(message, late)); err != nil {
		port.close()
		p.put(port)
		return nil, err
	}
	reply, answered := port.await(ctx)
	if !answered {
		return nil, context.Cause(ctx)
	}
	p.put(port)
	if _, dead := reply.(*actor.DeadLetterResponse); dead {
		return nil, messages.ErrStopped
	}
	return reply, nil
}

// Close unregisters the idle ports, and the others as soon as they are answered:
// also those whose askers have given up, which stay until then. Ask returns
// [messages.ErrStopped] from now on. Closing again is harmless.
func (p *Ports) Close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, port := range idle {
		port.unregister()
	}
}

// take returns a port that nobody else uses.
func (p *Ports) take() (*port, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, messages.ErrStopped
	}
	if last := len(p.idle) - 1; last >= 0 {
		port := p.idle[last]
		p.idle = p.idle[:last]
		return port, nil
	}
	return newPort(p.system), nil
}

// put takes back a port whose question is closed.
func (p *Ports) put(port *port) {
	p.mu.Lock()
	keep := !p.closed && len(p.idle) < maxIdlePorts && port.number < math.MaxUint32
	if keep {
		p.idle = append(p.idle, port)
	}
	p.mu.Unlock()
	if !keep {
		port.unregister()
	}
}

// port is a process of the actor system at which one answer at a time is awaited.
//
// The questions asked at it are numbered, and the number is part of the address
// that goes out with a question. So a second answer to an earlier question is told
// from the answer to the current one, and ignored.
//
//	state = number of the question << 2 | phase
//
//	closed ──question──> open ──answer──> closed         the asker gets the answer
//	                       └──ctx ends──> abandoned ──answer──> closed    late does
type port struct {
	system *actor.ActorSystem
	pid    *actor.PID // as registered, without a number
	state  atomic.Uint64
	answer chan any // has room for one

	// number and late belong to the asker, and are not changed while a question is
	// open or abandoned.
	number uint32
	late   func(reply any)
}

type questionPhase uint64

const (
	questionClosed questionPhase = iota
	questionOpen
	questionAbandoned
)

var _ actor.Process = (*port)(nil)

func stateOf(number uint32, p questionPhase) uint64 { return uint64(number)<<2 | uint64(p) }

// question is an envelope and the sender in it, allocated as one.
type question struct {
	envelope actor.MessageEnvelope
	sender   actor.PID
}

func newPort(system *actor.ActorSystem) *port {
	p := &port{system: system, answer: make(chan any, 1)}
	p.pid, _ = system.ProcessRegistry.Add(p, "port"+system.ProcessRegistry.NextId())
	// An address remembers its process when something is sent to it the first time. This answers no question.
	system.Root.Send(p.pid, nil)
	return p
}

// unregister makes the port's address a dead one.
func (p *port) unregister() { p.system.ProcessRegistry.Remove(p.pid) }

// question opens the next question.
func (p *port) question(message any, late func(reply any)) *actor.MessageEnvelope {
	p.number++
	p.late = late
	p.state.Store(stateOf(p.number, questionOpen))
	q := &question{}
	// With the process that the address remembers: whoever answers need not look for it.
	reflect.ValueOf(&q.sender).Elem().Set(reflect.ValueOf(p.pid).Elem())
	q.sender.RequestId = p.number
	q.envelope.Message, q.envelope.Sender = message, &q.sender
	return &q.envelope
}

// close ends a question that was not sent.
func (p *port) close() {
	p.late = nil
	p.state.Store(stateOf(p.number, questionClosed))
}

// await returns the answer, or false if ctx ended first: then the port is given
// up.
func (p *port) await(ctx context.Context) (reply any, answered bool) {
	if ctx.Done() == nil {
		reply = <-p.answer
	} else {
		select {
		case reply = <-p.answer:
		case <-ctx.Done():
			if p.state.CompareAndSwap(stateOf(p.number, questionOpen), stateOf(p.number, questionAbandoned)) {
				return nil, false
			}
			reply = <-p.answer // it is just being given
		}
	}
	p.late = nil
	return reply, true
}

// SendUserMessage implements [actor.Process]: it takes the answer.
func (p *port) SendUserMessage(pid *actor.PID, message any) {
	reply := actor.UnwrapEnvelopeMessage(message)
	number := pid.RequestId
	if p.state.CompareAndSwap(stateOf(number, questionOpen), stateOf(number, questionClosed)) {
		p.answer <- reply
		return
	}
	if p.state.CompareAndSwap(stateOf(number, questionAbandoned), stateOf(number, questionClosed)) {
		p.answerLate(reply)
	}
}

// answerLate gives an answer to an asker that did not wait for it. The port is
// used no more.
func (p *port) answerLate(reply any) {
	p.unregister()
	if _, dead := reply.(*actor.DeadLetterResponse); !dead && p.late != nil {
		p.late(reply)
	}
}

// SendSystemMessage implements [actor.Process]: a port has no life that could be
// watched or ended.
func (p *port) SendSystemMessage(*actor.PID, any) {}

// Stop implements [actor.Process].
func (p *port) Stop(*actor.PID) {}
