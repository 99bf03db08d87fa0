package sequencer

import (
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
)

// waiting is a Start that is not granted yet, or an Append that is not durable yet.
type waiting struct {
	from Requester
	// start or append is set.
	start  *messages.Start
	append *messages.Append
	kind   *kindDef
	// ws is set, and pinned, when the numbers are known.
	ws *workspace
	// numbers and bytes are what an Append asks for.
	numbers, bytes int
	// otherwise is why an Append is refused unless it is a repetition, nil if that is
	// not known yet.
	otherwise error
	// divergences counts the tries to write an Append for which the log was not as
	// the partition holds it.
	divergences int
}

func (w *waiting) workspace() messages.WSID {
	if w.start != nil {
		return w.start.Workspace
	}
	return w.append.Workspace
}

func (w *waiting) trace() ids.TraceID {
	if w.start != nil {
		return w.start.Trace
	}
	return w.append.Trace
}

// queue holds requests in the order in which they are granted.
type queue struct {
	// The first of the items have left it.
	items []waiting
	left  int
	// starts counts the Starts in it.
	starts int
}

func (q *queue) len() int { return len(q.items) - q.left }

// first returns the request whose turn it is. There must be one.
func (q *queue) first() *waiting { return &q.items[q.left] }

func (q *queue) push(w waiting) {
	if len(q.items) == cap(q.items) && q.left > len(q.items)/2 {
		n := copy(q.items, q.items[q.left:])
		clear(q.items[n:])
		q.items, q.left = q.items[:n], 0
	}
	q.items = append(q.items, w)
	if w.start != nil {
		q.starts++
	}
}

func (q *queue) pop() waiting {
	w := q.items[q.left]
	q.items[q.left] = waiting{}
	q.left++
	if q.left == len(q.items) {
		q.items, q.left = q.items[:0], 0
	}
	if w.start != nil {
		q.starts--
	}
	return w
}

// pushFront puts Appends in front of all others. Where they have left the queue there is
// room for them, as a rule: a batch that is tried again costs its length, not the queue's.
func (q *queue) pushFront(appends []waiting) {
	if len(appends) <= q.left {
		q.left -= len(appends)
		copy(q.items[q.left:], appends)
		return
	}
	items := make([]waiting, 0, len(appends)+q.len())
	q.items, q.left = append(append(items, appends...), q.items[q.left:]...), 0
}

// takeAll empties the queue.
func (q *queue) takeAll() []waiting {
	all := q.items[q.left:]
	*q = queue{}
	return all
}
