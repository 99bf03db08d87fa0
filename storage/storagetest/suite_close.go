package storagetest

import (
	"context"
	"errors"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

var closeChecks = []check{
	{"CloseTwice", anyLevel, checkCloseTwice},
	{"ClosedStoreRefusesEverything", anyLevel, checkClosed},
	{"CloseWithEndedContext", anyLevel, checkCloseEnded},
	{"CloseAnswersPendingCalls", eachLevel, checkClosePending},
}

func checkCloseTwice(e *env) {
	e.half()
	e.close()
	e.close()
	e.reopen()
}

// checkClosed: every call gets ErrClosed and has done nothing.
func checkClosed(e *env) {
	p := e.half()
	batch, flush := p.Build(Spec{Workspace: 3}), p.BuildFlush(8)
	e.close()
	ctx := e.Context()
	_, takeErr := e.store.TakeEpoch(ctx, 0)
	_, numbersErr := e.store.Numbers(ctx, 3)
	_, registerErr := e.store.Register(ctx, 0)
	_, tailErr := e.store.Tail(ctx, 0, p.checkpoint, 1)
	_, findErr := e.store.Find(ctx, 3, messages.DedupID{1})
	results := map[string]error{
		"TakeEpoch": takeErr, "Numbers": numbersErr, "Register": registerErr, "Tail": tailErr, "Find": findErr,
		"Append": e.store.Append(ctx, batch), "Flush": e.store.Flush(ctx, flush),
	}
	for name, seq := range e.iterators(ctx) {
		for err := range seq {
			results[name] = errors.Join(results[name], err)
		}
	}
	for _, name := range []string{"TakeEpoch", "Append", "Flush", "Numbers", "Register", "Tail", "PLog", "WLog", "Records", "Find"} {
		e.isOneOf(name+" of a closed store", results[name], storage.ErrClosed)
	}
	for _, w := range e.eachWait(p) {
		_, err := w.tell(ctx)
		e.isOneOf(w.what+" of a closed store", err, storage.ErrClosed)
	}
	e.reopen()
}

// checkCloseEnded: Close with an ended context may return its error, and the
// store closes all the same.
func checkCloseEnded(e *env) {
	p := e.half()
	ctx, cancel := context.WithCancel(e.Context())
	cancel()
	if err := e.store.Close(ctx); err != nil {
		e.isOneOf("Close with an ended context", err, context.Canceled)
	}
	e.isOneOf("Append behind it", e.put(e.Context(), p.Build(Spec{Workspace: 3})), storage.ErrClosed)
	e.reopen()
}

// checkClosePending: calls that are under way while the store closes are either
// done or refused, and none hangs.
func checkClosePending(e *env) {
	e.open()
	var writers []*writer
	for id := range messages.PartitionID(e.desc.Partitions) {
		writers = append(writers, startWriter(e, e.take(id), storage.ErrClosed))
	}
	for _, w := range writers {
		<-w.started
	}
	err := e.store.Close(e.Context())
	for _, w := range writers {
		w.finish()
	}
	if err != nil {
		e.Fatalf("close: %v", err)
	}
	e.reopen()
}
