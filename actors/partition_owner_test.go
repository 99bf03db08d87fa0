package actors_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/actors/actorstest"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// owner is an actor that speaks the protocol itself.
type owner struct {
	*actorstest.Probe
	r *rig
}

func (r *rig) newOwner() *owner { return &owner{actorstest.NewProbe(r.t, system, patience), r} }

func (o *owner) send(p int, m messages.PartitionMessage) { o.Send(o.r.partitions[p].PID(), m) }

func (o *owner) ask(p int, m messages.PartitionMessage) any {
	o.r.t.Helper()
	o.send(p, m)
	return o.Take()
}

// start opens a transaction that is watched.
func (o *owner) start(ws messages.WSID) *messages.Started {
	o.r.t.Helper()
	o.send(0, &messages.Start{Workspace: ws, Kind: shop, WatchOwner: true})
	return actorstest.Expect[*messages.Started](o.Probe)
}

// write writes the event of a transaction as its owner would.
func (r *rig) write(s *messages.Started, ws messages.WSID, numbers ...messages.SequenceNumber) error {
	return r.writeAs(s, ws, nil, numbers...)
}

func (r *rig) writeAs(s *messages.Started, ws messages.WSID, body []byte, numbers ...messages.SequenceNumber) error {
	return r.store.Append(r.ctx, storage.Batch{
		Partition: s.Token.Partition, Epoch: s.Token.Epoch,
		Events: []messages.Event{{
			Kind: messages.EventBusiness, Epoch: s.Token.Epoch, Partition: s.Token.Partition, PLogOffset: s.Token.PLogOffset,
			Workspace: ws, WorkspaceKind: shop, WLogOffset: s.WLogOffset, RegisteredAt: s.RegisteredAt, Numbers: numbers, Body: body,
		}},
	})
}

// refusedWith returns the error of an answer that must be a refusal.
func (r *rig) refusedWith(reply any) error {
	r.t.Helper()
	m, ok := reply.(*messages.Refused)
	if !ok {
		r.t.Fatalf("got %T, want a refusal", reply)
	}
	return m.Err
}

func isA[M any](r *rig, reply any) {
	r.t.Helper()
	if _, ok := reply.(M); !ok {
		var want M
		r.t.Fatalf("got %T %+v, want %T", reply, reply, want)
	}
}

func TestPartitionOwnerByMessage(t *testing.T) {
	r := readyRig(t, setup{})
	o := r.newOwner()
	for want := messages.Number(1); want <= 5; want++ {
		s := o.start(7)
		reply := o.ask(0, &messages.Next{Token: s.Token, Seq: invoices})
		given, ok := reply.(*messages.Given)
		if !ok || given.Number != want {
			t.Fatalf("got %+v, want %d", reply, want)
		}
		isA[*messages.Raised](r, o.ask(0, &messages.Raise{Token: s.Token, ID: messages.RecordID{Seq: receipts, Number: 1}}))
		r.check(r.write(s, 7, messages.SequenceNumber{Seq: invoices, Number: given.Number}))
		isA[*messages.Flushed](r, o.ask(0, &messages.Flush{Token: s.Token}))
		isA[*messages.Flushed](r, o.ask(0, &messages.Flush{Token: s.Token}))
	}
	s := o.start(7)
	isA[*messages.Cancelled](r, o.ask(0, &messages.Cancel{Token: s.Token}))
	wants(t, "cancel again", r.refusedWith(o.ask(0, &messages.Cancel{Token: s.Token})), messages.ErrNoTransaction)
	s = o.start(7)
	isA[*messages.Actualizing](r, o.ask(0, &messages.Actualize{Token: s.Token}))
	r.getsThrough(7)
}

// An owner is watched from the grant to the end of its transaction, no longer.
func TestPartitionWatchesItsOwner(t *testing.T) {
	r := readyRig(t, setup{})
	i := actorstest.NewInbox(t, system)
	ask := func(m messages.PartitionMessage) any {
		system.Root.Send(r.partitions[0].PID(), i.From(m))
		return next(t, i.User)
	}
	for name, end := range map[string]func(messages.Token) messages.PartitionMessage{
		"Flush":     func(k messages.Token) messages.PartitionMessage { return &messages.Flush{Token: k} },
		"Cancel":    func(k messages.Token) messages.PartitionMessage { return &messages.Cancel{Token: k} },
		"Actualize": func(k messages.Token) messages.PartitionMessage { return &messages.Actualize{Token: k} },
	} {
		s, ok := ask(&messages.Start{Workspace: 7, Kind: shop, WatchOwner: true}).(*messages.Started)
		if !ok {
			t.Fatal("not granted")
		}
		isA[*actor.Watch](r, next(t, i.System))
		if name == "Flush" {
			r.check(r.write(s, 7))
		}
		ask(end(s.Token))
		isA[*actor.Unwatch](r, next(t, i.System))
		r.getsThrough(7)
	}
}

// The owner stops at any moment: the next Start gets through at once, and what
// the owner still writes is refused, whatever the store checks.
func TestPartitionOwnerStops(t *testing.T) {
	for trust := messages.TrustNone; trust <= messages.TrustAll; trust++ {
		t.Run(fmt.Sprint("trust ", trust), func(t *testing.T) {
			r := readyRig(t, setup{trust: trust})
			r.commit(7)
			o := r.newOwner()
			s := o.start(7)
			isA[*messages.Given](r, o.ask(0, &messages.Next{Token: s.Token, Seq: invoices}))
			o.Stop()
			r.await(0, messages.StateInitializing)
			r.getsThrough(7)
			wants(t, "late write", r.write(s, 7), messages.ErrFenced)
			wants(t, "late flush", r.refusedWith(r.ask(0, &messages.Flush{Token: s.Token})), messages.ErrFenced)
			wants(t, "late next", r.refusedWith(r.ask(0, &messages.Next{Token: s.Token, Seq: invoices})), messages.ErrFenced)
			if n := r.commit(7); n != 2 {
				t.Errorf("got number %d, want 2", n)
			}
			wants(t, "later write", r.write(s, 7), messages.ErrFenced)
			wants(t, "later flush", r.refusedWith(r.ask(0, &messages.Flush{Token: s.Token})), messages.ErrFenced)
		})
	}
}

func TestPartitionOwnerStopsBeforeTheGrant(t *testing.T) {
	r := readyRig(t, setup{})
	open := r.start(7)
	o := r.newOwner()
	o.send(0, &messages.Start{Workspace: 7, Kind: shop, WatchOwner: true})
	r.queued(1)
	o.Stop()
	r.check(open.Commit(r.ctx, nil))
	r.await(0, messages.StateInitializing)
	r.getsThrough(7)
}

// The write of an owner that stopped had landed: it counts.
func TestPartitionOwnerStopsAfterItsWrite(t *testing.T) {
	r := readyRig(t, setup{})
	o := r.newOwner()
	s := o.start(7)
	isA[*messages.Given](r, o.ask(0, &messages.Next{Token: s.Token, Seq: invoices}))
	r.check(r.write(s, 7, messages.SequenceNumber{Seq: invoices, Number: 1}))
	o.Stop()
	r.await(0, messages.StateInitializing)
	r.getsThrough(7)
	isA[*messages.Flushed](r, r.ask(0, &messages.Flush{Token: s.Token}))
	if n := r.commit(7); n != 2 {
		t.Errorf("got number %d, want 2", n)
	}
}

// A partition that is stopping gives an owner's transaction up as well: the log says what it has written.
func TestPartitionOwnerStopsWhileThePartitionDoes(t *testing.T) {
	r := readyRig(t, setup{})
	o := r.newOwner()
	s := o.start(7)
	r.check(r.write(s, 7))
	stopped := make(chan messages.Stopped, 1)
	go func() { stopped <- r.stop(0) }()
	r.await(0, messages.StateTerminating)
	o.Stop()
	if s := next(t, stopped); !s.Clean {
		t.Error("the stop was not clean")
	}
	r.again()
	r.ready()
	if s := r.partitions[0].Status(); s.Replayed != 0 || s.Last != 1 {
		t.Errorf("got %+v, want no event replayed", s)
	}
}

// The limit passes: a new epoch, and late messages are answered by the log.
func TestPartitionTransactionLimit(t *testing.T) {
	for name, landed := range map[string]bool{"not written": false, "written": true} {
		t.Run(name, func(t *testing.T) {
			r := readyRig(t, setup{})
			tx := r.start(7)
			_, err := tx.Next(r.ctx, invoices)
			r.check(err)
			if landed {
				r.check(tx.Write(r.ctx, nil))
			}
			waiting := make(chan error, 1)
			go func() {
				next, err := r.sequencers[0].Start(r.ctx, shop, 7)
				if err == nil {
					err = next.Cancel(r.ctx)
				}
				waiting <- err
			}()
			r.queued(1)
			r.fake.Advance(messages.Settings{}.WithDefaults().TransactionLimit)
			r.await(0, messages.StateInitializing)
			// Its turn came while the tail was replayed, or after that.
			if err := next(t, waiting); err != nil {
				wants(t, "who waited for a turn", err, messages.ErrBusy)
			}
			r.await(0, messages.StateNormal)
			if landed {
				wants(t, "flush", tx.Flush(r.ctx), nil)
				wants(t, "flush again", tx.Flush(r.ctx), nil)
			} else {
				wants(t, "next by message", r.askNext(tx), messages.ErrFenced)
				wants(t, "next", doNext(r.ctx, tx), nil) // worth nothing
				wants(t, "write", tx.Write(r.ctx, nil), messages.ErrFenced)
				wants(t, "flush", tx.Flush(r.ctx), messages.ErrFenced)
			}
			if n := r.commit(7); n != messages.Number(1+boolToInt(landed)) {
				t.Errorf("got number %d", n)
			}
		})
	}
}

// A Flush that comes while the tail is replayed waits for the log's answer.
func TestPartitionLateFlushDuringActualization(t *testing.T) {
	r := readyRig(t, setup{})
	gate := r.newGate()
	tx := r.start(7)
	r.check(tx.Write(r.ctx, nil))
	r.store.Plant(storagetest.Fault{Op: storagetest.OpTakeEpoch, Do: storagetest.Hold(gate), Times: 1})
	r.check(tx.Actualize(r.ctx))
	answers := make(chan error, 3)
	for range cap(answers) {
		go func() { answers <- tx.Flush(r.ctx) }()
	}
	r.arrives(gate)
	r.eventually("three flushes", func() bool { return r.spy.count("handled", "partition", &messages.Flush{}) == 3 })
	gate.Release()
	for range cap(answers) {
		wants(t, "late flush", next(t, answers), nil)
	}
}

// Many owners that stop at random moments, over and over: nobody is kept waiting
// and no number is lost. The clock stands still.
func TestPartitionOwnersStopAtRandom(t *testing.T) {
	r := readyRig(t, setup{})
	var all sync.WaitGroup
	for seed := range uint64(8) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, 1))
			for range 25 {
				r.ownerLife(random)
			}
		})
	}
	all.Wait()
	r.getsThrough(7)
}

// ownerLife runs one owner up to a random moment.
func (r *rig) ownerLife(random *rand.Rand) {
	o := r.newOwner()
	defer o.Stop()
	ws := messages.WSID(random.IntN(3))
	dies := func() bool { return random.IntN(4) == 0 }
	o.send(0, &messages.Start{Workspace: ws, Kind: shop, WatchOwner: true})
	if dies() {
		return
	}
	s, ok := o.Take().(*messages.Started)
	if !ok || dies() {
		return
	}
	o.send(0, &messages.Next{Token: s.Token, Seq: invoices})
	given, ok := o.Take().(*messages.Given)
	if !ok || dies() {
		return
	}
	if err := r.write(s, ws, messages.SequenceNumber{Seq: invoices, Number: given.Number}); err != nil {
		r.t.Error(err)
	}
	if dies() {
		return
	}
	o.send(0, &messages.Flush{Token: s.Token})
	if _, ok := o.Take().(*messages.Flushed); !ok {
		r.t.Error("a flush of a live owner was refused")
	}
}
