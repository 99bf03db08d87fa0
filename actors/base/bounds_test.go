package base_test

import (
	"testing"
	"testing/synctest"
)

// TestMailboxSetBounds: whoever waits gets the room of a wider lane; a narrower one keeps what it has, and takes
// nothing until there is room again.
func TestMailboxSetBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newSizedBench(t)
		b.query(10) // as much as the lane takes
		first, second := b.awaitPost(t.Context(), 5), b.awaitPost(t.Context(), 6)
		synctest.Wait()
		b.SetBounds(8, 12)
		if err := <-first; err != nil {
			t.Error(err)
		}
		if len(second) != 0 {
			t.Error("the lane is full, and one did not wait")
		}
		b.SetBounds(1, 1)
		b.query(1) // refused
		b.expect(t, 10, 5, 6)
		if err := <-second; err != nil {
			t.Error(err)
		}
		b.SetBounds(0, 0) // one request of any size
		b.query(99)
		b.query(0) // refused
		b.expect(t, 99)
	})
}
