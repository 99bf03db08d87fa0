package base_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/partita-go/partita/actors/base"
)

// newSizedBench returns a bench whose lane has room for eight queries of ten bytes together; a
// query has as many as its number.
func newSizedBench(t *testing.T) *bench {
	t.Helper()
	b := newBenchOf(t, base.MailboxConfig{
		System: newSystem(), Requests: 8, RequestBytes: 10,
		SizeOf: func(message any) int { return message.(*query).number },
	})
	b.Start()
	return b
}

// The lane is full for everybody, or for nobody, but what takes nothing needs a place only.
func TestMailboxIsFullOfBytes(t *testing.T) {
	b := newSizedBench(t)
	b.query(4)
	b.query(5)
	b.query(99)
	b.query(1) // refused
	b.query(0)
	b.expect(t, 4, 5, 99, 0)
	b.query(10)
	for range 8 {
		b.query(0) // the eighth is refused
	}
	b.expect(t, 10, 0, 0, 0, 0, 0, 0, 0)
	b.expectAnswers(t, refused{1, base.LaneFullOfBytes}, refused{0, base.LaneFull})
}

// A place that a large one leaves may be enough for several.
func TestMailboxAwaitPostOfBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newSizedBench(t)
		b.query(2)
		back := b.sender.From(&query{9})
		b.PostUserMessage(back)
		first, second, third := b.awaitPost(t.Context(), 7), b.awaitPost(t.Context(), 1), b.awaitPost(t.Context(), 3)
		if !b.Withdraw(back) {
			t.Error("a queued request was not taken back")
		}
		if err := errors.Join(<-first, <-second); err != nil {
			t.Error(err)
		}
		if len(third) != 0 {
			t.Error("the lane is full, and one did not wait")
		}
		b.expect(t, 2, 7, 1, 3)
		if err := <-third; err != nil {
			t.Error(err)
		}
	})
}

// Whoever waits for bytes and gives up is not in the way of whoever takes none.
func TestMailboxAwaitPostBehindBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBenchOf(t, base.MailboxConfig{
			System: newSystem(), Requests: 2, RequestBytes: 10,
			SizeOf: func(message any) int { return message.(*query).number },
		})
		b.Start()
		back := b.sender.From(&query{0})
		b.PostUserMessage(back)
		b.query(10)
		ctx, cancel := context.WithCancelCause(t.Context())
		bytes, nothing := b.awaitPost(ctx, 5), b.awaitPost(t.Context(), 0)
		b.Withdraw(back)
		cancel(errEnough)
		if err := <-bytes; !errors.Is(err, errEnough) {
			t.Errorf("got %v, want the cause", err)
		}
		if err := <-nothing; err != nil {
			t.Error(err)
		}
		b.expect(t, 10, 0)
	})
}

// Whatever a sender does to what he has sent, it leaves the lane as it came, and closing forgets all.
func TestMailboxForgetsBytes(t *testing.T) {
	b := newSizedBench(t)
	changed := &query{10}
	b.PostUserMessage(b.sender.From(changed))
	changed.number = 1
	b.query(2) // refused
	b.expect(t, 1)
	b.query(9)
	b.query(1)
	b.query(1) // refused
	b.expect(t, 9, 1)
	b.query(10)
	b.Close()
	b.expectAnswers(t, refused{2, base.LaneFullOfBytes}, refused{1, base.LaneFullOfBytes}, refused{10, base.Closed})
}
