package base

import (
	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
)

// TraceOf returns the trace that a message belongs to, as far as it alone tells: zero for none, and for what is about
// several.
func TraceOf(message any) ids.TraceID {
	switch m := message.(type) {
	case *messages.Append:
		return m.Trace
	case *messages.Start:
		return m.Trace
	case *messages.Command:
		return m.Trace
	case *messages.Started:
		return m.Token.Trace
	case *messages.Next:
		return m.Token.Trace
	case *messages.Raise:
		return m.Token.Trace
	case *messages.Flush:
		return m.Token.Trace
	case *messages.Actualize:
		return m.Token.Trace
	case *messages.Cancel:
		return m.Token.Trace
	case *messages.OwnerStopped:
		return m.Token.Trace
	}
	return traceOfLeaf(message)
}

// traceOfLeaf is TraceOf for what leaves are asked for, and answer.
func traceOfLeaf(message any) ids.TraceID {
	switch m := message.(type) {
	case *messages.WriteEvents:
		return messages.TraceOfEvents(m.Events)
	case *messages.EventsWritten:
		return m.Trace
	case *messages.LoadNumbers:
		return m.Trace
	case *messages.Loaded:
		return m.Trace
	case *messages.LoadEvents:
		return m.Trace
	case *messages.EventsLoaded:
		return m.Trace
	case *messages.FindEvent:
		return m.Token.Trace
	case *messages.Found:
		return m.Token.Trace
	case *messages.EventsRead:
		return messages.TraceOfDelivery(m.Events)
	case *messages.HandleBatch:
		return messages.TraceOfDelivery(m.Events)
	case *messages.BatchHandled:
		return m.Trace
	case *messages.StorePosition:
		return m.Trace
	case *messages.PositionStored:
		return m.Trace
	case *messages.TryEvent:
		return m.Event.Event.Trace
	}
	return 0
}

// TraceField names a trace in a line of a log that is written on a request's behalf, if there is one.
func TraceField(id ids.TraceID) zap.Field {
	if id == 0 {
		return zap.Skip()
	}
	return zap.Stringer("trace", id)
}

// tracedRequester is whoever has asked for something, with the trace of that: his answers belong to it.
type tracedRequester struct {
	pid   *actor.PID
	trace ids.TraceID
}

// Requester returns what answers to a message go to: its sender, who is remembered with the trace if somebody is told.
func (m *Mailbox) Requester(sender *actor.PID, message any) any {
	if m.traffic != nil {
		if id := TraceOf(message); id != 0 {
			return &tracedRequester{sender, id}
		}
	}
	return sender
}

// PIDOf returns the address of a requester, nil if it has none.
func PIDOf(requester any) *actor.PID {
	switch r := requester.(type) {
	case *actor.PID:
		return r
	case *tracedRequester:
		return r.pid
	}
	return nil
}

// Answer sends an answer to a requester.
func (m *Mailbox) Answer(ctx actor.Context, requester, message any) {
	switch r := requester.(type) {
	case *actor.PID:
		ctx.Send(r, message)
	case *tracedRequester:
		m.traffic.sent(m.config.Key, message, r.pid, r.trace)
		ctx.ActorSystem().Root.Send(r.pid, message) // that it is sent is told already
	}
}
