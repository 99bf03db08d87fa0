package actors_test

import (
	"context"
	"errors"
	"fmt"
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
	key := actors.Key{Group: "command-processor", ID: fmt.Sprint(len(r.processors))}
	p, err := actors.SpawnCommandProcessor(actors.CommandProcessorConfig{
		Key: key, Name: fmt.Sprintf("rig/%d/%v", rigs, key),
		Route:   func(ws messages.WSID) (*actors.Sequencer, error) { return r.of(ws), nil },
		Handler: handler, System: system, Guardian: r.guardian, Dispatcher: r.dispatcher, Clock: r.clock,
		Logger: zap.NewNop(), Requests: requests, Limit: patience, Observer: r.spy,
	}, r.ports)
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

// blocking is a handler that waits to be released, or for the end of its context.
type blocking struct {
	arrived chan struct{}
	release chan struct{}
}

func newBlocking() *blocking {
	return &blocking{arrived: make(chan struct{}, 1024), release: make(chan struct{})}
}

func (b *blocking) handle(ctx context.Context, _ *actors.CommandContext) error {
	b.arrived <- struct{}{}
	select {
	case <-b.release:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// deafHandle does not look at its context.
func (b *blocking) deafHandle(context.Context, *actors.CommandContext) error {
	b.arrived <- struct{}{}
	<-b.release
	return nil
}

// execute executes a command in the background.
func (r *rig) execute(ctx context.Context, p *actors.CommandProcessor, c messages.Command) <-chan error {
	answer := make(chan error, 1)
	go func() {
		_, err := p.Execute(ctx, c)
		answer <- err
	}()
	return answer
}

// A full mailbox of a command processor refuses at once.
func TestCommandFullMailbox(t *testing.T) {
	r := readyRig(t, setup{})
	b := newBlocking()
	p := r.spawnProcessor(2, b.handle)
	i := newInbox(t, system)
	i.post(p, 1)
	next(t, b.arrived)
	i.post(p, 2)
	_, err := p.Execute(r.ctx, command())
	var busy *messages.BusyError
	if !errors.As(err, &busy) || busy.Reason != messages.BusyMailboxFull || busy.RetryAfter <= 0 {
		t.Errorf("got %v, want a full mailbox", err)
	}
	close(b.release)
	for range 3 {
		isA[*messages.CommandDone](r, next(t, i.user))
	}
}

// post puts commands into the lane of a command processor.
func (i *inbox) post(p *actors.CommandProcessor, n int) {
	for range n {
		c := command(1)
		system.Root.Send(p.PID(), i.from(&c))
	}
}

// A stop with a backlog: the command under way is finished, everybody is answered.
func TestCommandProcessorStopsWithABacklog(t *testing.T) {
	const backlog = 20
	r := readyRig(t, setup{})
	b := newBlocking()
	p := r.spawnProcessor(backlog, b.handle)
	i := newInbox(t, system)
	i.post(p, 1)
	next(t, b.arrived)
	i.post(p, backlog)
	stopped := make(chan error, 1)
	go func() { stopped <- p.Stop(r.ctx) }()
	close(b.release)
	done, refused := 0, 0
	for range backlog + 1 {
		switch m := next(t, i.user).(type) {
		case *messages.CommandDone:
			done++
		case *messages.Refused:
			wants(t, "the backlog", m.Err, messages.ErrStopped)
			refused++
		}
	}
	wants(t, "stop", next(t, stopped), nil)
	// The command under way is finished; the backlog need not be.
	if got := len(r.log(0)); got != done || done == 0 || done+refused != backlog+1 {
		t.Errorf("got %d events, %d commands were done and %d refused", got, done, refused)
	}
	_, err := p.Execute(r.ctx, command())
	wants(t, "after the stop", err, messages.ErrStopped)
	r.check(p.Stop(r.ctx))
}

// The deadline of a command ends its handler's context, and its numbers go back.
func TestCommandDeadlineInTheHandler(t *testing.T) {
	for name, handler := range map[string]func(*blocking) actors.Handler{
		"that looks at its context":         func(b *blocking) actors.Handler { return b.handle },
		"that does not look at its context": func(b *blocking) actors.Handler { return b.deafHandle },
	} {
		t.Run(name, func(t *testing.T) {
			r := readyRig(t, setup{})
			b := newBlocking()
			p := r.spawnProcessor(10, handler(b))
			answer := r.executeUntil(p, b, 20*time.Millisecond)
			r.getsThrough(7) // the numbers go back, whatever the handler does
			close(b.release)
			if err := next(t, answer); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
			}
			if len(r.log(0)) != 0 {
				t.Errorf("got %d events", len(r.log(0)))
			}
		})
	}
}

// executeUntil executes a command whose deadline passes in its handler.
func (r *rig) executeUntil(p *actors.CommandProcessor, b *blocking, left time.Duration) <-chan error {
	r.t.Helper()
	c := command(1)
	c.Deadline = messages.TimestampOf(r.clock.Now().Add(left))
	answer := r.execute(r.ctx, p, c)
	select {
	case <-b.arrived:
		return answer
	case <-answer: // it passed before
		return r.executeUntil(p, b, 2*left)
	}
}

// Who stops waiting is told that the outcome is unknown, unless the command was
// never sent.
func TestCommandExecuteContextEnds(t *testing.T) {
	r := readyRig(t, setup{})
	b := newBlocking()
	p := r.spawnProcessor(10, b.handle)
	ctx, leave := r.client()
	answer := r.execute(ctx, p, command(1))
	next(t, b.arrived)
	leave()
	err := next(t, answer)
	wants(t, "execute", err, messages.ErrOutcomeUnknown)
	wants(t, "execute", err, errGone)
	close(b.release)
	_, err = p.Execute(ctx, command(1))
	wants(t, "execute", err, errGone)
	if errors.Is(err, messages.ErrOutcomeUnknown) {
		t.Errorf("got %v for a command that was not sent", err)
	}
	r.eventually("the command to be done", func() bool { return len(r.log(0)) == 1 })
}

// A panic outside of the handler restarts the command processor; the requester is
// answered and the transaction is given back.
func TestCommandProcessorRestarts(t *testing.T) {
	r := readyRig(t, setup{})
	p := r.spawnProcessor(10, accept)
	r.spy.do(func(k actors.Key, m any) {
		if _, ok := m.(*messages.Command); ok && k.Group == "command-processor" {
			panic("injected")
		}
	})
	answer := r.execute(r.ctx, p, command(1))
	delay := r.failed()
	wants(t, "execute", next(t, answer), messages.ErrInterrupted)
	r.spy.do(nil)
	r.fake.Advance(delay)
	_, err := p.Execute(r.ctx, command(1))
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
