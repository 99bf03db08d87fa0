package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/partita-go/partita/messages"
)

// client is a caller of the application: a goroutine of whichever process it is in at
// the time. Its own random numbers keep it apart from what others do.
type client struct {
	s      *sim
	name   string
	random *rand.Rand
	left   int
	done   bool

	// node, stage and cancel are those of the request under way.
	node   *node
	stage  string
	ws     messages.WSID
	cancel context.CancelCauseFunc

	// turnedAway says that the last request was refused: the next one is in no hurry.
	turnedAway bool
	// again is a request whose outcome is unknown, to be repeated.
	again *request
	owner *owner
}

type clientKey struct{}

// clientOf returns the client whose context it is, nil if it is nobody's.
func clientOf(ctx context.Context) *client {
	c, _ := ctx.Value(clientKey{}).(*client)
	return c
}

func (c *client) run() {
	for c.left > 0 && !c.s.quit {
		c.turn()
		c.left--
	}
	c.done = true
}

// turn makes one request of a node that serves.
func (c *client) turn() {
	pause := time.Duration(0)
	if c.turnedAway && c.random.IntN(4) > 0 {
		pause = time.Duration(c.random.IntN(5000)) * time.Microsecond
	}
	c.turnedAway = false
	c.s.wait(&task{key: c.name, due: c.s.after(pause)})
	for len(c.s.live) == 0 && !c.s.quit {
		c.s.wait(&task{key: c.name, due: c.s.after(time.Millisecond)})
	}
	if c.s.quit {
		return
	}
	n := c.s.live[c.random.IntN(len(c.s.live))]
	if again := c.again; again != nil {
		c.again = nil
		c.repeat(n, again)
		return
	}
	switch c.random.IntN(10) {
	case 0, 1, 2:
		c.append(n, c.draw(1+c.random.IntN(n.settings.BatchEvents), true))
	case 3:
		c.append(n, c.draw(1, true))
	case 4:
		c.command(n, c.draw(1, c.random.IntN(2) == 0))
	case 5:
		c.own(n, c.draw(1, false))
	default:
		c.transact(n, c.draw(1, false))
	}
}

// repeat sends a request again, or another one under its deduplication id.
func (c *client) repeat(n *node, r *request) {
	if c.random.IntN(6) == 0 {
		other := c.draw(len(r.drafts), true)
		other.workspace, other.kind, other.dedup = r.workspace, r.kind, r.dedup
		r = other
	}
	if r.command {
		c.command(n, r)
		return
	}
	c.append(n, r)
}

// context begins a request: its context ends when the seed says so, or with the node.
func (c *client) context(n *node, r *request, stage string) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), clientKey{}, c))
	c.node, c.stage, c.cancel, c.ws = n, stage, cancel, r.workspace
	limit := clock{&c.s.scheduler, nil}
	stop := func() bool { return true }
	if !c.s.isHealed() && c.random.IntN(4) == 0 {
		d := time.Duration(1+c.random.IntN(20_000)) * time.Microsecond
		ctx = deadlined{ctx, time.Now().Add(d)}
		stop = limit.AfterFunc(d, func() { c.end(context.DeadlineExceeded) }).Stop
	}
	return ctx, func() {
		stop()
		cancel(nil)
		c.node, c.cancel = nil, nil
	}
}

// deadlined tells the deadline of a context that the simulation ends, by the clock of the bubble.
type deadlined struct {
	context.Context
	at time.Time
}

func (d deadlined) Deadline() (time.Time, bool) { return d.at, true }

// end ends the context of the request under way, if there is one.
func (c *client) end(why error) {
	if c.node == nil {
		return
	}
	c.s.hit(faultContext, c.node, c.s.partitionOf(c.ws))
	c.s.notef("%s: its context ends while %s: %v", c.name, c.stage, why)
	c.cancel(why)
}

// resumed waits for the scheduler after an answer, and reports whether the process that
// gave it is still there to tell.
func (c *client) resumed(n *node) bool {
	c.s.gate(nil, c.name)
	return !c.s.isDead(n)
}

// conclude takes the answer to a request that writes and answers as one.
func (c *client) conclude(n *node, r *request, at *place, err error) {
	dead := c.s.isDead(n)
	if dead {
		err = errCrashed // the answer may have been under way
	}
	switch {
	case dead:
		c.s.ledger.unknown(r, err)
	case err == nil:
		c.s.ledger.acknowledged(r, at)
	case errors.Is(err, messages.ErrOutcomeUnknown):
		c.s.ledger.unknown(r, err)
	default:
		c.unwritten(n, r, err)
	}
	likely := err != nil || c.random.IntN(3) == 0 || c.s.aimsAtOp(opWLog) || c.s.aimsAtOp(opFind)
	if !r.dedup.IsZero() && likely && c.random.IntN(4) > 0 {
		c.again = r
	}
}

// draw makes up a request of so many events.
func (c *client) draw(events int, conditions bool) *request {
	s := c.s
	ws := messages.WSID(c.random.IntN(s.workspaces))
	r := s.ledger.request(c.name, ws, s.kindOf(ws))
	if c.random.IntN(40) == 0 {
		r.kind = messages.WSKind(1 + c.random.IntN(3)) // that of another, or none
	}
	for i := range events {
		r.drafts = append(r.drafts, c.draft(r, i))
	}
	if conditions && c.random.IntN(2) == 0 {
		r.dedup = messages.DedupID(fmt.Appendf(nil, "%016d", r.id))
	}
	if conditions && c.random.IntN(5) == 0 {
		last := messages.WLogOffset(max(0, s.ledger.lastKnown(ws)-c.random.IntN(2)))
		r.expected = &last
	}
	return r
}

// draft makes up an event: numbers, records with them, explicit ids, updates.
func (c *client) draft(r *request, i int) messages.Draft {
	d := messages.Draft{Body: fmt.Appendf(nil, "request %d event %d", r.id, i)}
	seqs := c.s.sequencesOf(r.kind)
	for range c.random.IntN(4) {
		d.Wanted = append(d.Wanted, messages.Wanted{Seq: seqs[c.random.IntN(len(seqs))], Count: uint32(c.random.IntN(3))})
	}
	earlier := 0
	for j := range r.drafts {
		earlier += r.drafts[j].Count()
	}
	for n := range d.Count() {
		if c.random.IntN(2) == 0 {
			d.Records = append(d.Records, messages.DraftRecord{Number: earlier + n, New: true, Data: []byte(r.name)})
		}
	}
	if c.random.IntN(8) == 0 {
		d.Records = append(d.Records, c.explicit(seqs))
	}
	c.useRules(r, &d)
	return d
}

// explicit makes up a record with an id of its own: low ones are often taken, or below
// their sequence's initial value.
func (c *client) explicit(seqs []messages.SeqID) messages.DraftRecord {
	seq := seqs[c.random.IntN(len(seqs))]
	initial := c.s.sequences[seq].Initial
	number := initial
	if seq != seqScarce {
		number = max(1, initial-3+messages.Number(c.random.IntN(60)))
	}
	return messages.DraftRecord{ID: messages.RecordID{Seq: seq, Number: number}, New: c.random.IntN(3) > 0, Data: []byte("explicit")}
}

// recordsOf returns the records of a draft whose numbers are known.
func recordsOf(d *messages.Draft, numbers []messages.SequenceNumber) []messages.Record {
	var records []messages.Record
	for _, dr := range d.Records {
		id := dr.ID
		if id == (messages.RecordID{}) {
			id = numbers[dr.Number].Record()
		}
		records = append(records, messages.Record{ID: id, New: dr.New, Data: dr.Data})
	}
	return records
}
