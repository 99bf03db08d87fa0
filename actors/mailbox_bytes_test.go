package actors_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/partita-go/partita/actors"
)

// newSizedBench returns a bench whose lane has room for eight queries of ten bytes together; a
// query has as many as its number.
func newSizedBench(t *testing.T) *bench {
	t.Helper()
	b := newBenchOf(t, actors.MailboxConfig{
		System: newSystem(), Requests: 8, RequestBytes: 10,
		SizeOf: func(message any) int { return message.(*query).number },
	})
	b.Start()
	return b
}

func TestMailboxIsFullOfBytes(t *testing.T) {
	b := newSizedBench(t)
	b.query(4)
	b.query(6)
	b.query(1) // refused
	b.expect(t, 4, 6)
	b.query(99) // it is alone
	b.query(0)  // refused
	b.expect(t, 99)
	for range 9 {
		b.query(0) // the ninth is refused
	}
	b.expect(t, 0, 0, 0, 0, 0, 0, 0, 0)
	b.expectAnswers(t, refused{1, actors.LaneFull}, refused{0, actors.LaneFull}, refused{0, actors.LaneFull})
}

// A small request does not overtake a large one that waits, and goes on when that gives up; a place
// that a large one leaves may be enough for several.
func TestMailboxAwaitPostOfBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newSizedBench(t)
		b.query(5)
		back := b.sender.from(&query{4})
		b.PostUserMessage(back)
		ctx, cancel := context.WithCancelCause(t.Context())
		large := b.awaitPost(ctx, 7)
		small := b.awaitPost(t.Context(), 1)
		b.query(0) // refused: it would overtake
		if len(small) != 0 {
			t.Error("the small one has overtaken the large one")
		}
		cancel(errEnough)
		if err := <-large; !errors.Is(err, errEnough) {
			t.Errorf("got %v, want the cause", err)
		}
		if err := <-small; err != nil {
			t.Error(err)
		}
		third, fourth, fifth := b.awaitPost(t.Context(), 3), b.awaitPost(t.Context(), 2), b.awaitPost(t.Context(), 9)
		if !b.Withdraw(back) {
			t.Error("a queued request was not taken back")
		}
		if err := <-third; err != nil {
			t.Error(err)
		}
		// 5, 1 and 3 are queued, and 2 as soon as 5 has left, 9 when it is alone.
		b.expect(t, 5, 1, 3, 2, 9)
		if err := errors.Join(<-fourth, <-fifth); err != nil {
			t.Error(err)
		}
		b.expectAnswers(t, refused{0, actors.LaneFull})
	})
}

// Nobody keeps the lane full who is not in it.
func TestMailboxForgetsBytes(t *testing.T) {
	b := newSizedBench(t)
	changed := &query{9}
	b.PostUserMessage(b.sender.from(changed))
	changed.number = 1
	b.expect(t, 1)
	b.query(5)
	b.query(5)
	b.expect(t, 5, 5)
	b.query(10)
	b.Close()
	b.expectAnswers(t, refused{10, actors.Closed})
}
