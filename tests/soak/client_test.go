package soak

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
)

// client does one thing after the other, over the whole life of a store.
type client struct {
	run    *run
	notes  notebook
	random *rand.Rand
	// workspaces is skewed: a few are asked for most.
	workspaces *rand.Zipf
	// named is the last append that had a deduplication id and was answered, unknown the
	// last of which nobody knows.
	named, unknown *request
}

func newClient(r *run, id, store uint64) *client {
	random := rand.New(rand.NewPCG(r.plan.seed<<20|store, id))
	return &client{run: r, notes: notebook{client: id}, random: random, workspaces: rand.NewZipf(random, 1.01, 1, workspaces-1)}
}

// work does things until the clients of a deployment are to stop, or it is gone.
func (c *client) work(ctx context.Context, d *deployment, once func(context.Context) error) {
	for !d.enough.Load() && ctx.Err() == nil {
		limited, cancel := c.limited(ctx)
		err := survived(func() error { return once(limited) })
		cancel()
		if err == nil {
			continue
		}
		if errors.Is(err, messages.ErrStopped) || errors.Is(err, storage.ErrClosed) {
			return
		}
		c.run.failed(err)
		pause(ctx, err)
	}
}

// limited gives some calls a deadline that passes at a random moment.
func (c *client) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.random.IntN(500) > 0 {
		return context.WithTimeout(ctx, time.Minute)
	}
	c.run.count(timeouts, 1)
	return context.WithTimeout(ctx, time.Duration(c.random.Int64N(int64(3*time.Millisecond))))
}

// survived is a call whose caller may die in it: the store panics in the hands of whoever
// calls it, and nobody ends the transaction.
func survived(do func() error) (err error) {
	defer func() {
		if died := recover(); died != nil {
			err = fmt.Errorf("%w: the owner died: %v", messages.ErrOutcomeUnknown, died)
		}
	}()
	return do()
}

// pause lets a partition that is busy or suffers come to itself, as a client would.
func pause(ctx context.Context, err error) {
	d := time.Millisecond
	if busy, ok := errors.AsType[*partition.BusyError](err); ok {
		d = max(d, busy.RetryAfter)
	}
	wait(ctx, d)
}

// wait returns when a time has passed or the context has ended.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (c *client) workspace() messages.WSID { return messages.WSID(c.workspaces.Uint64()) }

// request is an append of some events, which can be repeated.
type request struct {
	to     partition.AppendTo
	first  uint64 // the number of its first event
	drafts []messages.Draft
	digest uint64 // of what was promised first
}

// newRequest makes an append of up to three events to a workspace. Each creates a record for each of its numbers. The
// first one takes a voucher, too, if that is wanted.
func (c *client) newRequest(ws messages.WSID, events int, voucher bool) *request {
	q := &request{to: partition.AppendTo{Workspace: ws, Kind: kindShop, Wait: true}}
	numbers := 0
	for i := range events {
		event := c.notes.take()
		if i == 0 {
			q.first = event
		}
		body := newBody(c.notes.client, event)
		draft := messages.Draft{Wanted: []messages.Wanted{{Seq: seqInvoice}, {Seq: messages.SeqCRecordID}}, Body: body}
		if voucher && i == 0 {
			draft.Wanted = append(draft.Wanted, messages.Wanted{Seq: seqVoucher})
		}
		for range draft.Wanted {
			draft.Records = append(draft.Records, messages.DraftRecord{Number: numbers, New: true, Data: body})
			numbers++
		}
		q.drafts = append(q.drafts, draft)
	}
	if c.random.IntN(2) == 0 {
		binary.BigEndian.PutUint64(q.to.DedupID[:], c.notes.client+1)
		binary.BigEndian.PutUint64(q.to.DedupID[8:], q.first)
	}
	return q
}

// append appends, or repeats what was appended before.
func (c *client) append(ctx context.Context, d *deployment) error {
	switch {
	case c.unknown != nil:
		return c.again(ctx, d, c.unknown)
	case c.named != nil && c.random.IntN(50) == 0:
		return c.again(ctx, d, c.named)
	}
	q := c.newRequest(c.workspace(), max(1, c.random.IntN(20)-16), c.wantsVoucher())
	began := time.Now()
	each, err := q.send(ctx, d)
	if c.run.usedUp(q.to.Workspace, err) {
		return nil
	}
	if err != nil {
		return c.appendFailed(q, err)
	}
	c.run.appends.record(c.notes.client, time.Since(began))
	c.promised(q, each)
	if c.random.IntN(200) == 0 {
		return c.readBack(ctx, d, q, each)
	}
	return nil
}

// again repeats an append that has a deduplication id.
func (c *client) again(ctx context.Context, d *deployment, q *request) error {
	each, err := q.send(ctx, d)
	if c.run.usedUp(q.to.Workspace, err) && q == c.unknown {
		c.unknown = nil // others have the vouchers: there is nothing to repeat
		return nil
	}
	if err != nil {
		return err // it is as unknown, or as certain, as before
	}
	c.run.count(repeats, 1)
	if q == c.unknown {
		c.unknown = nil
		c.promised(q, each)
		return nil
	}
	if digest := q.digestOf(each); digest != q.digest || !each[0].Repeated {
		c.run.troublef("client %d, event %d: a repetition was told %+v, the first time it was something else", c.notes.client, q.first, each)
	}
	return nil
}

func (c *client) appendFailed(q *request, err error) error {
	if errors.Is(err, messages.ErrOutcomeUnknown) {
		for i := range q.drafts {
			c.notes.doubtful(q.first + uint64(i))
		}
		if !q.to.DedupID.IsZero() {
			c.unknown = q
		}
	}
	return err
}

// promised notes what an append was answered.
func (c *client) promised(q *request, each []messages.Appended) {
	for i, p := range q.promises(each) {
		c.acknowledged(q.first+uint64(i), &p)
	}
	if !q.to.DedupID.IsZero() {
		c.named, q.digest = q, q.digestOf(each)
	}
}

func (c *client) acknowledged(event uint64, p *promise) {
	if !c.notes.acknowledged(event, p.digest()) {
		c.run.troublef("client %d, event %d: acknowledged twice", c.notes.client, event)
	}
	c.run.count(acked, 1)
}

func (q *request) send(ctx context.Context, d *deployment) ([]messages.Appended, error) {
	sequencer, err := d.app.SequencerOf(q.to.Workspace)
	if err != nil {
		return nil, err
	}
	if len(q.drafts) > 1 {
		return sequencer.AppendAll(ctx, q.to, q.drafts)
	}
	one, err := sequencer.Append(ctx, q.to, q.drafts[0])
	if err != nil {
		return nil, err
	}
	return []messages.Appended{*one}, nil
}

// promises are what an answer says about each event.
func (q *request) promises(each []messages.Appended) []promise {
	all := make([]promise, len(each))
	for i := range each {
		all[i] = promise{
			partition: each[i].Partition, plog: each[i].PLogOffset, workspace: q.to.Workspace, wlog: each[i].WLogOffset,
			at: each[i].RegisteredAt, numbers: each[i].Numbers, body: q.drafts[i].Body,
		}
		for _, n := range each[i].Numbers {
			all[i].records = append(all[i].records, n.Record())
		}
	}
	return all
}

func (q *request) digestOf(each []messages.Appended) uint64 {
	sum := uint64(0)
	for _, p := range q.promises(each) {
		sum += p.digest()
	}
	return sum
}

// readBack reads what was just acknowledged.
func (c *client) readBack(ctx context.Context, d *deployment, q *request, each []messages.Appended) error {
	want := q.promises(each)[0]
	for e, err := range d.store.WLog(ctx, q.to.Workspace, each[0].WLogOffset) {
		if err != nil {
			return err
		}
		got := promiseOf(&e)
		if got.digest() != want.digest() {
			c.run.troublef("client %d, event %d: read %+v, acknowledged was %+v", c.notes.client, q.first, got, want)
		}
		return nil
	}
	c.run.troublef("client %d, event %d: it was acknowledged and cannot be read", c.notes.client, q.first)
	return nil
}
