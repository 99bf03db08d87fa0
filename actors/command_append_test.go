package actors_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
)

func (r *rig) spawnAppender(drafter actors.Drafter) *actors.CommandProcessor {
	r.t.Helper()
	return r.spawnConfigured(actors.CommandProcessorConfig{Drafter: drafter, Requests: 10})
}

// draftAll inserts a record for each raw id.
func draftAll(_ context.Context, d *actors.DraftContext) error {
	for _, raw := range d.Command().RawRecords {
		number, err := d.Number(raw.ID)
		if err != nil {
			return err
		}
		d.Insert(number, []byte("row"))
	}
	return nil
}

// What a drafter can say is in the event, and the answer has the real ids.
func TestCommandAppended(t *testing.T) {
	r := readyRig(t, setup{})
	explicit := messages.RecordID{Seq: messages.SeqOWRecordID, Number: messages.InitialOWRecordID + 9}
	p := r.spawnAppender(func(ctx context.Context, d *actors.DraftContext) error {
		if err := draftAll(ctx, d); err != nil {
			return err
		}
		d.Insert(d.Want(receipts), []byte("receipt"))
		d.InsertID(explicit, []byte("explicit"))
		d.Update(explicit, []byte("update"))
		d.SetBody(append([]byte("drafted "), d.Command().Body...))
		_, err := d.Number(99)
		wants(t, "unknown raw id", err, messages.ErrRawID)
		return nil
	})
	done, err := p.Execute(r.ctx, command(5, 3))
	r.check(err)
	five, three := messages.RecordID{Seq: invoices, Number: 1}, messages.RecordID{Seq: invoices, Number: 2}
	if want := map[messages.RawID]messages.RecordID{5: five, 3: three}; !reflect.DeepEqual(done.IDs, want) {
		t.Errorf("got ids %v, want %v", done.IDs, want)
	}
	e := r.log(0)[0]
	var ids []messages.RecordID
	for _, rec := range e.Records {
		ids = append(ids, rec.ID)
	}
	if want := []messages.RecordID{five, three, {Seq: receipts, Number: 1000}, explicit, explicit}; !reflect.DeepEqual(ids, want) {
		t.Errorf("got records %v, want %v", ids, want)
	}
	if string(e.Body) != "drafted body" || e.WLogOffset != done.WLogOffset || !reflect.DeepEqual(e.Numbers, done.Numbers) {
		t.Errorf("got event %+v for %+v", e, done)
	}
}

// A drafter that refuses or panics leaves nothing.
func TestCommandDraftRefused(t *testing.T) {
	r := readyRig(t, setup{})
	refuse := r.spawnAppender(func(context.Context, *actors.DraftContext) error { return errAny })
	_, err := refuse.Execute(r.ctx, command(1))
	wants(t, "refused", err, errAny)
	panics := r.spawnAppender(func(context.Context, *actors.DraftContext) error { panic("injected") })
	_, err = panics.Execute(r.ctx, command(1))
	wants(t, "panicked", err, actors.ErrHandlerPanic)
	_, err = r.spawnAppender(draftAll).Execute(r.ctx, command(1, 1))
	wants(t, "raw id twice", err, messages.ErrRawID)
	for name, add := range map[string]func(d *actors.DraftContext){
		"update of no record":   func(d *actors.DraftContext) { d.Update(messages.RecordID{}, []byte("of another row")) },
		"new record without id": func(d *actors.DraftContext) { d.InsertID(messages.RecordID{}, []byte("of another row")) },
	} {
		_, err = r.spawnAppender(func(ctx context.Context, d *actors.DraftContext) error {
			add(d)
			return draftAll(ctx, d)
		}).Execute(r.ctx, command(1))
		wants(t, name, err, messages.ErrUnknownSequence)
	}
	if n := r.append(7); n != 1 || len(r.log(0)) != 1 {
		t.Errorf("got number %d, %d events", n, len(r.log(0)))
	}
}

// Whoever has given up may use the memory of a command again, although it is still under way.
func TestCommandIsCopied(t *testing.T) {
	r := readyRig(t, setup{})
	entered, proceed := make(chan struct{}), make(chan struct{})
	var raw []messages.RawRecord
	p := r.spawnAppender(func(_ context.Context, d *actors.DraftContext) error {
		close(entered)
		<-proceed
		raw = d.Command().RawRecords
		return nil
	})
	c := command(1)
	c.Body, c.Expected = []byte("pay 100 to A"), new(messages.WLogOffset(0))
	ctx, cancel := context.WithCancel(r.ctx)
	outcome := make(chan error)
	go func() {
		_, err := p.Execute(ctx, c)
		outcome <- err
	}()
	<-entered
	cancel()
	wants(t, "given up", <-outcome, messages.ErrOutcomeUnknown)
	copy(c.Body, "pay 999 to B")
	*c.Expected, c.RawRecords[0].ID = 9, 99
	close(proceed)
	r.check(p.Stop(r.ctx))
	if log := r.log(0); len(log) != 1 || string(log[0].Body) != "pay 100 to A" || raw[0].ID != 1 {
		t.Errorf("got events %+v of raw records %v", log, raw)
	}
}

// A repeated command has the first one's answer; only whoever appends can promise that.
func TestCommandRepeated(t *testing.T) {
	r := readyRig(t, setup{})
	p := r.spawnAppender(draftAll)
	once := command(1)
	once.DedupID = messages.DedupID{1}
	first, err := p.Execute(r.ctx, once)
	r.check(err)
	again, err := p.Execute(r.ctx, once)
	r.check(err)
	want := *first
	want.Repeated = true
	if !reflect.DeepEqual(*again, want) {
		t.Errorf("got %+v, want %+v", *again, want)
	}
	late := command(1)
	late.Expected = new(messages.WLogOffset(0))
	_, err = p.Execute(r.ctx, late)
	wants(t, "expected offset", err, messages.ErrExpectedOffset)
	transacts := r.spawnProcessor(10, accept)
	for name, c := range map[string]messages.Command{"id": once, "offset": late} {
		_, err = transacts.Execute(r.ctx, c)
		wants(t, name, err, actors.ErrNotAppending)
	}
	if len(r.log(0)) != 1 {
		t.Errorf("got %d events, want 1", len(r.log(0)))
	}
}
