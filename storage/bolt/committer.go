package bolt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/dedup"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
	"github.com/partita-go/partita/storage/bolt/internal/queue"
	"github.com/partita-go/partita/storage/internal/watch"
	"github.com/partita-go/partita/storage/replog"
)

// Limits of one commit. Requests beyond them wait for the next.
const (
	maxCommitEvents = 8192
	maxCommitBytes  = 16 << 20
	// largeRequest is how many bytes make a request a large one.
	largeRequest = 1 << 20
	// maxPassed is how many commits may pass a large request that waits for its place.
	maxPassed = 256
)

// committer is the only one who adds to the log. It takes every request that waits,
// accepts or refuses each one alone, writes the accepted ones at once, publishes
// them and then replies. A refusal is answered at once unless it rests on
// what is being written. While it syncs, the next ones gather.
//
// A large request has a commit of its own, and all that has come meanwhile has one before
// the next large one: so others wait for one at the most, however many there are. Nor do they
// wait with it for its place in log.wal.
type committer struct {
	s *Store
	// staged is what the requests accepted so far will have changed.
	staged *staging
	// held wait for it too.
	held []heldRefusal
	pace queue.Pace
	// bytes is the size of what was accepted or refused for the commit, maxBytes how large that gets.
	bytes, maxBytes int
	// head is that of the replicated log, if there is one, before anything of the commit was judged.
	head uint64
	// aside are the large requests that wait, and what their partitions have behind them: at
	// most writeQueueLen, or as many as come while others are written.
	aside []*writeRequest
}

// heldRefusal is a refusal that is true if the commit succeeds: it rests on what requests of
// the same commit do to the partition.
type heldRefusal struct {
	r   *writeRequest
	err error
}

func newCommitter(s *Store) *committer {
	c := &committer{s: s, staged: newStaging(s), maxBytes: maxCommitBytes}
	if s.replica != nil {
		c.maxBytes = replog.GoodEntry
	}
	return c
}

func (c *committer) run() {
	defer close(c.s.committed)
	// Some came in while it ended, or its last commit failed.
	defer c.s.door.Close(c.s.writes, func(r *writeRequest) { r.Reply(storage.ErrClosed) })
	defer c.refuseAside()
	queue.Serve(c.s.writes, c.s.closing, c.serve)
}

// serve makes commits of a request and of those that wait behind it, until no large one
// waits. It returns false when the store must not be written any more.
func (c *committer) serve(first *writeRequest) bool {
	ok := c.serveTogether(first)
	for passed := 0; ok && len(c.aside) > 0; passed++ {
		var next *writeRequest
		if passed < maxPassed {
			next = c.awaitPlace(c.aside[0])
		}
		if next != nil {
			ok = c.serveTogether(next)
			continue
		}
		passed = 0
		ok = c.serveAside() && c.serveTogether(queue.Next(&c.pace, c.s.writes))
	}
	return ok
}

// awaitPlace waits until a large request would not have to wait for its place, or would do
// so in vain. It returns what comes before.
func (c *committer) awaitPlace(r *writeRequest) (next *writeRequest) {
	values := make([][]byte, len(r.events))
	for i := range r.events {
		values[i] = r.events[i].value
	}
	for {
		busy := c.s.log.Busy(messages.LSN(c.s.lastLSN.Load()), values)
		if busy == nil {
			return nil
		}
		select {
		case next = <-c.s.writes:
			return next
		case <-busy:
		}
	}
}

// serveTogether makes one commit of a request, if there is one, and of those that wait
// behind it, but for large ones.
func (c *committer) serveTogether(first *writeRequest) bool {
	c.begin()
	defer c.staged.reset()
	events := 0
	for r := first; r != nil; r = queue.Next(&c.pace, c.s.writes) {
		// One without events counts, too: whoever is refused may come back for ever.
		events += max(1, len(r.events))
		if size := r.bytes(); c.isAside(r, size) {
			c.aside = append(c.aside, r)
		} else {
			c.bytes += size
			c.admit(r)
		}
		if events >= maxCommitEvents || c.bytes >= c.maxBytes || len(c.aside) >= writeQueueLen {
			break
		}
	}
	return c.commitStaged(c.pace.Run)
}

// serveAside makes a commit of the first of those that were put aside. The pace is that of
// the others.
func (c *committer) serveAside() bool {
	c.begin()
	defer c.staged.reset()
	r := c.aside[0]
	c.aside = slices.Delete(c.aside, 0, 1)
	c.bytes = r.bytes()
	c.admit(r)
	return c.commitStaged(func(commit func() error) error { return commit() })
}

// isAside reports whether a request is large, or has one of its partition before it.
func (c *committer) isAside(r *writeRequest, size int) bool {
	return size >= largeRequest ||
		slices.ContainsFunc(c.aside, func(a *writeRequest) bool { return a.partition == r.partition })
}

// refuseAside answers those who will never be served, because the last commit failed.
func (c *committer) refuseAside() {
	for _, r := range c.aside {
		r.Reply(storage.ErrClosed)
	}
}

func (c *committer) begin() {
	c.held, c.bytes = c.held[:0], 0
}

// commitStaged commits what was accepted, and replies.
func (c *committer) commitStaged(run func(func() error) error) bool {
	// Without these there are no held ones.
	if len(c.staged.accepted) == 0 {
		return true
	}
	return c.finish(run(c.commit))
}

// bytes returns the size of the events.
func (r *writeRequest) bytes() (n int) {
	for i := range r.events {
		n += len(r.events[i].value)
	}
	if r.proposed != nil {
		for i := range r.proposed.Changes {
			n += r.proposed.Changes[i].Size()
		}
	}
	return n
}

// admit stages a request, or answers it with its refusal, or holds that back.
func (c *committer) admit(r *writeRequest) {
	if !r.Claim() {
		return
	}
	// What was refused meanwhile may have taken so long that the log has moved on.
	if p := c.s.replica; p != nil && len(c.staged.accepted) == 0 {
		c.head = p.head.Load()
	}
	err := c.s.brokenBy()
	switch {
	case err != nil:
	case r.proposed != nil:
		err = c.admitProposed(r)
	case r.generator != nil:
		c.staged.accepted = append(c.staged.accepted, r) // it is numbered with the others
	default:
		err = c.staged.admit(r)
	}
	switch {
	case err == nil:
		// It waits for the commit.
	case c.staged.restsOnStaged(r, err):
		c.held = append(c.held, heldRefusal{r: r, err: err})
	default:
		r.Reply(err)
	}
}

// admitProposed stages changes of subscriptions, unless the log has others than those by which they were judged. If it gets
// some from now on, its head is not that of this commit.
func (c *committer) admitProposed(r *writeRequest) error {
	if last := c.s.subscriptions.Last(); last != r.proposed.Judged {
		return fmt.Errorf("%w: subscriptions: judged by head %d, they are at %d", replog.ErrMoved, r.proposed.Judged, last)
	}
	c.staged.accepted = append(c.staged.accepted, r)
	return nil
}

// restsOnStaged reports whether a refusal of a request may rest on what was accepted for the
// same commit.
func (g *staging) restsOnStaged(r *writeRequest, refusal error) bool {
	if r.partition == nil {
		return false
	}
	if errors.Is(refusal, storage.ErrDuplicate) {
		return slices.ContainsFunc(r.lookups, func(l dedup.Lookup) bool { return g.ids[l.Key] != 0 })
	}
	_, staged := g.registers[r.partition.id]
	return staged
}

// commit makes durable what was accepted.
func (c *committer) commit() error {
	refused, unnumbered := c.number()
	err := c.commitEntry()
	if unnumbered != nil {
		c.s.room.Note(unnumbered) // before they hear of it, who may ask
	}
	for _, r := range refused {
		r.Reply(unnumbered)
	}
	return err
}

// number numbers all generators that were accepted, and notes that here: all that the log has given up to the head of this
// commit are noted, and if others come first that is not the head any more. A number whose entry is void is nobody's. If it
// cannot be noted, they are to be refused, and are returned with the error. If nobody knows whether it is, the store closes
// itself as after any other commit of its files, and another node leads.
func (c *committer) number() (refused []*writeRequest, err error) {
	var all []*format.Generator
	var asking []*writeRequest
	for _, r := range c.staged.accepted {
		if r.generator != nil {
			all, asking = append(all, r.generator), append(asking, r)
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	err = c.s.launches.Next(context.Background(), all...)
	if err == nil {
		return nil, nil
	}
	if errors.Is(err, messages.ErrOutcomeUnknown) {
		c.s.closeBy(err)
	}
	c.staged.accepted = slices.DeleteFunc(c.staged.accepted, func(r *writeRequest) bool { return r.generator != nil })
	return asking, err
}

// commitEntry writes what there is.
func (c *committer) commitEntry() error {
	e := format.Entry{Values: c.seal(), Epochs: c.epochs(), Changes: c.changes(), Generators: c.generators()}
	if len(e.Values)+len(e.Epochs)+len(e.Changes)+len(e.Generators) == 0 {
		return nil
	}
	begin := time.Now()
	err := c.write(&e)
	c.s.room.Note(err)
	if err == nil {
		c.s.meter.Commit(e.Values, time.Since(begin))
	}
	return err
}

func (c *committer) write(e *format.Entry) error {
	if r := c.s.replica; r != nil {
		return r.propose(c.head, e)
	}
	return c.s.log.Append(messages.LSN(c.s.lastLSN.Load()), e.Values, e.Epochs)
}

// seal finishes the events that were accepted, and returns them.
func (c *committer) seal() [][]byte {
	lsn := messages.LSN(c.s.lastLSN.Load())
	values := make([][]byte, 0, c.staged.events)
	for _, r := range c.staged.accepted {
		for i := range r.events {
			lsn++
			format.SealEvent(r.events[i].value, lsn)
			values = append(values, r.events[i].value)
		}
	}
	return values
}

// epochs returns those that were taken.
func (c *committer) epochs() (all []logdb.Epoch) {
	for _, r := range c.staged.accepted {
		if r.takeEpoch {
			all = append(all, logdb.Epoch{Partition: r.partition.id, Epoch: r.epoch})
		}
	}
	return all
}

// changes returns those of subscriptions.
func (c *committer) changes() (all []format.Change) {
	for _, r := range c.staged.accepted {
		if r.proposed != nil {
			all = append(all, r.proposed.Changes...)
		}
	}
	return all
}

// generators returns those that were numbered. Of a launch that is used up, or closed, the log need not know: no id has such a
// number.
func (c *committer) generators() (all []format.Generator) {
	for _, r := range c.staged.accepted {
		if r.generator != nil && r.generator.Number <= ids.MaxGenerator {
			all = append(all, *r.generator)
		}
	}
	return all
}

// finish publishes or forgets what was staged, and replies.
func (c *committer) finish(err error) bool {
	// A replicated log says itself what became of it, and takes nothing more until then.
	unknown := errors.Is(err, messages.ErrOutcomeUnknown) && c.s.replica == nil
	switch {
	case err == nil && c.s.replica == nil:
		c.s.publish(c.staged.accepted)
	case unknown:
		c.s.closeBy(err)
	case errors.Is(err, storage.ErrConflict):
		c.s.breakBy(err)
	}
	for _, r := range c.staged.accepted {
		r.Reply(err)
	}
	for i, h := range c.held {
		h.r.Reply(cmp.Or(err, h.err))
		c.held[i] = heldRefusal{}
	}
	return !unknown
}

// publish makes durable events visible: first each in its tail, then the end of
// the log.
func (s *Store) publish(accepted []*writeRequest) {
	lsn := messages.LSN(s.lastLSN.Load())
	for _, r := range accepted {
		if !r.unseen {
			s.tails.Count(len(r.events), r.size)
			r.partition.publish(r, lsn)
		}
		lsn += messages.LSN(len(r.events))
	}
	s.lastLSN.Store(uint64(lsn))
	s.board.Ring(func(ring func(watch.Topic)) { tell(accepted, ring) })
}

// tell says whose logs have grown.
func tell(accepted []*writeRequest, ring func(watch.Topic)) {
	ring(watch.Topic{Log: watch.Any})
	for _, r := range accepted {
		ring(watch.Topic{Log: watch.Partition, ID: uint64(r.partition.id)})
		for i := range r.events {
			ring(watch.Topic{Log: watch.Workspace, ID: uint64(r.events[i].ws)})
		}
	}
}
