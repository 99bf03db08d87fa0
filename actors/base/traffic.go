package base

import (
	"cmp"
	"path"
	"reflect"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
)

// TrafficObserver is an [Observer] that is also told what actors send, and which answer
// belongs to which request. Whether an observer is one is found out once for each actor, when
// that is spawned. For it the rules of [Observer] hold.
type TrafficObserver interface {
	Observer
	// Received is called right after Posted. What the message refers to may be looked at
	// until it returns.
	Received(Traffic)
	// Sent is called before an actor sends a message, or hands it to the store, on its
	// goroutine; also for the answer that a mailbox gives for its actor, on that of the sender
	// or of Close. What the message refers to may be looked at until it returns. What clients
	// that are no actors send is not told: it is received.
	Sent(Traffic)
}

// TrafficSwitch is a [TrafficObserver] that wants to be told of some messages only: it is asked once of each before that is
// described for it, and is told of it right after that if it says yes. So it may count them.
type TrafficSwitch interface {
	TrafficObserver
	WantsTraffic(key Key, message any) bool
}

// traffic are those observers of an actor that are told of its traffic.
type traffic []TrafficObserver

func trafficOf(o Observer) (t traffic) {
	if all, several := o.(observers); several {
		for _, one := range all {
			t = append(t, trafficOf(one)...)
		}
		return t
	}
	if one, wants := o.(TrafficObserver); wants {
		return traffic{one}
	}
	return nil
}

// received tells of a message that comes to an actor.
func (t traffic) received(key Key, message any, from *actor.PID) {
	t.tell(TrafficObserver.Received, key, message, func() Traffic { return received(key, message, from) })
}

// sent tells of a message that an actor sends, to nobody or on behalf of no trace perhaps.
func (t traffic) sent(key Key, message any, to *actor.PID, trace ids.TraceID) {
	t.tell(TrafficObserver.Sent, key, message, func() Traffic {
		m := sent(key, message, to)
		m.Trace = cmp.Or(trace, m.Trace)
		return m
	})
}

func (t traffic) tell(tell func(TrafficObserver, Traffic), key Key, message any, describe func() Traffic) {
	var m Traffic
	described := false
	for _, o := range t {
		if s, isSwitch := o.(TrafficSwitch); isSwitch && !s.WantsTraffic(key, message) {
			continue
		}
		if !described {
			m, described = describe(), true
		}
		tell(o, m)
	}
}

// Traffic is a message on its way.
type Traffic struct {
	// Key is that of the actor which receives or sends it.
	Key Key
	// Message is without its envelope.
	Message any
	Kind    TrafficKind
	// Request joins a request with its answers at one actor, 0 if the message is neither. It
	// is at most 2^53-1, and may be another request's long after this one was answered.
	Request uint64
	// Trace is the trace that a message belongs to: a request and the answer to it, all messages of a transaction, the
	// work of a leaf and its result, the events that are handed to a subscription. It is 0 if it belongs to none, or to
	// several, as a batch of events may.
	Trace ids.TraceID
}

// NamesOf returns what dumps and metrics call the messages of a type, which may be nil: its name, and the protocol, which
// is the package that it is of.
func NamesOf(t reflect.Type) (message, protocol string) {
	if t == nil {
		return "nil", ""
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.PkgPath() == "" {
		return t.String(), ""
	}
	return t.Name(), path.Base(t.PkgPath())
}

// TrafficKind says whether somebody waits for an answer.
type TrafficKind uint8

const (
	// TrafficRegular: nobody waits for an answer, and it is none.
	TrafficRegular TrafficKind = iota
	// TrafficRequest: it will be answered.
	TrafficRequest
	// TrafficResponse: it answers a request.
	TrafficResponse
)

// received describes a message that comes to an actor.
func received(key Key, message any, from *actor.PID) Traffic {
	t := workTraffic(key, message)
	if t.Kind == TrafficRegular && from != nil && (from.RequestId != 0 || isQuestion(message)) {
		t.Kind, t.Request = TrafficRequest, numberOf(from)
	}
	return t
}

// sent describes a message that an actor sends.
func sent(key Key, message any, to *actor.PID) Traffic {
	t := workTraffic(key, message)
	if t.Kind == TrafficRegular && to != nil && isReply(message) {
		t.Kind, t.Request = TrafficResponse, numberOf(to)
	}
	return t
}

// workTraffic describes a message of an actor as far as it alone tells. What answers a request has the same number.
func workTraffic(key Key, message any) Traffic {
	t := Traffic{Key: key, Message: message, Trace: TraceOf(message)}
	if work, kind := workOf(message); kind != TrafficRegular {
		t.Kind, t.Request = kind, work.number(key.ID)
	}
	return t
}

// isReply reports whether a message answers somebody who is no leaf.
func isReply(message any) bool {
	switch message.(type) {
	case messages.SequencerReply, *messages.CommandDone, *messages.Stopped, *messages.Reconfigured,
		*messages.Held, *messages.Tried, *messages.LaneStopped:
		return true
	}
	return false
}

// isQuestion reports whether a message is answered if it has a sender, be that an actor.
func isQuestion(message any) bool {
	switch message.(type) {
	case messages.PartitionMessage, messages.CommandProcessorMessage, messages.LaneMessage:
		return true
	}
	return false
}

// work is what a leaf does for its parent: of one kind, and then one generation and part, there is
// one at a time.
type work struct {
	kind             byte
	generation, part uint64
}

// workOf returns the work that a message asks for, or reports.
func workOf(message any) (work, TrafficKind) {
	switch m := message.(type) {
	case *messages.WriteEvents:
		return work{'a', m.Generation, uint64(m.Events[0].PLogOffset)}, TrafficRequest
	case *messages.EventsWritten:
		return work{'a', m.Generation, uint64(m.First)}, TrafficResponse
	case *messages.WriteProjections:
		return work{'f', m.Generation, uint64(m.Checkpoint)}, TrafficRequest
	case *messages.Written:
		return work{'f', m.Generation, uint64(m.Checkpoint)}, TrafficResponse
	case *messages.LoadNumbers:
		return work{'l', m.Generation, m.Load}, TrafficRequest
	case *messages.Loaded:
		return work{'l', m.Generation, m.Load}, TrafficResponse
	case *messages.LoadEvents:
		return work{'e', m.Generation, m.Load}, TrafficRequest
	case *messages.EventsLoaded:
		return work{'e', m.Generation, m.Load}, TrafficResponse
	case *messages.FindEvent:
		return work{'t', m.Generation, m.Token.Serial}, TrafficRequest
	case *messages.Found:
		return work{'t', m.Generation, m.Token.Serial}, TrafficResponse
	}
	return replayOf(message)
}

// replayOf is workOf for actualizers, which are asked for one piece of a replay after the other.
func replayOf(message any) (work, TrafficKind) {
	switch m := message.(type) {
	case *messages.Replay:
		return work{'r', m.Generation, 0}, TrafficRequest
	case *messages.Credit:
		return work{'r', m.Generation, 0}, TrafficRequest
	case *messages.Taken:
		return work{'r', m.Generation, 0}, TrafficResponse
	case *messages.Replayed:
		return work{'r', m.Generation, 0}, TrafficResponse
	case *messages.ReplayFailed:
		return work{'r', m.Generation, 0}, TrafficResponse
	}
	return deliveryOf(message)
}

// deliveryOf is workOf for deliverers, whose generation is another one for each piece of work.
func deliveryOf(message any) (work, TrafficKind) {
	switch m := message.(type) {
	case *messages.LoadPosition:
		return work{'d', m.Generation, 0}, TrafficRequest
	case *messages.PositionLoaded:
		return work{'d', m.Generation, 0}, TrafficResponse
	case *messages.AwaitLog:
		return work{'d', m.Generation, 0}, TrafficRequest
	case *messages.LogGrown:
		return work{'d', m.Generation, 0}, TrafficResponse
	case *messages.ReadLog:
		return work{'d', m.Generation, 0}, TrafficRequest
	case *messages.EventsRead:
		return work{'d', m.Generation, 0}, TrafficResponse
	case *messages.HandleBatch:
		return work{'d', m.Generation, 0}, TrafficRequest
	case *messages.BatchHandled:
		return work{'d', m.Generation, 0}, TrafficResponse
	case *messages.StorePosition:
		return work{'d', m.Generation, 0}, TrafficRequest
	case *messages.PositionStored:
		return work{'d', m.Generation, 0}, TrafficResponse
	}
	return work{}, TrafficRegular
}

func (w work) number(id string) uint64 {
	return hashOf(id).with(uint64(w.kind)).with(w.generation).with(w.part).number()
}

// numberOf numbers the question that is asked at an address: ports count theirs, see [port].
func numberOf(pid *actor.PID) uint64 {
	return hashOf(pid.Address).with(uint64(hashOf(pid.Id))).with(uint64(pid.RequestId)).number()
}

// hash is a sum of what names a request. It needs no memory of requests under way, as a counter
// would; that two of them under way at one actor have the same 53 bits by chance is rarer than
// anything that a dump is used for.
type hash uint64

// hashOf is FNV-1a, of 64 bits.
func hashOf(text string) hash {
	h := hash(14695981039346656037)
	for i := range len(text) {
		h = (h ^ hash(text[i])) * 1099511628211
	}
	return h
}

// with mixes a number in, as the finalizer of MurmurHash3 does.
func (h hash) with(n uint64) hash {
	h ^= hash(n)
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// number leaves what JSON has exactly, and no 0.
func (h hash) number() uint64 { return max(1, uint64(h>>11)) }

// ObserveSends lets an observer that wants to know be told what an actor sends. Else the actor is
// spawned, and sends, as if there was none.
func ObserveSends(props *actor.Props, m *Mailbox) *actor.Props {
	if m.traffic == nil {
		return props
	}
	return props.Configure(actor.WithSenderMiddleware(func(next actor.SenderFunc) actor.SenderFunc {
		return func(from actor.SenderContext, to *actor.PID, e *actor.MessageEnvelope) {
			m.traffic.sent(m.config.Key, e.Message, to, 0)
			next(from, to, e)
		}
	}))
}

// TellSent lets an observer that wants to know be told of what an actor hands over without sending it.
func (m *Mailbox) TellSent(message any) {
	m.traffic.sent(m.config.Key, message, nil, 0)
}
