package actors_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
)

// A handler brings numbers along before it takes any, and moves sequences at last.
func TestCommandHandlerTakesOver(t *testing.T) {
	r := readyRig(t, setup{})
	p := r.spawnProcessor(10, func(ctx context.Context, c *actors.CommandContext) error {
		if err := c.Bring(ctx, invoice(5)); err != nil {
			return err
		}
		if n, err := c.Next(ctx, invoices); n != 6 || err != nil {
			t.Errorf("got %d, %v, want 6", n, err)
		}
		return errors.Join(c.Insert(ctx, invoice(5).Record(), []byte("old")), c.Move(ctx, invoice(30)))
	})
	done, err := p.Execute(r.ctx, command())
	r.check(err)
	if want := []messages.SequenceNumber{invoice(5), invoice(6)}; !slices.Equal(done.Numbers, want) {
		t.Errorf("got %v, want %v", done.Numbers, want)
	}
	e := r.log(0)[0]
	if e.Brought != 1 || !slices.Equal(e.Moves, []messages.SequenceNumber{invoice(30)}) || len(e.Records) != 1 || e.Records[0].ID != invoice(5).Record() {
		t.Errorf("got %+v", e)
	}
	_, err = p.Execute(r.ctx, command())
	wants(t, "back", err, messages.ErrBackward)
	_, err = p.Execute(r.ctx, command(1))
	wants(t, "behind the id of a raw record", err, messages.ErrDraft)
	if n := r.append(7); n != 31 {
		t.Errorf("got %d, want 31", n)
	}
}

// A drafter brings numbers along whenever it likes: the records have the ids that they were given.
func TestCommandDrafterTakesOver(t *testing.T) {
	r := readyRig(t, setup{})
	p := r.spawnAppender(func(ctx context.Context, d *actors.DraftContext) error {
		if err := draftAll(ctx, d); err != nil { // two raw ids
			return err
		}
		d.Insert(d.Want(receipts), []byte("receipt"))
		first, second := d.Bring(invoice(5)), d.Bring(invoice(9))
		d.Insert(second, []byte("second"))
		d.Insert(first, []byte("first"))
		d.Move(invoice(40))
		return nil
	})
	done, err := p.Execute(r.ctx, command(3, 1))
	r.check(err)
	receipt := messages.SequenceNumber{Seq: receipts, Number: 1000}
	if want := []messages.SequenceNumber{invoice(5), invoice(9), invoice(10), invoice(11), receipt}; !slices.Equal(done.Numbers, want) {
		t.Errorf("got %v, want %v", done.Numbers, want)
	}
	if done.IDs[3] != invoice(10).Record() || done.IDs[1] != invoice(11).Record() {
		t.Errorf("got %v", done.IDs)
	}
	var got []messages.RecordID
	e := r.log(0)[0]
	for _, record := range e.Records {
		got = append(got, record.ID)
	}
	want := []messages.RecordID{invoice(10).Record(), invoice(11).Record(), receipt.Record(), invoice(9).Record(), invoice(5).Record()}
	if !slices.Equal(got, want) || e.Brought != 2 || len(e.Moves) != 1 {
		t.Errorf("got records %v of %+v, want %v", got, e, want)
	}
	_, err = p.Execute(r.ctx, command())
	wants(t, "back", err, messages.ErrBackward)
	if n := r.append(7); n != 41 {
		t.Errorf("got %d, want 41", n)
	}
}

// A record that refers to what was neither wanted nor brought along is refused.
func TestCommandDrafterRefersToNothing(t *testing.T) {
	r := readyRig(t, setup{})
	for _, number := range []int{-2, -77, 1, 77} {
		p := r.spawnAppender(func(_ context.Context, d *actors.DraftContext) error {
			d.Bring(invoice(5))
			d.Want(invoices)
			d.Insert(number, nil)
			return nil
		})
		_, err := p.Execute(r.ctx, command())
		wants(t, "a record of nothing", err, messages.ErrDraft)
	}
	if got := len(r.log(0)); got != 0 {
		t.Errorf("got %d events", got)
	}
}

// A command that was told and is refused later has nobody to tell it but the log.
func TestCommandToldAndRefused(t *testing.T) {
	r := readyRig(t, setup{})
	core, logs := observer.New(zap.WarnLevel)
	p := r.spawnConfigured(actors.CommandProcessorConfig{Logger: zap.New(core), Requests: 10, Drafter: func(_ context.Context, d *actors.DraftContext) error {
		if len(d.Command().RawRecords) > 0 {
			return errors.New("no")
		}
		return nil
	}})
	for _, c := range []messages.Command{command(1), command()} {
		s := actors.Sending{To: p}
		r.check(s.Tell(r.ctx, c))
		if !s.Posted {
			t.Error("the command was not posted")
		}
	}
	_, err := p.Execute(r.ctx, command()) // behind both
	r.check(err)
	if got := len(r.log(0)); got != 2 {
		t.Errorf("got %d events, want 2", got)
	}
	lines := logs.All()
	if len(lines) != 1 || lines[0].ContextMap()["error"] != "no" || lines[0].ContextMap()["workspace"] != "7" {
		t.Errorf("got %v", lines)
	}
	r.check(p.Stop(r.ctx))
	wants(t, "after the stop", (&actors.Sending{To: p}).Tell(r.ctx, command()), messages.ErrStopped)
}

// Whoever waits for a place does not carry the command out itself: his context ends his wait.
func TestCommandAskedIsNotTheAskersWork(t *testing.T) {
	r := readyRig(t, setup{})
	b := newBlocking()
	p := r.spawnProcessor(10, b.deafHandle)
	ctx, cancel := context.WithCancel(r.ctx)
	answer := make(chan error, 1)
	go func() {
		_, err := (&actors.Sending{To: p, Wait: true}).Ask(ctx, command())
		answer <- err
	}()
	next(t, b.arrived)
	cancel()
	wants(t, "ask", next(t, answer), messages.ErrOutcomeUnknown)
	close(b.release)
}
