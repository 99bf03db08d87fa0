package tests

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// begun is an append that a client has begun.
type begun struct {
	Workspace messages.WSID
	ID        messages.DedupID
	// Bodies are those of its events. All else that they hold follows from them.
	Bodies []string
	// Drafted says that draftBody has made the event, for so many raw ids.
	Drafted bool
	Raws    int
	// Moves are the sequences that its first event moves.
	Moves []messages.SequenceNumber
}

// answered is an append with what its answer promised.
type answered struct {
	begun *begun
	acked []*acked
}

// idOf is a deduplication id that belongs to a client's number.
func idOf(client, n uint64) messages.DedupID {
	var id messages.DedupID
	binary.BigEndian.PutUint64(id[:8], client)
	binary.BigEndian.PutUint64(id[8:], n|1<<63) // the zero id is none
	return id
}

// draftsOf are the drafts of events with the given bodies. The first one creates
// the records of its invoice number and of the second of its record ids; the others
// each create a delivery, and update the invoice.
func draftsOf(bodies ...string) []messages.Draft {
	drafts := []messages.Draft{{
		Wanted: []messages.Wanted{{Seq: seqInvoice}, {Seq: messages.SeqCRecordID, Count: 2}},
		Body:   []byte(bodies[0]),
		Records: []messages.DraftRecord{
			{Number: 0, New: true, Data: []byte(bodies[0])},
			{Number: 2, New: true, Data: []byte(bodies[0])},
		},
	}}
	for i, body := range bodies[1:] {
		drafts = append(drafts, messages.Draft{
			Wanted: []messages.Wanted{{Seq: seqDelivery}},
			Body:   []byte(body),
			Records: []messages.DraftRecord{
				{Number: 0, Data: []byte(body)},
				{Number: 3 + i, New: true, Data: []byte(body)},
			},
		})
	}
	return drafts
}

func (b *begun) drafts() []messages.Draft {
	if !b.Drafted {
		drafts := draftsOf(b.Bodies...)
		drafts[0].Moves = b.Moves
		return drafts
	}
	draft := messages.Draft{Body: []byte(b.Bodies[0])}
	for i := range b.Raws {
		draft.Wanted = append(draft.Wanted, messages.Wanted{Seq: messages.SeqCRecordID})
		draft.Records = append(draft.Records, messages.DraftRecord{Number: i, New: true, Data: draft.Body})
	}
	draft.Wanted = append(draft.Wanted, messages.Wanted{Seq: seqReceipt})
	return []messages.Draft{draft}
}

// draftBody is the drafter of the command processors: it wants one number and
// stores the body under each of the command's raw ids.
func draftBody(_ context.Context, d *partition.DraftContext) error {
	for _, raw := range d.Command().RawRecords {
		number, err := d.Number(raw.ID)
		if err != nil {
			return err
		}
		d.Insert(number, d.Command().Body)
	}
	d.Want(seqReceipt)
	return nil
}

// send appends and returns what each event was promised.
func (b *begun) send(ctx context.Context, app *partition.App, expected *messages.WLogOffset) ([]messages.Appended, error) {
	sequencer, err := app.SequencerOf(b.Workspace)
	if err != nil {
		return nil, err
	}
	to := partition.AppendTo{Workspace: b.Workspace, Kind: kindShop, DedupID: b.ID, Expected: expected, Wait: true}
	drafts := b.drafts()
	if len(drafts) > 1 {
		return sequencer.AppendAll(ctx, to, drafts)
	}
	one, err := sequencer.Append(ctx, to, drafts[0])
	if err != nil {
		return nil, err
	}
	return []messages.Appended{*one}, nil
}

// promised is what an answer says about each event.
func (b *begun) promised(each []messages.Appended) []*acked {
	var numbers []messages.SequenceNumber
	for i := range each {
		numbers = append(numbers, each[i].Numbers...)
	}
	drafts := b.drafts()
	all := make([]*acked, 0, len(each))
	for i := range each {
		a := &acked{
			Partition: each[i].Partition, PLogOffset: each[i].PLogOffset, Workspace: b.Workspace, WLogOffset: each[i].WLogOffset,
			At: each[i].RegisteredAt, Numbers: each[i].Numbers, Moves: drafts[i].Moves, Body: b.Bodies[i],
		}
		for _, r := range drafts[i].Records {
			a.Records = append(a.Records, numbers[r.Number].Record())
		}
		all = append(all, a)
	}
	return all
}

// append appends one to three events, or repeats what was appended before.
func (b *client) append(ctx context.Context) {
	ctx, cancel := b.limited(ctx)
	defer cancel()
	if b.again(ctx) {
		return
	}
	a := &begun{Workspace: b.workspace(), Bodies: []string{b.body()}}
	for _, suffix := range []string{"+", "++"}[:b.random.IntN(3)] {
		a.Bodies = append(a.Bodies, b.body()+suffix)
	}
	if b.random.IntN(8) == 0 {
		a.Moves = []messages.SequenceNumber{{Seq: seqReceipt, Number: messages.Number(time.Now().UnixNano())}}
	}
	if b.random.IntN(4) > 0 {
		a.ID = idOf(b.Seed<<16|b.id, uint64(b.count))
	}
	var expected *messages.WLogOffset
	if b.random.IntN(10) == 0 {
		expected = new(messages.WLogOffset(b.random.IntN(3)))
	}
	b.journal.write(entry{Begun: a})
	each, err := a.send(ctx, b.app, expected)
	b.answer(ctx, a, each, err)
}

// draft is append by a command processor.
func (b *client) draft(ctx context.Context, p *partition.CommandProcessor) {
	ctx, cancel := b.limited(ctx)
	defer cancel()
	if b.again(ctx) {
		return
	}
	a := &begun{
		Workspace: b.workspace(), ID: idOf(b.Seed<<16|b.id, uint64(b.count)), Bodies: []string{b.body()}, Drafted: true, Raws: b.random.IntN(3),
	}
	c := messages.Command{Workspace: a.Workspace, Kind: kindShop, Body: []byte(a.Bodies[0]), DedupID: a.ID}
	for i := range a.Raws {
		c.RawRecords = append(c.RawRecords, messages.RawRecord{ID: messages.RawID(i + 1)})
	}
	b.journal.write(entry{Begun: a})
	done, err := p.Execute(ctx, c)
	if err != nil {
		b.answer(ctx, a, nil, err)
		return
	}
	b.answer(ctx, a, []messages.Appended{{
		Partition: done.Partition, PLogOffset: done.PLogOffset, WLogOffset: done.WLogOffset, RegisteredAt: done.RegisteredAt, Numbers: done.Numbers,
	}}, nil)
}

// again repeats an append of which nobody knows, or sometimes one that was answered.
// It reports whether it did.
func (b *client) again(ctx context.Context) bool {
	var a *begun
	switch {
	case len(b.doubtful) > 0:
		a = b.doubtful[0]
	case b.named != nil && b.random.IntN(8) == 0:
		a = b.named
	default:
		return false
	}
	each, err := a.send(ctx, b.app, nil)
	switch {
	case err != nil:
		b.suffer(ctx, err)
		if !errors.Is(err, messages.ErrOutcomeUnknown) {
			b.explain(ctx, err)
		}
		return true
	case a != b.named:
		b.doubtful = b.doubtful[1:]
	case !each[0].Repeated:
		b.journal.write(entry{Trouble: "an answered append was written again: " + a.Bodies[0]})
	}
	b.journal.write(entry{Appended: a.promised(each)})
	return true
}

// answer journals what became of an append that was begun.
func (b *client) answer(ctx context.Context, a *begun, each []messages.Appended, err error) {
	switch {
	case err == nil:
		b.journal.write(entry{Appended: a.promised(each)})
		if a.ID != (messages.DedupID{}) {
			b.named = a
		}
		b.counted()
	case !errors.Is(err, messages.ErrOutcomeUnknown):
		b.suffer(ctx, err)
		b.journal.write(entry{Refused: a.Bodies})
		b.explain(ctx, err)
	case a.ID != (messages.DedupID{}):
		b.doubtful = append(b.doubtful, a)
	}
}

// resolve repeats the appends of which nobody knows, and some that were answered:
// each is there once afterwards, wherever it stood before.
func (l *ledger) resolve(t testing.TB, d *deployment) {
	t.Helper()
	last := make([]messages.PLogOffset, d.app.Partitions())
	for p := range last {
		last[p] = d.register(t, messages.PartitionID(p)).Last
	}
	ask := func(b *begun) {
		each, err := b.send(limit(t), d.app, nil)
		for errors.Is(err, messages.ErrBusy) { // until a flush has made room
			each, err = b.send(limit(t), d.app, nil)
		}
		if errors.Is(err, messages.ErrBackward) {
			l.write(entry{Refused: b.Bodies}) // it was not written, and the sequence has gone on
			return
		}
		check(t, err)
		if there := each[0].PLogOffset <= last[each[0].Partition]; each[0].Repeated != there {
			t.Errorf("%s: got repeated %v at offset %d of a log that ended at %d", b.Bodies[0], each[0].Repeated, each[0].PLogOffset, last[each[0].Partition])
		}
		l.write(entry{Appended: b.promised(each)})
		l.asked++
	}
	for i := 0; i < len(l.named); i += 1 + len(l.named)/20 {
		ask(l.named[i].begun)
	}
	for _, b := range l.open {
		if b.ID != (messages.DedupID{}) {
			ask(b)
		}
	}
}
