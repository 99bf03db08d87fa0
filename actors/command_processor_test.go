package actors_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// spawnProcessor starts a command processor that serves all partitions.
func (r *rig) spawnProcessor(requests int, handler actors.Handler) *actors.CommandProcessor {
	r.t.Helper()
	return r.spawnConfigured(actors.CommandProcessorConfig{Handler: handler, Requests: requests})
}

func (r *rig) spawnConfigured(c actors.CommandProcessorConfig) *actors.CommandProcessor {
	r.t.Helper()
	key := actors.Key{Group: "command-processor", ID: fmt.Sprint(len(r.processors))}
	c.Key, c.Name = key, fmt.Sprintf("rig/%d/%v", rigs, key)
	c.Route = func(ws messages.WSID) (*actors.Sequencer, error) { return r.of(ws), nil }
	c.System, c.Guardian, c.Dispatcher, c.Clock = system, r.guardian, r.dispatcher, r.clock
	c.Logger, c.Limit, c.Observer = cmp.Or(c.Logger, zap.NewNop()), patience, r.spy
	p, err := actors.SpawnCommandProcessor(c, r.ports)
	r.check(err)
	r.processors = append(r.processors, p)
	return p
}

func accept(context.Context, *actors.CommandContext) error { return nil }

// raw makes raw records of the sequence of invoices.
func raw(ids ...messages.RawID) []messages.RawRecord {
	records := make([]messages.RawRecord, len(ids))
	for i, id := range ids {
		records[i] = messages.RawRecord{ID: id, Seq: invoices}
	}
	return records
}

func command(ids ...messages.RawID) messages.Command {
	return messages.Command{Workspace: 7, Kind: shop, RawRecords: raw(ids...), Body: []byte("body")}
}

// insertAll inserts a record for each raw id.
func insertAll(ctx context.Context, c *actors.CommandContext) error {
	for _, r := range c.Command().RawRecords {
		id, err := c.ID(r.ID)
		if err != nil {
			return err
		}
		if err := c.Insert(ctx, id, []byte("row")); err != nil {
			return err
		}
	}
	return nil
}

func TestCommandRawIDs(t *testing.T) {
	r := readyRig(t, setup{})
	p := r.spawnProcessor(10, insertAll)
	for name, c := range map[string]struct {
		ids  []messages.RawID
		want error
	}{
		"twice":       {[]messages.RawID{1, 2, 1}, messages.ErrRawID},
		"zero":        {[]messages.RawID{0}, messages.ErrRawID},
		"zero behind": {[]messages.RawID{3, 0}, messages.ErrRawID},
	} {
		_, err := p.Execute(r.ctx, command(c.ids...))
		wants(t, name, err, c.want)
	}
	done, err := p.Execute(r.ctx, command(65535, 1, 7))
	r.check(err)
	for i, id := range []messages.RawID{65535, 1, 7} {
		if want := (messages.RecordID{Seq: invoices, Number: messages.Number(i + 1)}); done.IDs[id] != want {
			t.Errorf("raw id %d: got %v, want %v", id, done.IDs[id], want)
		}
	}
	if done.PLogOffset != 1 || done.WLogOffset != 1 || len(done.Numbers) != 3 || done.Partition != 0 {
		t.Errorf("got %+v", done)
	}
	e := r.log(0)[0]
	if string(e.Body) != "body" || len(e.Records) != 3 || e.RegisteredAt != done.RegisteredAt {
		t.Errorf("got %+v", e)
	}
	plain, err := p.Execute(r.ctx, messages.Command{Workspace: 7, Kind: shop, RawRecords: []messages.RawRecord{{ID: 1}}})
	r.check(err)
	if want := (messages.RecordID{Seq: messages.SeqCRecordID, Number: messages.InitialCRecordID}); plain.IDs[1] != want {
		t.Errorf("default sequence: got %v, want %v", plain.IDs[1], want)
	}
}

// A command that is refused leaves nothing: its numbers go back, and the partition
// is free at once.
func TestCommandRefusedLeavesNothing(t *testing.T) {
	errNo := errors.New("no")
	for name, c := range map[string]struct {
		command messages.Command
		handler actors.Handler
		want    error
	}{
		"handler": {command(1, 2), func(context.Context, *actors.CommandContext) error { return errNo }, errNo},
		"panic":   {command(1, 2), func(context.Context, *actors.CommandContext) error { panic("injected") }, actors.ErrHandlerPanic},
		"exit": {command(1, 2), func(context.Context, *actors.CommandContext) error {
			runtime.Goexit()
			return nil
		}, actors.ErrHandlerExit},
		"after numbers": {command(1), func(ctx context.Context, c *actors.CommandContext) error {
			for range 10 {
				if _, err := c.Next(ctx, invoices); err != nil {
					return err
				}
			}
			return errNo
		}, errNo},
		"unknown raw id": {command(1), func(_ context.Context, c *actors.CommandContext) error {
			_, err := c.ID(2)
			return err
		}, messages.ErrRawID},
		"unknown sequence": {command(1), func(ctx context.Context, c *actors.CommandContext) error {
			_, err := c.Next(ctx, 99)
			return err
		}, messages.ErrUnknownSequence},
		"raw id of an unknown sequence": {
			messages.Command{Workspace: 7, Kind: shop, RawRecords: []messages.RawRecord{{ID: 1, Seq: invoices}, {ID: 2, Seq: 99}}},
			accept, messages.ErrUnknownSequence,
		},
		"explicit id above the cap": {command(1), func(ctx context.Context, c *actors.CommandContext) error {
			return c.Insert(ctx, messages.RecordID{Seq: invoices, Number: 1<<64 - 1}, nil)
		}, messages.ErrExplicitID},
		"update ahead of its sequence": {command(1), func(_ context.Context, c *actors.CommandContext) error {
			c.Update(messages.RecordID{Seq: invoices, Number: 5}, nil)
			return nil
		}, messages.ErrRecordAhead},
		"unknown kind": {messages.Command{Workspace: 7, Kind: 99}, accept, messages.ErrUnknownKind},
		"another kind": {messages.Command{Workspace: 7, Kind: site}, accept, messages.ErrKindMismatch},
		"deadline":     {messages.Command{Workspace: 7, Kind: shop, Deadline: 1}, accept, messages.ErrDeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			r := readyRig(t, setup{})
			r.commit(7)
			p := r.spawnProcessor(10, c.handler)
			_, err := p.Execute(r.ctx, c.command)
			wants(t, "execute", err, c.want)
			if n := r.commit(7); n != 2 {
				t.Errorf("got number %d, want 2", n)
			}
			if s := r.partitions[0].Status(); s.Actualizations != 1 || len(r.log(0)) != 2 {
				t.Errorf("got %d actualizations and %d events", s.Actualizations, len(r.log(0)))
			}
		})
	}
}

// Inserts with explicit ids: low, foreign and raising ones; updates; another body.
func TestCommandRecords(t *testing.T) {
	r := readyRig(t, setup{})
	low := messages.RecordID{Seq: receipts, Number: 5}
	high := messages.RecordID{Seq: receipts, Number: 2000}
	p := r.spawnProcessor(10, func(ctx context.Context, c *actors.CommandContext) error {
		c.SetBody([]byte("other"))
		if err := insertAll(ctx, c); err != nil {
			return err
		}
		n, err := c.Next(ctx, receipts)
		if err != nil {
			return err
		}
		if err := c.Insert(ctx, messages.RecordID{Seq: receipts, Number: n}, []byte("given")); err != nil {
			return err
		}
		if c.WLogOffset() > 1 {
			c.Update(low, []byte("updated"))
			return nil
		}
		return errors.Join(c.Insert(ctx, low, []byte("low")), c.Insert(ctx, high, []byte("high")))
	})
	first, err := p.Execute(r.ctx, command(1))
	r.check(err)
	second, err := p.Execute(r.ctx, command(1))
	r.check(err)
	if n := first.Numbers[1].Number; n != 1000 {
		t.Errorf("got receipt %d, want 1000: a low id changed the sequence", n)
	}
	if n := second.Numbers[1].Number; n != 2001 {
		t.Errorf("got receipt %d, want 2001: the sequence did not go on above the explicit id", n)
	}
	var rows []string
	for row, err := range r.memory.Records(r.ctx, 7, storage.RecordRange{Seq: receipts}) {
		r.check(err)
		rows = append(rows, fmt.Sprintf("%d=%s", row.ID.Number, row.Data))
	}
	if want := []string{"5=updated", "1000=given", "2000=high", "2001=given"}; !slices.Equal(rows, want) {
		t.Errorf("got rows %v, want %v", rows, want)
	}
	if body := string(r.log(0)[0].Body); body != "other" {
		t.Errorf("got body %q", body)
	}
}

// A record that exists is not created again at trust level 0; nothing is left.
func TestCommandExplicitIDConflict(t *testing.T) {
	r := readyRig(t, setup{})
	low := messages.RecordID{Seq: receipts, Number: 5}
	p := r.spawnProcessor(10, func(ctx context.Context, c *actors.CommandContext) error { return c.Insert(ctx, low, nil) })
	_, err := p.Execute(r.ctx, command())
	r.check(err)
	_, err = p.Execute(r.ctx, command())
	wants(t, "again", err, storage.ErrConflict)
	if n := r.commit(7); n != 1 || len(r.log(0)) != 2 {
		t.Errorf("got number %d and %d events", n, len(r.log(0)))
	}
}

// A busy partition is answered as busy, with its reason.
func TestCommandBusyPartition(t *testing.T) {
	r := readyRig(t, setup{})
	p := r.spawnProcessor(10, accept)
	gate := r.newGate()
	r.store.Plant(storagetest.Fault{Op: storagetest.OpTakeEpoch, Do: storagetest.Hold(gate), Times: 1})
	r.check(r.start(7).Actualize(r.ctx))
	r.arrives(gate)
	_, err := p.Execute(r.ctx, command())
	var busy *messages.BusyError
	if !errors.As(err, &busy) || busy.Reason != messages.BusyActualizing {
		t.Errorf("got %v, want busy: actualizing", err)
	}
	gate.Release()
	r.await(0, messages.StateNormal)
	_, err = p.Execute(r.ctx, command())
	r.check(err)
}

// Every append outcome through a command processor: the answer is what the log
// says.
func TestCommandAppendOutcomes(t *testing.T) {
	for name, c := range appendOutcomes() {
		t.Run(name, func(t *testing.T) {
			r := readyRig(t, setup{})
			r.commit(7)
			p := r.spawnProcessor(10, insertAll)
			r.store.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: c.do, Times: 1})
			_, err := p.Execute(r.ctx, command(1))
			if c.want != nil {
				wants(t, "execute", err, c.want)
			} else if (err == nil) != c.landed {
				t.Fatalf("got %v, landed %v", err, c.landed)
			}
			r.endsWell(c)
		})
	}
}

// A new limit holds for the commands to come.
func TestCommandLimitChanges(t *testing.T) {
	r := readyRig(t, setup{})
	p := r.spawnProcessor(10, func(ctx context.Context, _ *actors.CommandContext) error {
		<-ctx.Done()
		return ctx.Err()
	})
	p.SetLimit(time.Millisecond)
	// A deadline of the context would be the command's.
	_, err := p.Execute(context.WithoutCancel(r.ctx), command(1))
	// On a slow machine the limit has passed before the partition takes the request.
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, messages.ErrDeadlineExceeded) {
		t.Errorf("execute: got error %v, want that the deadline has passed", err)
	}
	r.check(r.ctx.Err())
}
