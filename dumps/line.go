package dumps

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/ids"
)

// Direction says whether an actor has received a message or sent it.
type Direction string

// The directions of a message.
const (
	// In: the actor has received it.
	In Direction = "In"
	// Out: the actor has sent it.
	Out Direction = "Out"
)

// Kind says whether somebody waits for an answer.
type Kind string

// The kinds of messages.
const (
	// Regular: nobody waits for an answer, and it is none.
	Regular Kind = "Regular"
	// Request: it will be answered.
	Request Kind = "Request"
	// Response: it answers a request.
	Response Kind = "Response"
)

// kinds are those of actors in the words of a dump.
var kinds = map[actors.TrafficKind]Kind{
	actors.TrafficRegular: Regular, actors.TrafficRequest: Request, actors.TrafficResponse: Response,
}

// Line is a line of a dump.
type Line struct {
	// Time is when the message was received or sent, by the clock of the machine.
	Time time.Time
	// Group and Key name the actor.
	Group, Key string
	// Node is that of the writer's options, 0 for none.
	Node uint16
	// Number counts the lines of the group and node from 1 on, since the process has begun, those included that
	// were lost.
	Number uint64
	// Trace is the trace that the message belongs to, 0 if it is of none.
	Trace     ids.TraceID
	Direction Direction
	// Class is ClassRuntime, ClassSystem or ClassApplication.
	Class string
	// Message is the name of the message's type, Protocol that of its package.
	Message, Protocol string
	Kind              Kind
	// Body is the message as JSON, nil if it is not shown.
	Body json.RawMessage
	// Correlation is the same in a request and its answers at one actor, 0 if it is neither.
	Correlation uint64
}

// timeLayout has all digits, so that lines can be sorted as text.
const (
	timeLayout   = timeToSecond + "000000000Z"
	timeToSecond = "2006-01-02T15:04:05."
)

// lineHead is what a line has besides its message.
type lineHead struct {
	group  *group
	node   string
	number uint64
	now    time.Time
}

// line appends a line. A message that cannot be shown, since a method of it panics, is left out.
func (t *text) line(m *actors.Traffic, d Direction, h *lineHead, known *messageType) {
	t.add(`{"ts":"`)
	t.time(h.now)
	t.add(h.group.head)
	if m.Key.ID != "" {
		t.add(`,"k":`)
		t.bytes = appendText(t.bytes, m.Key.ID, maxLongest)
	}
	t.add(h.node)
	t.add(`,"s":`)
	t.bytes = strconv.AppendUint(t.bytes, h.number, 10)
	if m.Trace != 0 && m.Trace.Validate() == nil {
		t.add(`,"t":"`)
		t.add(m.Trace.String())
		t.add(`"`)
	}
	t.add(`,"d":"`)
	t.add(string(d))
	t.add(`"`)
	t.add(known.names)
	t.add(`,"mk":"`)
	t.add(string(kinds[m.Kind]))
	t.add(`"`)
	t.message(m.Message, known)
	if m.Request != 0 {
		t.add(`,"c":`)
		t.bytes = strconv.AppendUint(t.bytes, m.Request, 10)
	}
	t.add("}\n")
}

// time appends a time by timeLayout. Most are of the second of the time before.
func (t *text) time(at time.Time) {
	if second := at.Unix(); second != t.second || len(t.toSecond) == 0 {
		t.second = second
		t.toSecond = at.UTC().AppendFormat(t.toSecond[:0], timeToSecond)
	}
	t.bytes = append(t.bytes, t.toSecond...)
	for nanos, unit := at.Nanosecond(), int(time.Second)/10; unit > 0; unit /= 10 {
		t.bytes = append(t.bytes, byte('0'+nanos/unit%10))
	}
	t.add("Z")
}

// message appends what is in a message, if that is shown.
func (t *text) message(message any, known *messageType) {
	if known.encoder == nil {
		return
	}
	before := len(t.bytes)
	defer func() {
		if reason := recover(); reason != nil {
			t.bytes = t.bytes[:before]
			t.add(`,"m":`)
			t.string(fmt.Sprintf("<panic: %T>", reason))
		}
	}()
	t.add(`,"m":`)
	t.end = len(t.bytes) + t.longest
	known.encoder.write(t, reflect.ValueOf(message))
}
