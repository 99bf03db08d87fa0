package actors_test

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// bill is a draft that wants an invoice number and creates a record under it.
func bill(body string) messages.Draft {
	return messages.Draft{
		Wanted:  []messages.Wanted{{Seq: invoices}},
		Body:    []byte(body),
		Records: []messages.DraftRecord{{Number: 0, New: true, Data: []byte("row")}},
	}
}

func to(ws messages.WSID) actors.AppendTo { return actors.AppendTo{Workspace: ws, Kind: shop} }

func toOnce(ws messages.WSID, id byte) actors.AppendTo {
	return actors.AppendTo{Workspace: ws, Kind: shop, DedupID: messages.DedupID{id}}
}

// append appends a bill and returns its number.
func (r *rig) append(ws messages.WSID) messages.Number {
	r.t.Helper()
	done, err := r.of(ws).Append(r.ctx, to(ws), bill("bill"))
	r.check(err)
	return done.Numbers[0].Number
}

// appending appends in a goroutine.
func (r *rig) appending(ctx context.Context, to actors.AppendTo) <-chan error {
	result := make(chan error, 1)
	go func() {
		_, err := r.of(to.Workspace).Append(ctx, to, bill("bill"))
		result <- err
	}()
	return result
}

func TestAppend(t *testing.T) {
	r := readyRig(t, setup{})
	r.commit(7)
	draft := messages.Draft{
		Wanted: []messages.Wanted{{Seq: invoices, Count: 2}, {Seq: receipts}},
		Body:   []byte("body"),
		Records: []messages.DraftRecord{
			{Number: 2, New: true, Data: []byte("receipt")},
			{ID: messages.RecordID{Seq: messages.SeqOWRecordID, Number: messages.InitialOWRecordID + 5}, New: true, Data: []byte("explicit")},
			{ID: messages.RecordID{Seq: invoices, Number: 1}, Data: []byte("update")},
		},
	}
	done, err := r.sequencers[0].Append(r.ctx, to(7), draft)
	r.check(err)
	want := messages.Appended{
		PLogOffset: 2, WLogOffset: 2, RegisteredAt: done.RegisteredAt,
		Numbers: []messages.SequenceNumber{{Seq: invoices, Number: 2}, {Seq: invoices, Number: 3}, {Seq: receipts, Number: 1000}},
	}
	if !reflect.DeepEqual(*done, want) {
		t.Errorf("got %+v, want %+v", *done, want)
	}
	log := r.log(0)
	e := log[len(log)-1]
	if string(e.Body) != "body" || !reflect.DeepEqual(e.Numbers, want.Numbers) || e.RegisteredAt != done.RegisteredAt {
		t.Errorf("got event %+v", e)
	}
	ids := []messages.RecordID{{Seq: receipts, Number: 1000}, draft.Records[1].ID, draft.Records[2].ID}
	for i, rec := range e.Records {
		if rec.ID != ids[i] || rec.New != draft.Records[i].New || string(rec.Data) != string(draft.Records[i].Data) {
			t.Errorf("record %d: got %+v", i, rec)
		}
	}
	tx := r.start(7)
	n, err := tx.Next(r.ctx, messages.SeqOWRecordID)
	r.check(err)
	if n != messages.InitialOWRecordID+6 || tx.WLogOffset() != 3 {
		t.Errorf("after the append: got number %d, offset %d", n, tx.WLogOffset())
	}
	r.check(tx.Cancel(r.ctx))
}

// Several events are consecutive, and each gets its own numbers.
func TestAppendAll(t *testing.T) {
	r := readyRig(t, setup{})
	drafts := []messages.Draft{bill("one"), {Body: []byte("two")}, {
		Wanted: []messages.Wanted{{Seq: invoices}, {Seq: receipts}},
		Body:   []byte("three"),
		// The first draft's record, updated by the third.
		Records: []messages.DraftRecord{{Number: 0, Data: []byte("again")}},
	}}
	all, err := r.sequencers[0].AppendAll(r.ctx, to(7), drafts)
	r.check(err)
	wantNumbers := [][]messages.SequenceNumber{
		{{Seq: invoices, Number: 1}}, {}, {{Seq: invoices, Number: 2}, {Seq: receipts, Number: 1000}},
	}
	for i, one := range all {
		at := messages.PLogOffset(i + 1)
		if one.PLogOffset != at || one.WLogOffset != messages.WLogOffset(at) || one.RegisteredAt != all[0].RegisteredAt {
			t.Errorf("event %d: got %+v", i, one)
		}
		if len(one.Numbers) != len(wantNumbers[i]) || len(one.Numbers) > 0 && !reflect.DeepEqual(one.Numbers, wantNumbers[i]) {
			t.Errorf("event %d: got numbers %v, want %v", i, one.Numbers, wantNumbers[i])
		}
	}
	log := r.log(0)
	if got, want := log[2].Records[0].ID, (messages.RecordID{Seq: invoices, Number: 1}); got != want {
		t.Errorf("the third event updates %v, want %v", got, want)
	}
	if log[0].Together != 2 || log[1].Together != 0 {
		t.Errorf("together: got %d and %d", log[0].Together, log[1].Together)
	}
}

func TestAppendRefused(t *testing.T) {
	r := readyRig(t, setup{partitions: 2, settings: messages.Settings{BatchEvents: 2}})
	r.append(2)
	five := messages.WLogOffset(5)
	for name, c := range map[string]struct {
		to     actors.AppendTo
		drafts []messages.Draft
		want   error
	}{
		"no draft":           {to(2), nil, messages.ErrDraft},
		"too many drafts":    {to(2), make([]messages.Draft, 3), messages.ErrDraft},
		"no such number":     {to(2), []messages.Draft{{Records: []messages.DraftRecord{{Number: 0, New: true}}}}, messages.ErrDraft},
		"unknown kind":       {actors.AppendTo{Workspace: 2, Kind: 99}, []messages.Draft{{}}, messages.ErrUnknownKind},
		"another kind":       {actors.AppendTo{Workspace: 2, Kind: site}, []messages.Draft{{}}, messages.ErrKindMismatch},
		"another partition":  {to(3), []messages.Draft{{}}, messages.ErrWrongPartition},
		"unknown sequence":   {to(2), []messages.Draft{{Wanted: []messages.Wanted{{Seq: 99}}}}, messages.ErrUnknownSequence},
		"the WLog's":         {to(2), []messages.Draft{{Wanted: []messages.Wanted{{Seq: messages.SeqWLogOffset}}}}, messages.ErrUnknownSequence},
		"not as far":         {actors.AppendTo{Workspace: 2, Kind: shop, Expected: &five}, []messages.Draft{{}}, messages.ErrExpectedOffset},
		"id above the cap":   {to(2), []messages.Draft{{Records: []messages.DraftRecord{{ID: messages.RecordID{Seq: invoices, Number: 1<<64 - 1}, New: true}}}}, messages.ErrExplicitID},
		"too many numbers":   {to(2), []messages.Draft{{Wanted: []messages.Wanted{{Seq: invoices, Count: messages.MaxEventNumbers + 1}}}}, messages.ErrTooManyNumbers},
		"second is unlawful": {to(2), []messages.Draft{bill("first"), {Wanted: []messages.Wanted{{Seq: 99}}}}, messages.ErrUnknownSequence},
	} {
		_, err := r.sequencers[0].AppendAll(r.ctx, c.to, c.drafts)
		wants(t, name, err, c.want)
	}
	if n := r.append(2); n != 2 || len(r.log(0)) != 2 {
		t.Errorf("got number %d, %d events, want 2 and 2", n, len(r.log(0)))
	}
}

func TestAppendExpectedOffset(t *testing.T) {
	r := readyRig(t, setup{})
	for at := range messages.WLogOffset(3) {
		where := to(7)
		where.Expected = &at
		_, err := r.sequencers[0].Append(r.ctx, where, bill("bill"))
		r.check(err)
		_, err = r.sequencers[0].Append(r.ctx, where, bill("bill"))
		offset, ok := errors.AsType[*messages.OffsetError](err)
		if !ok || offset.Got != at+1 || offset.Want != at || offset.Workspace != 7 {
			t.Errorf("got %v", err)
		}
	}
	if n := len(r.log(0)); n != 3 {
		t.Errorf("got %d events, want 3", n)
	}
}

// A repeated append has the first one's answer, at every stage of the first one's
// event: in the tail, flushed, after a restart.
func TestAppendRepeated(t *testing.T) {
	r := readyRig(t, setup{})
	first, err := r.sequencers[0].Append(r.ctx, toOnce(7, 1), bill("bill"))
	r.check(err)
	want := *first
	want.Repeated = true
	again := func(stage string) {
		t.Helper()
		got, err := r.sequencers[0].Append(r.ctx, toOnce(7, 1), bill("bill"))
		r.check(err)
		if !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: got %+v, want %+v", stage, *got, want)
		}
		_, err = r.sequencers[0].Append(r.ctx, toOnce(7, 1), bill("another bill"))
		wants(t, stage, err, messages.ErrDedupMismatch)
	}
	again("at once")
	r.append(7)
	again("behind another")
	r.fake.Advance(time.Second)
	again("flushed")
	r.again()
	r.ready()
	again("after a restart")
	if n := r.append(7); n != 3 {
		t.Errorf("got number %d, want 3", n)
	}
}

// The answer to the first try is lost: the same id tells, whether the event had
// landed or not.
func TestAppendRepeatedAfterAnUnknownOutcome(t *testing.T) {
	for name, do := range map[string]storagetest.Effect{"landed": storagetest.UnknownDone(), "did not land": storagetest.UnknownNotDone()} {
		t.Run(name, func(t *testing.T) {
			r := readyRig(t, setup{})
			r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: do, Times: 1})
			first, err := r.sequencers[0].Append(r.ctx, toOnce(7, 1), bill("bill"))
			r.check(err) // the partition has asked the log
			if first.Numbers[0].Number != 1 {
				t.Errorf("got %+v", first)
			}
			again, err := r.sequencers[0].Append(r.ctx, toOnce(7, 1), bill("bill"))
			r.check(err)
			if !again.Repeated || again.PLogOffset != first.PLogOffset {
				t.Errorf("got %+v, want %+v repeated", again, first)
			}
		})
	}
}

// 100 callers with the same id: one event, and one answer for all.
func TestAppendOnceByMany(t *testing.T) {
	r := readyRig(t, setup{})
	answers := make([]*messages.Appended, 100)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			var err error
			if answers[i], err = r.sequencers[0].Append(r.ctx, toOnce(7, 1), bill("bill")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	firsts := 0
	for _, a := range answers {
		if !a.Repeated {
			firsts++
		}
		if a.PLogOffset != 1 || a.Numbers[0].Number != 1 {
			t.Fatalf("got %+v", a)
		}
	}
	if firsts != 1 || len(r.log(0)) != 1 {
		t.Errorf("%d first answers, %d events, want one of each", firsts, len(r.log(0)))
	}
}

// What the store refuses is that append's error; those behind it take its numbers.
func TestAppendConflict(t *testing.T) {
	r := readyRig(t, setup{})
	r.append(7)
	gate := r.newGate()
	r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.Hold(gate), Times: 1})
	held := r.appending(r.ctx, to(1))
	r.arrives(gate)
	conflict := &storage.ConflictError{Place: storage.PlaceWLog, PLogOffset: 4, Workspace: 8, WLogOffset: 1}
	r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.Fail(conflict), Times: 1})
	var results []<-chan error
	for i, ws := range []messages.WSID{7, 8, 9} {
		results = append(results, r.appending(r.ctx, to(ws)))
		r.spyAppends(2 + i)
	}
	r.handled(4, &messages.Loaded{}) // those of 8 and 9 wait for their numbers first
	gate.Release()
	wants(t, "held", next(t, held), nil)
	wants(t, "before", next(t, results[0]), nil)
	wants(t, "refused", next(t, results[1]), storage.ErrConflict)
	wants(t, "behind", next(t, results[2]), nil)
	log := r.log(0)
	if len(log) != 4 || log[3].Workspace != 9 || log[3].Numbers[0].Number != 1 {
		t.Errorf("got %d events, the last of workspace %d", len(log), log[len(log)-1].Workspace)
	}
}

// spyAppends waits until the partition has handled n appends, the first of a rig
// not counted.
func (r *rig) spyAppends(n int) {
	r.t.Helper()
	r.handled(n+1, &messages.Append{})
}

func TestAppendStoreFails(t *testing.T) {
	for name, c := range map[string]struct {
		do   storagetest.Effect
		want error
	}{
		"full":      {storagetest.Full(), storage.ErrFull},
		"tail full": {storagetest.Fail(storage.ErrTailFull), messages.ErrBusy},
		"invalid":   {storagetest.Fail(storage.ErrInvalidEvent), storage.ErrInvalidEvent},
		"whatever":  {storagetest.Fail(errAny), errAny},
	} {
		t.Run(name, func(t *testing.T) {
			r := readyRig(t, setup{})
			r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: c.do, Times: 1})
			_, err := r.sequencers[0].Append(r.ctx, to(7), bill("bill"))
			wants(t, "append", err, c.want)
			if n := r.append(7); n != 1 || len(r.log(0)) != 1 {
				t.Errorf("got number %d", n)
			}
		})
	}
}

var errAny = errors.New("injected")

// The appender panics with a batch in its hands: its callers do not know the
// outcome, the log does.
func TestAppendInterrupted(t *testing.T) {
	r := readyRig(t, setup{})
	r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.Panic("injected"), Times: 1})
	result := r.appending(r.ctx, toOnce(7, 1))
	r.restart()
	wants(t, "append", next(t, result), messages.ErrOutcomeUnknown)
	r.awaitThat(0, "restarted", func(s messages.PartitionStatus) bool { return s.State == messages.StateNormal && s.Restarts == 1 })
	done, err := r.sequencers[0].Append(r.ctx, toOnce(7, 1), bill("bill"))
	r.check(err)
	if done.Repeated || done.Numbers[0].Number != 1 {
		t.Errorf("got %+v", done)
	}
}

// Somebody else owns the partition now.
func TestAppendFenced(t *testing.T) {
	r := readyRig(t, setup{})
	_, err := r.store.TakeEpoch(r.ctx, 0)
	r.check(err)
	_, err = r.sequencers[0].Append(r.ctx, to(7), bill("bill"))
	wants(t, "append", err, messages.ErrFenced)
	r.await(0, messages.StateFailed)
	_, err = r.sequencers[0].Append(r.ctx, to(7), bill("bill"))
	wants(t, "append to a failed partition", err, messages.ErrPartitionFailed)
}

// An explicit id that is taken is refused; whoever gets a number of his own is not.
func TestAppendExplicitConflict(t *testing.T) {
	r := readyRig(t, setup{})
	r.append(7)
	gate := r.newGate()
	r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.Hold(gate), Times: 1})
	held := r.appending(r.ctx, to(1))
	r.arrives(gate)
	bad := make(chan error, 1)
	go func() {
		_, err := r.of(7).Append(r.ctx, to(7), messages.Draft{
			Records: []messages.DraftRecord{{ID: messages.RecordID{Seq: invoices, Number: 1}, New: true}},
		})
		bad <- err
	}()
	r.spyAppends(2)
	good := r.appending(r.ctx, to(7))
	r.spyAppends(3)
	gate.Release()
	wants(t, "held", next(t, held), nil)
	wants(t, "explicit id", next(t, bad), storage.ErrConflict)
	wants(t, "number", next(t, good), nil)
}

// All of a batch that need the key that is taken are refused in one try.
func TestAppendConflictOfMany(t *testing.T) {
	for name, conflict := range map[string]*storage.ConflictError{
		"record": {Place: storage.PlaceRecord, PLogOffset: 3, Workspace: 7, Record: messages.RecordID{Seq: invoices, Number: 2}},
		"WLog":   {Place: storage.PlaceWLog, PLogOffset: 3, Workspace: 7, WLogOffset: 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := readyRig(t, setup{})
			r.append(7)
			gate := r.newGate()
			r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.Hold(gate), Times: 1})
			held := r.appending(r.ctx, to(1))
			r.arrives(gate)
			r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.Fail(conflict), Times: 1})
			one := r.appending(r.ctx, to(7))
			r.spyAppends(2)
			two := r.appending(r.ctx, to(7))
			r.spyAppends(3)
			gate.Release()
			wants(t, "held", next(t, held), nil)
			wants(t, "first", next(t, one), storage.ErrConflict)
			wants(t, "second", next(t, two), storage.ErrConflict)
		})
	}
}

// Damage refuses the appends that meet it, whether the store can name them or not,
// and so does what is wrong with an event; the partition's view of the log is as good as it was.
func TestAppendDamaged(t *testing.T) {
	damage := &storage.DamagedError{Where: "bucket dedup, run 1", Cause: errAny}
	for name, c := range map[string]struct{ err, want error }{
		"named":   {&storage.LookupError{PLogOffsets: []messages.PLogOffset{4}, Cause: damage}, storage.ErrDamaged},
		"invalid": {&storage.InvalidEventError{PLogOffset: 4, Cause: errAny}, storage.ErrInvalidEvent},
		// Tried one by one, the store takes all of them now.
		"unnamed": {damage, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := readyRig(t, setup{})
			r.append(7)
			gate := r.newGate()
			r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.Hold(gate), Times: 1})
			held := r.appending(r.ctx, to(1))
			r.arrives(gate)
			before := r.partitions[0].Status().Actualizations
			r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.Fail(c.err), Times: 1})
			good := r.appending(r.ctx, to(7)) // whose numbers need not be loaded: they stand in one batch
			r.spyAppends(2)
			bad := r.appending(r.ctx, toOnce(7, 1))
			r.spyAppends(3)
			gate.Release()
			wants(t, "held", next(t, held), nil)
			wants(t, "good", next(t, good), nil)
			wants(t, "bad", next(t, bad), c.want)
			if n := r.partitions[0].Status().Actualizations - before; n != 0 {
				t.Errorf("%d actualizations", n)
			}
		})
	}
	t.Run("alone", func(t *testing.T) {
		r := readyRig(t, setup{})
		before := r.partitions[0].Status().Actualizations
		r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.Fail(damage), Times: 1})
		_, err := r.of(7).Append(r.ctx, toOnce(7, 1), bill("bill"))
		wants(t, "append", err, storage.ErrDamaged)
		if n := r.partitions[0].Status().Actualizations - before; n != 0 {
			t.Errorf("%d actualizations", n)
		}
	})
}
