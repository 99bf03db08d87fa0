package base_test

import (
	"testing"
	"testing/synctest"
)

// A request that was taken back is never seen, and its place goes to whoever has
// waited longest. Only queued requests can be taken back, once.
func TestMailboxWithdraw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newSystem(), 3, nil)
		b.Start()
		back := b.sender.From(&query{1})
		b.query(0)
		b.PostUserMessage(back)
		b.query(2)
		waiting := b.awaitPost(t.Context(), 3)
		if !b.Withdraw(back) {
			t.Error("a queued request was not taken back")
		}
		if err := <-waiting; err != nil {
			t.Error(err)
		}
		if b.Withdraw(back) || b.Withdraw(b.sender.From(&query{2})) {
			t.Error("taken back what is not queued")
		}
		b.expect(t, 0, 2, 3)
	})
}
