package verify_test

import (
	"context"
	"iter"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// doctored alters what the reads of a store return. A hook that returns false
// leaves the element out.
type doctored struct {
	storage.Store
	plog     func(*messages.Event) bool
	wlog     func(*messages.Event) bool
	row      func(*storage.Row) bool
	rows     func([]storage.Row) []storage.Row
	wlogs    func(messages.WSID, []messages.Event) []messages.Event
	numbers  func(*storage.WorkspaceNumbers)
	register func(messages.PartitionID, *storage.Register)
	tail     func([]messages.Numbering) []messages.Numbering
	find     func(messages.WSID, messages.WLogOffset) messages.WLogOffset
}

// both alters the events of both logs alike.
func both(alter func(*messages.Event) bool) doctored { return doctored{plog: alter, wlog: alter} }

// change is both for alterations that leave nothing out.
func change(p messages.PartitionID, offset messages.PLogOffset, alter func(*messages.Event)) doctored {
	return both(func(e *messages.Event) bool {
		if e.Partition == p && e.PLogOffset == offset {
			alter(e)
		}
		return true
	})
}

func (d doctored) PLog(ctx context.Context, p messages.PartitionID, from messages.PLogOffset) iter.Seq2[messages.Event, error] {
	return alter(d.Store.PLog(ctx, p, from), d.plog)
}

func (d doctored) WLog(ctx context.Context, ws messages.WSID, from messages.WLogOffset) iter.Seq2[messages.Event, error] {
	seq := alter(d.Store.WLog(ctx, ws, from), d.wlog)
	if d.wlogs == nil {
		return seq
	}
	return replay(seq, func(events []messages.Event) []messages.Event { return d.wlogs(ws, events) })
}

func (d doctored) Records(ctx context.Context, ws messages.WSID, r storage.RecordRange) iter.Seq2[storage.Row, error] {
	seq := alter(d.Store.Records(ctx, ws, r), d.row)
	if d.rows == nil {
		return seq
	}
	return replay(seq, d.rows)
}

func (d doctored) Numbers(ctx context.Context, ws messages.WSID, periods ...messages.SequencePeriod) (storage.WorkspaceNumbers, error) {
	n, err := d.Store.Numbers(ctx, ws, periods...)
	if d.numbers != nil {
		d.numbers(&n)
	}
	return n, err
}

func (d doctored) Register(ctx context.Context, p messages.PartitionID) (storage.Register, error) {
	r, err := d.Store.Register(ctx, p)
	if d.register != nil {
		d.register(p, &r)
	}
	return r, err
}

func (d doctored) Tail(ctx context.Context, p messages.PartitionID, from messages.PLogOffset, limit int) ([]messages.Numbering, error) {
	t, err := d.Store.Tail(ctx, p, from, limit)
	if d.tail != nil {
		t = d.tail(t)
	}
	return t, err
}

func (d doctored) Find(ctx context.Context, ws messages.WSID, id messages.DedupID) (messages.WLogOffset, error) {
	o, err := d.Store.Find(ctx, ws, id)
	if d.find != nil {
		o = d.find(ws, o)
	}
	return o, err
}

func alter[T any](seq iter.Seq2[T, error], hook func(*T) bool) iter.Seq2[T, error] {
	if hook == nil {
		return seq
	}
	return func(yield func(T, error) bool) {
		for v, err := range seq {
			if (err != nil || hook(&v)) && !yield(v, err) {
				return
			}
		}
	}
}

// replay yields what the hook makes of all elements.
func replay[T any](seq iter.Seq2[T, error], hook func([]T) []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var all []T
		for v, err := range seq {
			if err != nil {
				yield(v, err)
				return
			}
			all = append(all, v)
		}
		for _, v := range hook(all) {
			if !yield(v, nil) {
				return
			}
		}
	}
}

// newStore returns a store with two owners' events in partitions 0 and 1, and
// projections that lag:
//
//	partition 0   1 ws 3   2 ws 6   3 ws 3   4 ws 6 | 5 ws 3   6 ws 6   7 ws 3
//	partition 1   1 ws 4   2 ws 4
//
// Each event of a person's workspace (3 and 4) creates an order; 6 is a company.
// Those of workspace 4 were appended together, under an id.
func newStore(t *testing.T) storage.Store {
	t.Helper()
	m, err := storagetest.NewMemory(storagetest.Descriptor(messages.TrustNone))
	if err != nil {
		t.Fatal(err)
	}
	person := storagetest.Spec{
		Workspace: 3, Create: []messages.SeqID{storagetest.SeqOrder}, Give: []messages.SeqID{storagetest.SeqInvoice},
		Body: []byte("body"), Sections: []messages.Section{{Tag: 16, Data: []byte("one")}},
	}
	company := storagetest.Spec{
		Workspace: 6, Kind: storagetest.KindCompany,
		Update: []messages.RecordID{{Seq: storagetest.SeqOrder, Number: 1}},
	}
	brought := company
	brought.Explicit = []messages.RecordID{{Seq: storagetest.SeqStaff, Number: 60}, {Seq: storagetest.SeqStaff, Number: 2}}
	p := storagetest.Take(t, m, 0)
	p.Append(t, person, company, person, brought)
	p = storagetest.Take(t, m, 0)
	company.Give = []messages.SeqID{storagetest.SeqStaff}
	p.Append(t, person, company, person)
	p.FlushTo(t, 5)
	other := person
	other.Workspace, other.DedupID, other.Together = 4, messages.DedupID{4}, 1
	last := other
	last.DedupID, last.Together = messages.DedupID{}, 0
	storagetest.Take(t, m, 1).Append(t, other, last)
	return m
}
