package verifier_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/verifier"
	"github.com/partita-go/partita/storage/replog"
)

// asked is a log whose Verify tells that it was asked, and waits for an answer.
type asked struct {
	replog.Log
	questions chan struct{}
	answers   chan error
}

func (a asked) Verify(context.Context) error {
	a.questions <- struct{}{}
	return <-a.answers
}

// Those who come while a question is under way wait for the next one, and share it.
func TestVerifierAsksAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v verifier.Verifier
		log := asked{questions: make(chan struct{}), answers: make(chan error)}
		results := make(chan error, 4)
		read := func() { results <- v.Verify(t.Context(), log) }
		go read()
		<-log.questions
		for range 3 {
			go read()
		}
		synctest.Wait()
		log.answers <- nil
		expect.NoError(t, <-results)
		<-log.questions
		synctest.Wait()
		expect.Equal(t, 0, len(results))
		log.answers <- replog.ErrNotOwner
		for range 3 {
			expect.ErrorIs(t, <-results, replog.ErrNotOwner)
		}
	})
}

// Whoever gives up does not keep the others waiting.
func TestVerifierIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v verifier.Verifier
		log := asked{questions: make(chan struct{}), answers: make(chan error)}
		ctx, cancel := context.WithCancel(t.Context())
		results := make(chan error, 1)
		go func() { results <- v.Verify(ctx, log) }()
		<-log.questions
		cancel()
		expect.ErrorIs(t, <-results, context.Canceled)
		log.answers <- nil
	})
}
