package dumps

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
)

// Query says which lines somebody looks for: those that have all that is set. The zero value is all of them. It
// remembers which requests it has found, so that it finds their answers, and belongs to one goroutine.
type Query struct {
	// Group and Message are names of a group and of a message's type.
	Group, Message string
	// Trace, if it is not 0, finds the messages of a trace, batches that have an event of it, and the answers to them.
	Trace ids.TraceID
	// Workspace, if it is set, finds messages with a field Workspace of this value, and the answers to them.
	Workspace *messages.WSID
	// From and To are times, To not included; the zero time is no bound.
	From, To time.Time

	field, trace []byte
	asked        map[exchange]struct{}
}

// exchange names a request at one actor.
type exchange struct {
	group, key  string
	node        uint16
	correlation uint64
	direction   Direction // of the request
}

// exchangeOf returns which exchange a request or a response is of.
func exchangeOf(l *Line) exchange {
	e := exchange{l.Group, l.Key, l.Node, l.Correlation, l.Direction}
	if l.Kind == Response {
		e.direction = In
		if l.Direction == In {
			e.direction = Out
		}
	}
	return e
}

// Learn takes note of a request whose answer is looked for. Whoever has all lines lets it see them before [Query.Finds],
// which may meet the answer first: processors write their lines in turn.
func (q *Query) Learn(l *Line) {
	if l.Kind == Request && (q.Trace != 0 || q.Workspace != nil) && q.isWanted(l) {
		if q.asked == nil {
			q.asked = make(map[exchange]struct{})
		}
		q.asked[exchangeOf(l)] = struct{}{}
	}
}

// Learned is how many requests without an answer it knows.
func (q *Query) Learned() int { return len(q.asked) }

// Finds reports whether a line is one of those. Of a request that it has not seen before it does not find the answer.
func (q *Query) Finds(l *Line) bool {
	if !q.From.IsZero() && l.Time.Before(q.From) || !q.To.IsZero() && !l.Time.Before(q.To) {
		return false
	}
	// A message that is not wanted itself may be the request that tells whose the answer is.
	q.Learn(l)
	if !q.isWanted(l) && !q.isAnswer(l) {
		return false
	}
	return (q.Group == "" || l.Group == q.Group) && (q.Message == "" || l.Message == q.Message)
}

// isWanted reports whether a line is of the trace and of the workspace that are looked for.
func (q *Query) isWanted(l *Line) bool {
	if q.Trace != 0 && l.Trace != q.Trace && (l.Trace != 0 || !q.isAbout(l)) {
		return false
	}
	if q.Workspace == nil {
		return true
	}
	if q.field == nil {
		t := text{}
		t.uint(uint64(*q.Workspace))
		q.field = append([]byte(`"Workspace":`), t.bytes...)
	}
	return hasField(l.Body, q.field)
}

// isAbout reports whether a message of no trace has an event in it that is of the one looked for: a batch may be of
// several.
func (q *Query) isAbout(l *Line) bool {
	if q.trace == nil {
		q.trace = []byte(`"Trace":"` + q.Trace.String() + `"`)
	}
	return hasField(l.Body, q.trace)
}

// isAnswer reports whether a line answers a request that is looked for.
func (q *Query) isAnswer(l *Line) bool {
	if l.Kind != Response {
		return false
	}
	e := exchangeOf(l)
	_, found := q.asked[e]
	delete(q.asked, e)
	return found
}

// hasField reports whether a field stands in a message with just this value. Quotation marks in texts have a
// backslash before them, so that no text can look like it.
func hasField(body, field []byte) bool {
	for {
		_, behind, found := bytes.Cut(body, field)
		if !found {
			return false
		}
		if len(behind) > 0 && (behind[0] == ',' || behind[0] == '}') {
			return true
		}
		body = behind
	}
}

// SortByTime sorts lines as they were written: by time, then by node, group and number.
func SortByTime(lines []Line) {
	slices.SortStableFunc(lines, func(a, b Line) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Number, b.Number))
	})
}

// Exchange is a request and its answer at one actor: one that it was asked, or one that it asked a leaf for.
type Exchange struct {
	Request Line
	// Response is nil if there is none among the lines.
	Response *Line
}

// Took is how long the answer took, 0 if there is none.
func (e *Exchange) Took() time.Duration {
	if e.Response == nil {
		return 0
	}
	return e.Response.Time.Sub(e.Request.Time)
}

// Join joins requests with their answers, in the order of the requests. The lines must be sorted by time; an answer
// whose request is not among them is left out.
func Join(lines []Line) []Exchange {
	var all []Exchange
	open := make(map[exchange][]int) // those without an answer, by their places
	for i := range lines {
		l := &lines[i]
		e := exchangeOf(l)
		switch l.Kind {
		case Request:
			open[e] = append(open[e], len(all))
			all = append(all, Exchange{Request: *l})
		case Response:
			if places := open[e]; len(places) > 0 {
				all[places[0]].Response = l
				if open[e] = places[1:]; len(places) == 1 {
					delete(open, e)
				}
			}
		case Regular:
		}
	}
	return all
}

// Hole is a range of sequence numbers that no line has.
type Hole struct {
	Group string
	Node  uint16
	// First and Last are the first and the last number that is missing.
	First, Last uint64
	// After and Before are the times of the lines beside it.
	After, Before time.Time
}

// Count is how many numbers are missing.
func (h *Hole) Count() uint64 { return h.Last - h.First + 1 }

// Holes finds the sequence numbers that are missing between others of their group and node: of lines that were
// lost, or were above the group's limit. The lines must be sorted by time. A process that begins counts from 1 again;
// so what is missing at its end, and before the first line of all, is not found.
func Holes(lines []Line) []Hole {
	var holes []Hole
	runs := make(map[string]*numbers)
	for i := range lines {
		l := &lines[i]
		name := strconv.Itoa(int(l.Node)) + "/" + l.Group
		run := runs[name]
		if run == nil || run.beginsAnew(l) {
			if run != nil {
				holes = run.appendHoles(holes)
			}
			run = &numbers{seen: make(map[uint64]struct{})}
			runs[name] = run
		}
		run.add(l)
	}
	for _, run := range runs {
		holes = run.appendHoles(holes)
	}
	slices.SortFunc(holes, func(a, b Hole) int {
		return cmp.Or(a.After.Compare(b.After), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Group, b.Group), cmp.Compare(a.First, b.First))
	})
	return holes
}

// maxLate is how many lines of a group may overtake one that has its number already, in the order of time.
const maxLate = 1 << 16

// numbers are those of one group, node and process.
type numbers struct {
	lines   []*Line
	seen    map[uint64]struct{}
	largest uint64
}

// beginsAnew reports whether a line is of a later process.
func (n *numbers) beginsAnew(l *Line) bool {
	_, again := n.seen[l.Number]
	return again || l.Number+maxLate < n.largest
}

func (n *numbers) add(l *Line) {
	n.seen[l.Number] = struct{}{}
	n.lines = append(n.lines, l)
	n.largest = max(n.largest, l.Number)
}

func (n *numbers) appendHoles(to []Hole) []Hole {
	slices.SortFunc(n.lines, func(a, b *Line) int { return cmp.Compare(a.Number, b.Number) })
	for i, l := range n.lines[1:] {
		before := n.lines[i]
		if l.Number > before.Number+1 {
			to = append(to, Hole{
				Group: l.Group, Node: l.Node, First: before.Number + 1, Last: l.Number - 1, After: before.Time, Before: l.Time,
			})
		}
	}
	return to
}
