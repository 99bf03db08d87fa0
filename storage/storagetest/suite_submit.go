package storagetest

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// answerLimit is how long an answer to a submitted batch may take.
const answerLimit = 10 * time.Second

var submitChecks = []check{
	{"SubmitAnswersOnce", eachLevel, checkSubmit},
}

// put appends a batch: by Append, and every other time, if the store is a
// [storage.Submitter], by Submit. So whatever is promised of the one is checked of the other too.
func (e *env) put(ctx context.Context, b storage.Batch) error {
	e.Helper()
	s, ok := e.store.(storage.Submitter)
	if !ok || e.writes.Add(1)%2 == 0 {
		return e.store.Append(ctx, b)
	}
	_, err := e.submit(ctx, s, b)
	return err
}

// submit submits a batch, and waits for the answer. It reports whether the batch was taken at once, and fails the
// test if there is another answer, or one to a batch that was not handed over.
func (e *env) submit(ctx context.Context, s storage.Submitter, b storage.Batch) (taken bool, err error) {
	e.Helper()
	answers := make(chan error, 1)
	var count atomic.Int32
	rest := s.Submit(b, func(err error) {
		if count.Add(1) == 1 {
			answers <- err
			return
		}
		e.Errorf("a submitted batch was answered again: %v", err)
	})
	if rest != nil {
		if count.Load() > 0 {
			e.Errorf("a batch was answered that was not taken")
		}
		if err := rest(ctx); err != nil {
			if count.Load() > 0 {
				e.Errorf("a batch was answered that was refused: %v", err)
			}
			return false, err
		}
	}
	select {
	case err = <-answers:
		return rest == nil, err
	case <-time.After(answerLimit):
		e.Errorf("a submitted batch was not answered within %v", answerLimit)
		return rest == nil, errUnanswered
	}
}

// checkSubmit: a batch that is taken is durable when it is answered, or refused as
// Append would refuse it, also when the store closes meanwhile.
func checkSubmit(e *env) {
	p := e.half()
	s := optional[storage.Submitter](e)
	taken := 0
	for range 4 {
		b := p.Build(Spec{Workspace: 3, Create: []messages.SeqID{SeqInvoice}})
		ok, err := e.submit(e.Context(), s, b)
		if err != nil {
			e.Fatalf("submit: %v", err)
		}
		if ok {
			taken++
		}
		p.Learn(b.Events...)
		e.model.append(b.Events...)
		e.same("after it was submitted")
	}
	if taken == 0 {
		e.Error("the store takes no batch of a workspace that it has just written")
	}
	stale := p.Build(Spec{Workspace: 3})
	stale.Epoch--
	for i := range stale.Events {
		stale.Events[i].Epoch--
	}
	_, err := e.submit(e.Context(), s, stale)
	e.isOneOf("a batch submitted under a stale epoch", err, messages.ErrFenced)
	e.checkSubmitClosing(p, s)
}

// checkSubmitClosing hands batches over without waiting for their answers, while the
// store closes.
func (e *env) checkSubmitClosing(p *Partition, s storage.Submitter) {
	e.Helper()
	type outcome struct {
		event messages.Event
		err   error
	}
	const most = 512
	all := p.Build(slices.Repeat([]Spec{{Workspace: 3}}, most)...)
	outcomes := make(chan outcome, 2*most)
	closed := make(chan error, 1)
	sent := 0
	submit := func(event messages.Event) {
		b := storage.Batch{Partition: all.Partition, Epoch: all.Epoch, Events: []messages.Event{event}}
		if s.Submit(b, func(err error) { outcomes <- outcome{event, err} }) == nil {
			sent++
		}
	}
	for i, event := range all.Events[:most-1] {
		if i == 8 {
			go func() { closed <- e.store.Close(e.Context()) }()
		}
		submit(event)
	}
	if err := <-closed; err != nil {
		e.Fatalf("close: %v", err)
	}
	// However slow that was, one comes after it.
	submit(all.Events[most-1])
	var written []messages.Event
	for i := range sent {
		select {
		case o := <-outcomes:
			if o.err == nil {
				written = append(written, o.event)
				continue
			}
			e.isOneOf("a batch submitted while the store closes", o.err, storage.ErrClosed, storage.ErrOutOfOrder)
		case <-time.After(answerLimit):
			e.Fatalf("%d of %d batches submitted while the store closes were not answered", sent-i, sent)
		}
	}
	slices.SortFunc(written, func(a, b messages.Event) int { return cmp.Compare(a.PLogOffset, b.PLogOffset) })
	p.Learn(written...)
	e.model.append(written...)
	e.reopen()
}
