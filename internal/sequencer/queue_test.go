package sequencer

import (
	"testing"

	"github.com/partita-go/partita/messages"
)

// What comes back to a long queue takes the room that it has left: each of many refusals
// would copy all the others.
func TestPushFrontTakesTheRoomItLeft(t *testing.T) {
	var q queue
	for i := range 1000 {
		q.push(waiting{append: &messages.Append{Workspace: messages.WSID(i)}})
	}
	again := make([]waiting, 0, 10)
	whole := testing.AllocsPerRun(1, func() {
		again = append(again, q.pop())
		q.pushFront(again)
		again = again[:0]
	})
	if whole != 0 {
		t.Errorf("got %v allocations for all that have left it, want none", whole)
	}
	allocated := testing.AllocsPerRun(10, func() {
		for range 10 {
			again = append(again, q.pop())
		}
		q.pushFront(again[1:])
		again = again[:0]
	})
	if allocated != 0 {
		t.Errorf("got %v allocations, want none", allocated)
	}
	q.pushFront([]waiting{{append: &messages.Append{Workspace: 2000}}})
	want := []messages.WSID{2000}
	for i := 11; i < 1000; i++ {
		want = append(want, messages.WSID(i))
	}
	for _, ws := range want {
		if w := q.pop(); w.workspace() != ws {
			t.Fatalf("got workspace %d, want %d", w.workspace(), ws)
		}
	}
	if q.len() != 0 {
		t.Errorf("got %d left, want none", q.len())
	}
	q.pushFront(again[:1])
	if q.len() != 1 {
		t.Errorf("got %d in a queue that was empty, want 1", q.len())
	}
}
