package base_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/partita-go/partita/actors/base"
	"github.com/partita-go/partita/messages"
)

// copying posts a query, or waits for a place, in a goroutine that is held while it copies.
type copying struct {
	begun, proceed chan struct{}
	result         chan error
}

// awaitCopying returns when the goroutine copies, or waits for a place.
func (b *bench) awaitCopying(ctx context.Context, number int) *copying {
	c := &copying{begun: make(chan struct{}), proceed: make(chan struct{}), result: make(chan error, 1)}
	go func() {
		c.result <- b.AwaitPostBorrowed(ctx, b.sender.From(&query{number}), base.Copying(func() {
			close(c.begun)
			<-c.proceed
		}))
	}()
	synctest.Wait()
	return c
}

func (c *copying) copies() bool {
	select {
	case <-c.begun:
		return true
	default:
		return false
	}
}

// TestMailboxCopiesWithAPlace: whoever waits for a place has copied nothing; whoever copies has his
// place, which nobody else gets; and it is one like any other when he has copied.
func TestMailboxCopiesWithAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newSystem(), 1, nil)
		b.Start()
		b.query(0)
		first, second := b.awaitCopying(t.Context(), 1), b.awaitCopying(t.Context(), 2)
		if first.copies() || second.copies() {
			t.Fatal("who waits has copied")
		}
		b.expect(t, 0)
		synctest.Wait()
		if !first.copies() || second.copies() {
			t.Fatalf("got %v and %v, want only the first to copy", first.copies(), second.copies())
		}
		b.query(10) // refused: the place is taken
		b.PostAndRunBorrowed(b.sender.From(&query{11}), base.Copying(func() { t.Error("a request that was refused was copied") }))
		close(first.proceed)
		synctest.Wait()
		b.expect(t, 1)
		close(second.proceed)
		synctest.Wait()
		b.expect(t, 2)
		if err := errors.Join(<-first.result, <-second.result); err != nil {
			t.Error(err)
		}
		b.expectAnswers(t, refused{10, base.LaneFull}, refused{11, base.LaneFull})
	})
}

// TestMailboxGivesAPlaceBack: of whoever was given a place when his context had ended, and of
// bytes as well.
func TestMailboxGivesAPlaceBack(t *testing.T) {
	for range 50 { // the end of the context and the place come at once: either may be seen first
		synctest.Test(t, func(t *testing.T) {
			b := newSizedBench(t)
			back := b.sender.From(&query{10})
			b.PostUserMessage(back)
			ctx, cancel := context.WithCancelCause(t.Context())
			leaves, stays := b.awaitCopying(ctx, 20), b.awaitCopying(t.Context(), 9)
			cancel(errEnough)
			b.Withdraw(back)
			synctest.Wait()
			if leaves.copies() {
				close(leaves.proceed)
				synctest.Wait()
				b.expect(t, 20)
			} else if err := <-leaves.result; !errors.Is(err, errEnough) {
				t.Errorf("got %v, want the cause", err)
			}
			close(stays.proceed)
			synctest.Wait()
			b.query(1) // the last that there is room for
			b.query(2) // refused
			b.expect(t, 9, 1)
			if err := <-stays.result; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestMailboxGivesAPlaceBackToWhoHasNothingToCopy: he is queued by whoever gives it back, while the actor is idle: it
// is woken.
func TestMailboxGivesAPlaceBackToWhoHasNothingToCopy(t *testing.T) {
	for range 50 { // the end of the context and the place come at once: either may be seen first
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, newSystem(), 1, nil)
			b.Start()
			b.query(0)
			ctx, cancel := context.WithCancelCause(t.Context())
			leaves, behind := b.awaitCopying(ctx, 1), b.awaitPost(t.Context(), 2)
			cancel(errEnough)
			b.run()
			synctest.Wait()
			want := []any{0, 2}
			if leaves.copies() {
				want = []any{0, 1, 2}
				close(leaves.proceed)
				synctest.Wait()
			}
			b.expect(t, want...)
			if err := <-behind; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestMailboxClosesWhileCopying: the sender is told once, by the error or by the answer.
func TestMailboxClosesWhileCopying(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newSystem(), 2, nil)
		b.Start()
		waits := b.awaitCopying(t.Context(), 1)
		b.PostAndRunBorrowed(b.sender.From(&query{2}), base.Copying(func() { b.Close() }))
		close(waits.proceed)
		if err := <-waits.result; !errors.Is(err, messages.ErrStopped) {
			t.Errorf("got %v, want %v", err, messages.ErrStopped)
		}
		b.expect(t)
		b.expectAnswers(t, refused{2, base.Closed})
	})
}
