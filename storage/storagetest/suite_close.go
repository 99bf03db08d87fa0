package storagetest

import (
	"context"
	"errors"
	"sync"

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
	results := map[string]error{
		"TakeEpoch": takeErr, "Numbers": numbersErr, "Register": registerErr, "Tail": tailErr,
		"Append": e.store.Append(ctx, batch), "Flush": e.store.Flush(ctx, flush),
	}
	for name, seq := range e.iterators(ctx) {
		for err := range seq {
			results[name] = errors.Join(results[name], err)
		}
	}
	for _, name := range []string{"TakeEpoch", "Append", "Flush", "Numbers", "Register", "Tail", "PLog", "WLog", "Records"} {
		e.isOneOf(name+" of a closed store", results[name], storage.ErrClosed)
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
	e.isOneOf("Append behind it", e.store.Append(e.Context(), p.Build(Spec{Workspace: 3})), storage.ErrClosed)
	e.reopen()
}

// checkClosePending: calls that are under way while the store closes are either
// done or refused, and none hangs.
func checkClosePending(e *env) {
	e.open()
	var wg sync.WaitGroup
	var begun sync.WaitGroup
	acknowledged := make([][]messages.Event, e.desc.Partitions)
	for id := range messages.PartitionID(e.desc.Partitions) {
		p := e.take(id)
		begun.Add(1)
		wg.Go(func() {
			signal := sync.OnceFunc(begun.Done)
			defer signal()
			for {
				b := p.Build(Spec{Workspace: messages.WSID(id), Create: []messages.SeqID{SeqOrder}})
				if err := e.store.Append(e.Context(), b); err != nil {
					if !errors.Is(err, storage.ErrClosed) {
						e.Errorf("append while closing: got %v, want %v", err, storage.ErrClosed)
					}
					return
				}
				p.Learn(b.Events...)
				acknowledged[id] = append(acknowledged[id], b.Events...)
				signal()
			}
		})
	}
	begun.Wait()
	e.close()
	wg.Wait()
	for _, events := range acknowledged {
		e.model.append(events...)
	}
	e.reopen()
}
