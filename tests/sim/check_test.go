package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing/synctest"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/verify"
	"github.com/partita-go/partita/tests/internal/days"
)

// verify checks the invariants that the disk shows. Nothing moves meanwhile.
func (s *sim) verify() {
	report, err := verify.Run(context.Background(), s.disk, verify.Options{})
	if err == nil {
		err = report.Err()
	}
	if err != nil {
		s.failf("verify: %v", err)
	}
	s.events = report.Events
}

// checkBounds checks, of a batch just written, that memory is bounded by settings.
func (s *sim) checkBounds(st *store, b *storage.Batch) {
	s.checkTimes(b)
	set := &st.node.settings
	r := s.ledger.registers()[b.Partition]
	if tail := int(r.Last + 1 - r.Checkpoint); tail > set.BusyEvents+set.BatchEvents {
		s.failf("partition %d: %d events are not flushed, want at most %d", b.Partition, tail, set.BusyEvents+set.BatchEvents)
	}
	if !st.owners && len(b.Events) > set.BatchEvents {
		s.failf("partition %d: a batch of %d events, want at most %d", b.Partition, len(b.Events), set.BatchEvents)
	}
}

// checkAnswer checks that what a partition writes under the current epoch continues
// the log: the disk refuses an older epoch before it looks at anything else.
func (s *sim) checkAnswer(st *store, c *call, err error) {
	if !c.op.writes() {
		return
	}
	for _, wrong := range []error{
		storage.ErrOutOfOrder, storage.ErrTimeFell, storage.ErrInvalidEvent, storage.ErrCheckpoint, storage.ErrNumbers,
	} {
		if errors.Is(err, wrong) {
			s.failf("%s: %v %s: %v", st.node.name, c.op, c.what, err)
		}
	}
}

// checkRefusal checks that a refusal is one that such a request can get.
func (s *sim) checkRefusal(r *request, err error) {
	for _, wrong := range []error{storage.ErrDuplicate, actors.ErrProtocol, actors.ErrNotRaised, messages.ErrCounted} {
		if errors.Is(err, wrong) {
			s.failf("request %d: refused with %v", r.id, err)
		}
	}
}

// checkStatus checks that a partition fails only if it has a reason.
func (s *sim) checkStatus(n *node, status *messages.PartitionStatus) {
	if status.State == messages.StateFailed && !s.explained && !s.isDead(n) {
		s.failf("%s: partition %d has failed: %v", n.name, status.Partition, status.Err)
	}
}

// checkStopped checks what a partition says about its end.
func (s *sim) checkStopped(n *node, i int, stopped messages.Stopped) {
	status := n.partitions[i].Status()
	if stopped.Clean != status.Clean {
		s.failf("%s partition %d: stopped %+v, its status is %+v", n.name, i, stopped, status)
	}
	r := s.ledger.registers()[i]
	if stopped.Clean && r.Epoch == status.Epoch && r.Checkpoint != r.Last+1 {
		s.failf("%s partition %d: stopped cleanly with %+v", n.name, i, r)
	}
}

// noteBusy counts the limits that a refusal speaks of.
func (s *sim) noteBusy(n *node, r *request, err error) {
	busy, ok := errors.AsType[*messages.BusyError](err)
	if !ok || s.isDead(n) {
		return
	}
	switch busy.Reason {
	case messages.BusyMailboxFull:
		s.hit(faultLaneFull, n, s.partitionOf(r.workspace))
	case messages.BusyUnflushed:
		s.hit(faultBusy, n, s.partitionOf(r.workspace))
	case messages.BusyActualizing, messages.BusyStopping, messages.BusyNoQuorum:
	}
}

// finish ends the processes that are left, in one way or the other, and starts
// a last one, which must take a request of every workspace and stop cleanly.
func (s *sim) finish() {
	if n := s.serving(); n != nil && len(s.live) == 1 && s.random.IntN(3) > 0 {
		s.await(func() { s.newLastClient().insistEverywhere(n) })
	}
	for len(s.live) > 0 && s.failure == "" {
		n := s.live[0]
		if s.random.IntN(2) == 0 {
			n.crash()
		} else {
			s.await(n.undeploy)
			n.gone()
		}
		s.verify()
	}
	s.await(s.lastDeployment)
	if s.failure != "" {
		return
	}
	synctest.Wait()
	for _, r := range s.ledger.registers() {
		if r.Checkpoint != r.Last+1 {
			s.failf("the last deployment has left %+v", r)
		}
	}
	if s.after(0) >= forever {
		s.failf("the run has lasted for %v: something has waited for the transaction limit", s.after(0))
	}
	s.checkEnded()
	s.verify()
	s.ledger.check()
}

// await drives the run until work, on a goroutine of its own, has returned.
func (s *sim) await(work func()) {
	done := false
	go func() {
		s.gate(nil, "operator")
		work()
		done = true
	}()
	s.drive(func() bool { return done })
}

func (s *sim) lastDeployment() {
	s.settings.StopLimit = time.Minute // the last flush must not be given up
	s.finished = true
	n, err := s.deploy()
	if err != nil {
		s.failf("deploy: %v", err)
		return
	}
	s.newLastClient().insistEverywhere(n)
	for _, c := range s.consumers {
		c.finish(n)
	}
	for _, f := range s.feeders {
		f.finish(n)
	}
	n.undeploy()
	n.gone()
}

func (s *sim) newLastClient() *client {
	c := &client{s: s, name: "last client", random: rand.New(rand.NewPCG(s.random.Uint64(), 0)), done: true}
	s.clients = append(s.clients, c)
	return c
}

// insistEverywhere appends to every workspace: without faults a node takes it, and one
// that has had some recovers, unless only a new deployment helps.
func (c *client) insistEverywhere(n *node) {
	for ws := range messages.WSID(c.s.workspaces) {
		c.insist(n, ws)
	}
}

// insist appends to a workspace; nothing but Busy may refuse it.
func (c *client) insist(n *node, ws messages.WSID) {
	for range 1000 {
		r := c.s.ledger.request(c.name, ws, c.s.kindNow(ws))
		r.drafts = []messages.Draft{{Body: fmt.Appendf(nil, "request %d event 0", r.id), Wanted: []messages.Wanted{{Seq: seqOrder}}}}
		c.append(n, r)
		if r.at != nil || n.useless() {
			return
		}
		c.s.wait(&task{key: c.name, due: c.s.after(time.Millisecond)})
	}
	c.s.failf("workspace %d takes no request any more", ws)
}

// checkEnded checks that every actor has ended, and that none has answered twice.
func (s *sim) checkEnded() {
	for _, n := range s.all {
		for i, p := range n.partitions {
			select {
			case <-p.Terminated():
			default:
				s.failf("%s: partition %d has not ended", n.name, i)
			}
		}
		for _, o := range n.owners {
			if len(o.answers) > 0 && !o.stopped && !s.isDead(n) {
				s.failf("an owner got an answer too many: %s", describe(<-o.answers))
			}
		}
	}
}

// check compares the whole log with what was asked for and answered.
func (l *ledger) check() {
	found := make(map[*request][]messages.Event)
	last := make(map[messages.WSID]map[messages.SeqID]messages.Number)
	ofDays := make(map[messages.WSID]*days.Log)
	for p := range messages.PartitionID(l.s.desc.Partitions) {
		latest := 0
		for e, err := range l.s.disk.PLog(context.Background(), p, 0) {
			if err != nil {
				l.s.failf("read the log of partition %d: %v", p, err)
				return
			}
			r := l.of(&e)
			if r == nil {
				l.s.failf("partition %d, offset %d: nobody asked for %q", p, e.PLogOffset, e.Body)
				return
			}
			found[r] = append(found[r], e)
			l.checkAhead(last, &e)
			l.checkDays(ofDays, &e)
			if r.at != nil && r.ended < latest {
				l.s.failf("request %d stands behind one that was sent after it had been acknowledged", r.id)
			}
			latest = max(latest, r.begun)
		}
	}
	ids := make(map[messages.DedupID]*request)
	for _, r := range l.requests {
		l.checkRequest(r, found[r])
		if len(found[r]) == 0 || r.dedup.IsZero() {
			continue
		}
		if other := ids[r.dedup]; other != nil {
			l.s.failf("requests %d and %d have one id, and both were written", other.id, r.id)
		}
		ids[r.dedup] = r
	}
}

// checkAhead takes an event's numbers in, and checks that its updates are of numbers that
// were given out.
func (l *ledger) checkAhead(last map[messages.WSID]map[messages.SeqID]messages.Number, e *messages.Event) {
	of := last[e.Workspace]
	if of == nil {
		of = make(map[messages.SeqID]messages.Number)
		last[e.Workspace] = of
	}
	for _, n := range e.Numbering().Numbers {
		of[n.Seq] = max(of[n.Seq], n.Number)
	}
	for _, r := range e.Records {
		if l.s.isAhead(r.ID, of[r.ID.Seq]) {
			l.s.failf("workspace %d: event %d updates %v, the last number is %d", e.Workspace, e.WLogOffset, r.ID, of[r.ID.Seq])
		}
	}
}

// of returns the request that an event is of, nil if it is nobody's.
func (l *ledger) of(e *messages.Event) *request {
	var id, event int
	if _, err := fmt.Sscanf(string(e.Body), "request %d event %d", &id, &event); err != nil || id >= len(l.requests) {
		return nil
	}
	r := l.requests[id]
	if event >= len(r.drafts) || !bytes.Equal(r.drafts[event].Body, e.Body) {
		return nil
	}
	return r
}

func (l *ledger) checkRequest(r *request, events []messages.Event) {
	switch {
	case r.at != nil:
		l.compare(r, r.at, events)
	case len(events) == 0:
	case r.doubts == 0:
		l.s.failf("request %d was refused, but it is in the log at %d", r.id, events[0].PLogOffset)
	default:
		// It was never acknowledged: what the log says of itself must be all of it.
		first := &events[0]
		at := &place{plog: first.PLogOffset, wlog: first.WLogOffset, at: first.RegisteredAt}
		for i := range events {
			at.numbers = append(at.numbers, events[i].Numbers...)
		}
		l.compare(r, at, events)
	}
}
