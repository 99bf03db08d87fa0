package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// errOwner says that the owner of a transaction was stopped.
var errOwner = errors.New("the owner stops")

// owner is an actor that speaks the protocol itself, message by message. It sees every
// answer, so also one too many.
type owner struct {
	node    *node
	pid     *actor.PID
	answers chan messages.SequencerReply
	stopped bool
}

func (o *owner) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case messages.SequencerReply:
		o.answers <- m
	case *actor.DeadLetterResponse:
		o.answers <- &messages.Refused{Err: messages.ErrStopped}
	}
}

func (c *client) ownerIn(n *node) *owner {
	if o := c.owner; o != nil && o.node == n && !o.stopped {
		return o
	}
	o := &owner{node: n, answers: make(chan messages.SequencerReply, 16)}
	key := actors.Key{Group: "owner", ID: fmt.Sprintf("%s-%d", c.name, len(n.owners))}
	watch := &observer{s: c.s, node: n, taken: make(map[actors.Key]any)}
	props := actor.PropsFromProducer(func() actor.Actor { return o },
		actor.WithDispatcher(dispatcher{&c.s.scheduler, n}),
		actor.WithMailbox(func() actor.Mailbox {
			return actors.NewMailbox(actors.MailboxConfig{Key: key, System: c.s.system, Observer: watch})
		}))
	pid, err := c.s.system.Root.SpawnNamed(props, n.actorName(key))
	if err != nil {
		c.s.failf("owner: %v", err)
	}
	o.pid = pid
	n.owners = append(n.owners, o)
	c.owner = o
	return o
}

// owned is a transaction of an owner.
type owned struct {
	*client
	owner   *owner
	node    *node
	request *request
	ctx     context.Context
	started *messages.Started
	numbers []messages.SequenceNumber
}

// own makes a request in a transaction of an actor.
func (c *client) own(n *node, r *request) {
	ctx, end := c.context(n, r, "owning")
	defer end()
	// An owner that asks for its numbers one by one cannot know which ones were given out.
	d := &r.drafts[0]
	d.Records = slices.DeleteFunc(d.Records, func(r messages.DraftRecord) bool { return !r.New && r.ID != messages.RecordID{} })
	t := &owned{client: c, owner: c.ownerIn(n), node: n, request: r, ctx: ctx}
	c.s.ledger.sent(r, "owner at %s", n.name)
	reply, err := t.ask(&messages.Start{
		Workspace: r.workspace, Kind: r.kind, Date: d.Date, Zone: d.Zone, WatchOwner: c.s.patient || c.random.IntN(4) > 0,
	})
	if started, ok := reply.(*messages.Started); ok && err == nil {
		t.started = started
		writers := &n.writers[started.Token.Partition]
		writers.open++
		defer func() { writers.open-- }()
		t.run()
		return
	}
	c.unwritten(n, r, errors.Join(err, refusalIn(reply)))
}

func refusalIn(reply messages.SequencerReply) error {
	if r, ok := reply.(*messages.Refused); ok {
		return r.Err
	}
	return nil
}

// ask sends a message and waits for its only answer. Now and then the owner stops
// instead.
func (t *owned) ask(m messages.PartitionMessage) (messages.SequencerReply, error) {
	if t.stopsNow() {
		return nil, errOwner
	}
	p := t.s.partitionOf(t.request.workspace)
	t.s.system.Root.RequestWithCustomSender(t.node.partitions[p].PID(), m, t.owner.pid)
	var reply messages.SequencerReply
	select {
	case reply = <-t.owner.answers:
	case <-t.ctx.Done():
	}
	switch {
	case !t.resumed(t.node):
		return nil, errCrashed // an answer may have been under way
	case reply == nil:
		t.stop()
		return nil, context.Cause(t.ctx)
	}
	t.expectNoMore()
	return reply, nil
}

func (t *owned) stopsNow() bool {
	if t.random.IntN(16) > 0 {
		return false
	}
	t.s.hit(faultOwner, t.node, t.s.partitionOf(t.request.workspace))
	t.stop()
	return true
}

func (t *owned) stop() {
	t.s.notef("%s: its owner stops", t.name)
	t.owner.stopped = true
	t.s.system.Root.Stop(t.owner.pid)
}

func (t *owned) expectNoMore() {
	if n := len(t.owner.answers); n > 0 {
		t.s.failf("request %d: %d answers too many", t.request.id, n)
	}
}

// run takes the numbers and writes.
func (t *owned) run() {
	token, d := t.started.Token, &t.request.drafts[0]
	for _, w := range d.Wanted {
		reply, err := t.ask(&messages.Next{Token: token, Seq: w.Seq, Count: w.Count})
		given, ok := reply.(*messages.Given)
		if !ok {
			t.cancelled(token, errors.Join(err, refusalIn(reply)))
			return
		}
		t.numbers = messages.AppendNumbers(t.numbers, w, messages.SequenceNumber{Seq: w.Seq, Period: given.Period, Number: given.Number})
	}
	if t.random.IntN(6) == 0 {
		t.cancelled(token, errors.New("the owner cancels"))
		return
	}
	records := recordsOf(d, t.numbers)
	for _, r := range records {
		if !r.New || d.Count() > 0 && t.gave(r.ID) {
			continue
		}
		if reply, err := t.ask(&messages.Raise{Token: token, ID: r.ID}); err != nil || refusalIn(reply) != nil {
			t.cancelled(token, errors.Join(err, refusalIn(reply)))
			return
		}
	}
	t.write(token, records)
}

func (t *owned) gave(id messages.RecordID) bool {
	for _, n := range t.numbers {
		if n.Record() == id {
			return true
		}
	}
	return false
}

func (t *owned) cancelled(token messages.Token, why error) {
	if !t.owner.stopped && !t.s.isDead(t.node) {
		reply, err := t.ask(&messages.Cancel{Token: token})
		why = errors.Join(why, err, refusalIn(reply))
		if _, ok := reply.(*messages.Cancelled); ok {
			t.expectEnded(token)
		}
	}
	t.unwritten(t.node, t.request, why)
}

// expectEnded checks that a transaction that was cancelled takes no more numbers.
func (t *owned) expectEnded(token messages.Token) {
	reply, err := t.ask(&messages.Next{Token: token, Seq: messages.SeqCRecordID})
	if _, given := reply.(*messages.Given); given && err == nil {
		t.s.failf("request %d: was given a number after it had been cancelled", t.request.id)
	}
}

func (t *owned) write(token messages.Token, records []messages.Record) {
	if t.stopsNow() {
		t.unwritten(t.node, t.request, errOwner)
		return
	}
	d := &t.request.drafts[0]
	e := messages.Event{
		Kind: messages.EventBusiness, Epoch: token.Epoch, Partition: token.Partition, PLogOffset: token.PLogOffset,
		Workspace: t.request.workspace, WorkspaceKind: t.request.kind, WLogOffset: t.started.WLogOffset,
		RegisteredAt: t.started.RegisteredAt, Date: d.Date, Zone: d.Zone, Numbers: t.numbers, Body: d.Body, Records: records,
	}
	owners := store{s: t.s, node: t.node, disk: t.s.disk, owners: true}
	err := owners.Append(t.ctx, storage.Batch{Partition: token.Partition, Epoch: token.Epoch, Events: []messages.Event{e}})
	t.resumed(t.node)
	at := &place{plog: token.PLogOffset, wlog: t.started.WLogOffset, at: t.started.RegisteredAt, numbers: t.numbers}
	t.conclude(t.node, t.request, at, err)
	switch {
	case t.s.isDead(t.node):
	case err == nil:
		t.end(token, &messages.Flush{Token: token})
	default:
		t.end(token, &messages.Actualize{Token: token})
	}
}

// end tells the partition. Of an event in the log it may not say that it is not there.
func (t *owned) end(token messages.Token, m messages.PartitionMessage) {
	reply, err := t.ask(m)
	t.s.notef("request %d: ends %v: %v, %v", t.request.id, token, describe(reply), err)
	if _, flush := m.(*messages.Flush); flush && errors.Is(refusalIn(reply), messages.ErrFenced) {
		t.s.failf("request %d: Flush of what is in the log: %v", t.request.id, refusalIn(reply))
	}
}
