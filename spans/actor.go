package spans

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	protoactor "github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// request is one that is not answered yet, or a transaction that is open.
type request struct {
	span trace.Span
	// ctx has the span.
	ctx     context.Context
	number  uint64
	message any
	of      workspace
	// step is the one that is under way below the span, nil for none.
	step trace.Span
	// taken says that the actor has taken it from its lane.
	taken bool
}

// workspace is where requests of a trace write.
type workspace struct {
	trace ids.TraceID
	id    messages.WSID
}

// actor makes the spans of what one actor does.
type actor struct {
	spans *Spans
	key   partition.ActorKey

	mu sync.Mutex
	// requests are those that are not answered, by their numbers; waiting those of them that the actor has not taken.
	requests map[uint64]*request
	waiting  map[any]*request
	// appends are those that are not answered, and Starts that are not granted, in the order in which they came.
	appends map[workspace][]*request
	// transactions are those that are open, by the serials of their tokens.
	transactions map[uint64]*request
	// works are the spans of what leaves do, by the numbers of the requests to them.
	works map[uint64][]trace.Span
}

var _ actors.TrafficObserver = (*actor)(nil)

// Posted implements [partition.Observer]; Received comes right behind it.
func (*actor) Posted(partition.ActorKey, any) {}

// Taken implements [partition.Observer].
func (a *actor) Taken(_ partition.ActorKey, message any) {
	if !waits(message) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.waiting[message]
	if r == nil {
		return
	}
	delete(a.waiting, message)
	r.taken = true
	switch message.(type) {
	case *messages.Append:
		a.next(r, "partita.number")
	case *messages.Command:
		r.endStep()
		a.spans.handled.Store(message, r.span)
	}
}

// Handled implements [partition.Observer].
func (a *actor) Handled(_ partition.ActorKey, message any) {
	over := endsIncarnation(message)
	if !over && !waits(message) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if over {
		a.abandon()
	} else if r := a.waiting[message]; r != nil {
		delete(a.requests, r.number)
		a.forget(r)
		r.end(errWithdrawn)
	}
}

// endsIncarnation reports whether an actor that has handled a message answers nothing any more of what it had before.
func endsIncarnation(message any) bool {
	switch message.(type) {
	case *protoactor.Restart, *protoactor.Stop:
		return true
	}
	return false
}

// waits reports whether a message may be one that has a span, and waits in a lane.
func waits(message any) bool {
	switch message.(type) {
	case *messages.Append, *messages.Start, *messages.Command:
		return true
	}
	return false
}

// abandon ends what an actor that has failed, or has ended, had in its hands: nobody is told of that answer.
func (a *actor) abandon() {
	for number, r := range a.requests {
		if r.taken {
			delete(a.requests, number)
			a.forget(r)
			r.end(errGone)
		}
	}
	a.endTransactions()
}

// Received implements [actors.TrafficObserver].
func (a *actor) Received(t actors.Traffic) {
	switch m := t.Message.(type) {
	case *messages.Append:
		a.begin(&t, "partita.append", m.Workspace, m.Span)
	case *messages.Start:
		a.begin(&t, "partita.transaction", m.Workspace, m.Span)
	case *messages.Command:
		a.begin(&t, "partita.command", m.Workspace, m.Span)
	case *messages.HandleBatch:
		a.deliver(&t, m)
	case *messages.Flush:
		a.conclude(&t, m.Token)
	case *messages.Cancel:
		a.conclude(&t, m.Token)
	case *messages.Actualize:
		a.conclude(&t, m.Token)
	case *messages.EventsWritten:
		a.endWork(t.Request, m.Err)
	case *messages.Loaded:
		a.endWork(t.Request, m.Err)
	case *messages.EventsLoaded:
		a.endWork(t.Request, m.Err)
	}
}

// Sent implements [actors.TrafficObserver].
func (a *actor) Sent(t actors.Traffic) {
	switch m := t.Message.(type) {
	case *messages.WriteEvents:
		a.commit(t.Request, m.Events)
	case *messages.LoadNumbers:
		a.read(t.Request, workspace{m.Trace, m.Workspace})
	case *messages.LoadEvents:
		a.read(t.Request, workspace{m.Trace, m.Workspace})
	default:
		if t.Kind == actors.TrafficResponse {
			a.answered(&t)
		}
	}
}

// begin begins the span of a request.
func (a *actor) begin(t *actors.Traffic, name string, ws messages.WSID, caller ids.SpanID) {
	if t.Trace == 0 || t.Request == 0 {
		return
	}
	r := &request{number: t.Request, message: t.Message, of: workspace{t.Trace, ws}}
	r.ctx, r.span = a.spans.tracer.Start(a.spans.parentOf(t.Trace, caller), name, trace.WithAttributes(
		attribute.String("partita.trace", t.Trace.String()), attribute.String("partita.actor", a.key.String()),
		attribute.String("partita.workspace", strconv.FormatUint(uint64(ws), 10))))
	if a.key.Group == partitions {
		a.spans.origins.Add(r.of, r.span.SpanContext())
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests[t.Request], a.waiting[t.Message] = r, r
	a.appends[r.of] = append(a.appends[r.of], r)
	a.next(r, "partita.wait")
}

// next ends the step under way, and begins another one.
func (a *actor) next(r *request, name string) {
	r.endStep()
	r.step = a.below(r, name)
}

// below begins a span below a request's.
func (a *actor) below(r *request, name string) trace.Span {
	_, span := a.spans.tracer.Start(r.ctx, name)
	return span
}

func (r *request) endStep() {
	if r.step != nil {
		r.step.End()
		r.step = nil
	}
}

func (r *request) end(err error) {
	r.endStep()
	end(r.span, err)
}

func end(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// deliver begins the span of a batch that is handed to a handler.
func (a *actor) deliver(t *actors.Traffic, m *messages.HandleBatch) {
	if !slices.ContainsFunc(m.Events, func(e messages.LogEvent) bool { return e.Event.Trace != 0 }) {
		return
	}
	parent, links := a.spans.originsOf(m.Events)
	attributes := []attribute.KeyValue{
		attribute.String("partita.actor", a.key.String()), attribute.Int("partita.events", len(m.Events)),
	}
	if t.Trace != 0 {
		attributes = append(attributes, attribute.String("partita.trace", t.Trace.String()))
	}
	r := &request{message: m, taken: true}
	r.ctx, r.span = a.spans.tracer.Start(parent, "partita.deliver",
		trace.WithSpanKind(trace.SpanKindConsumer), trace.WithLinks(links...), trace.WithAttributes(attributes...))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests[t.Request] = r
	a.spans.handled.Store(t.Message, r.span)
}

// commit begins the spans of the appends whose events a batch has. An append is found by its trace and workspace: several
// of those are written in the order in which they came.
func (a *actor) commit(number uint64, events []messages.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var spans []trace.Span
	taken := make(map[workspace]int)
	for i := 0; i < len(events); i += 1 + int(events[i].Together) {
		of := workspace{events[i].Trace, events[i].Workspace}
		all := a.appends[of]
		n := slices.IndexFunc(all[min(taken[of], len(all)):], (*request).isTakenAppend)
		if of.trace == 0 || n < 0 {
			continue
		}
		n += taken[of]
		taken[of] = n + 1
		all[n].endStep()
		spans = append(spans, a.below(all[n], "partita.commit"))
	}
	if spans != nil {
		a.works[number] = spans
	}
}

func (r *request) isTakenAppend() bool {
	_, isAppend := r.message.(*messages.Append)
	return isAppend && r.taken
}

// read begins the span of what a reader is asked for because of a request.
func (a *actor) read(number uint64, of workspace) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if all := a.appends[of]; of.trace != 0 && len(all) > 0 {
		a.works[number] = []trace.Span{a.below(all[0], "partita.read")}
	}
}

func (a *actor) endWork(number uint64, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, span := range a.works[number] {
		end(span, err)
	}
	delete(a.works, number)
}

// conclude lets the answer to what ends a transaction end its span.
func (a *actor) conclude(t *actors.Traffic, of messages.Token) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.transactions[of.Serial]; r != nil && t.Request != 0 {
		delete(a.transactions, of.Serial)
		a.requests[t.Request] = r
	}
}

// answered ends the span of a request, unless it has opened a transaction.
func (a *actor) answered(t *actors.Traffic) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.requests[t.Request]
	if r == nil {
		return
	}
	delete(a.requests, t.Request)
	a.forget(r)
	var err error
	switch m := t.Message.(type) {
	case *messages.Started:
		r.endStep()
		a.endTransactions()
		a.transactions[m.Token.Serial] = r
		return
	case *messages.Appended:
		r.written(m.PLogOffset, m.WLogOffset)
	case *messages.CommandDone:
		r.written(m.PLogOffset, m.WLogOffset)
	case *messages.Refused:
		err = m.Err
	case *messages.BatchHandled:
		err = m.Err
	case *messages.Actualizing:
		err = fmt.Errorf("%w: its write has failed, or has an unknown outcome", messages.ErrOutcomeUnknown)
	}
	r.end(err)
}

// endTransactions ends those that the partition has given up: it has one at a time.
func (a *actor) endTransactions() {
	for serial, r := range a.transactions {
		delete(a.transactions, serial)
		r.end(errGone)
	}
}

// forget lets nothing more be found of a request but by its number.
func (a *actor) forget(r *request) {
	delete(a.waiting, r.message)
	a.spans.handled.Delete(r.message)
	all := a.appends[r.of]
	if i := slices.Index(all, r); i >= 0 {
		if all = slices.Delete(all, i, i+1); len(all) == 0 {
			delete(a.appends, r.of)
		} else {
			a.appends[r.of] = all
		}
	}
}

// written says where the event stands.
func (r *request) written(p messages.PLogOffset, w messages.WLogOffset) {
	r.span.SetAttributes(attribute.String("partita.plog_offset", strconv.FormatUint(uint64(p), 10)),
		attribute.String("partita.wlog_offset", strconv.FormatUint(uint64(w), 10)))
}
