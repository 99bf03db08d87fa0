package storagetest

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"sync"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

var awaitChecks = []check{
	{"AwaitReturnsAtOnce", eachLevel, checkAwaitAtOnce},
	{"AwaitWaitsForItsAppend", eachLevel, checkAwaitWaits},
	{"AwaitAnyCountsEvents", eachLevel, checkAwaitAny},
	{"AwaitBesideAppendsAndFlushes", eachLevel, checkAwaitRace},
	{"AwaitByMany", anyLevel, checkAwaitMany},
	{"AwaitIsNotEndedByRefusals", eachLevel, checkAwaitRefused},
	{"AwaitEndsWithItsContext", anyLevel, checkAwaitContext},
	{"CloseEndsAwait", anyLevel, checkAwaitClose},
}

// checkAwaitAtOnce: what is in the tail or flushed is there, also in a store that was
// opened anew.
func checkAwaitAtOnce(e *env) {
	p := e.half()
	look := func(when string) {
		e.Helper()
		for offset := range p.last + 1 {
			e.atOnce(when, e.awaitPLog(0, offset))
		}
		for _, ws := range []messages.WSID{3, 6} {
			for offset := range len(e.model.workspace(ws).WLog) + 1 {
				e.atOnce(when, e.awaitWLog(ws, messages.WLogOffset(offset)))
			}
		}
		for seen := range uint64(p.last) {
			e.atOnce(when, e.awaitAny(seen, uint64(p.last)))
		}
	}
	look("half of it flushed")
	e.reopen()
	look("after reopening")
	if e.crash() {
		look("after a crash")
	}
	e.flushAll(p)
	look("all of it flushed")
	e.reopen()
	look("flushed and reopened")
}

// checkAwaitWaits: a wait ends with the append that brings what it waits for, and not with
// one to another partition, or of another workspace, or with a flush.
func checkAwaitWaits(e *env) {
	e.open()
	p, other := e.take(0), e.take(1)
	// The first of a log has two names.
	first := []*waiter{e.start(e.awaitPLog(0, 0)), e.start(e.awaitWLog(3, 0))}
	never := []*waiter{
		e.start(e.awaitPLog(0, math.MaxUint64)), e.start(e.awaitWLog(3, math.MaxUint64)),
		e.start(e.awaitAny(math.MaxUint64, 0)), e.start(e.awaitPLog(2, 1)), e.start(e.awaitWLog(9, 1)),
	}
	for i := range 12 {
		plog := e.start(e.awaitPLog(0, p.last+1))
		second := e.start(e.awaitPLog(0, p.last+2))
		wlog := e.start(e.awaitWLog(3, messages.WLogOffset(i)+1))
		foreign := e.start(e.awaitPLog(1, other.last+1))

		e.append(other, Spec{Workspace: 1})
		foreign.mustEnd("after an append to its partition", nil)
		plog.mustWait("after an append to another partition")
		wlog.mustWait("after an append to another partition")

		e.append(p, Spec{Workspace: 6})
		plog.mustEnd("after an append to its partition", nil)
		wlog.mustWait("after an append of another workspace")
		second.mustWait("after an append of the event before")
		if i%3 == 1 {
			e.flushAll(p)
			wlog.mustWait("after a flush")
		}
		e.append(p, Spec{Workspace: 3})
		wlog.mustEnd("after an append of its workspace", nil)
		second.mustEnd("after another append to its partition", nil)
		if i%3 == 2 {
			e.flush(p, p.last)
		}
	}
	for _, w := range first {
		w.mustEnd("after appends", nil)
	}
	for _, w := range never {
		w.mustWait("after appends of others")
		w.cancel()
		w.mustEnd("after its context has ended", context.Canceled)
	}
}

// checkAwaitAny: the count grows by the events of all partitions, and by nothing else.
func checkAwaitAny(e *env) {
	e.open()
	parts := []*Partition{e.take(0), e.take(1), e.take(2)}
	total := uint64(0)
	for i, p := range []int{0, 1, 1, 2, 0, 2} {
		events := uint64(1 + i%3)
		w, far := e.start(e.awaitAny(total, total+events)), e.start(e.awaitAny(total+events, total+events+1))
		e.append(parts[p], plain(parts[p].id)[:events]...)
		total += events
		w.mustEnd("after an append", nil)
		e.counts("after an append", total)
		e.flushAll(parts[p])
		parts[p] = e.take(parts[p].id)
		far.mustWait("after a flush and a new epoch")
		stale := parts[p].Build(Spec{Workspace: messages.WSID(p)})
		stale.Epoch--
		e.isOneOf("an append under an old epoch", e.store.Append(e.Context(), stale), messages.ErrFenced, storage.ErrInvalidEvent)
		far.mustWait("after an append that was refused")
		far.cancel()
		far.mustEnd("after its context has ended", context.Canceled)
	}
	e.reopen()
	e.counts("after reopening", total)
	e.start(e.awaitAny(total, total+1)).mustWait("after reopening")
}

// counts fails the test unless the store says that it has so many events.
func (e *env) counts(when string, events uint64) {
	e.Helper()
	ctx, cancel := context.WithTimeout(e.Context(), awaitLimit)
	defer cancel()
	if n, err := e.store.AwaitAny(ctx, 0); err != nil || n != events {
		e.Fatalf("AwaitAny %s: got %d and %v, want %d", when, n, err, events)
	}
}

// checkAwaitMany: each of many who wait is told, of one log or of many, and none when it
// is another's turn.
func checkAwaitMany(e *env) {
	e.open()
	p := e.take(0)
	const logs, each = 20, 5
	var together, apart []*waiter
	for i := range logs {
		for range each {
			together = append(together, e.start(e.awaitPLog(0, messages.PLogOffset(i)+1)))
			apart = append(apart, e.start(e.awaitWLog(messages.WSID(3*i), 1)))
		}
	}
	for i := range logs {
		e.append(p, Spec{Workspace: messages.WSID(3 * i)})
		if i%7 == 6 {
			e.flushAll(p)
		}
		for _, all := range [][]*waiter{together, apart} {
			for _, w := range all[:each] {
				w.mustEnd("one of many", nil)
			}
			for _, w := range all[each:] {
				w.mustWait("when it was another's turn")
			}
		}
		together, apart = together[each:], apart[each:]
	}
	var specs []Spec
	for i := range logs {
		specs = append(specs, Spec{Workspace: messages.WSID(3 * i)})
		apart = append(apart, e.start(e.awaitWLog(messages.WSID(3*i), 2)))
	}
	e.append(p, specs...)
	for _, w := range apart {
		w.mustEnd("after an append of all workspaces", nil)
	}
}

// checkAwaitRefused: an append that was refused tells nobody anything, and nobody is
// forgotten.
func checkAwaitRefused(e *env) {
	e.open()
	p := e.take(0)
	e.append(p, Spec{Workspace: 3}, Spec{Workspace: 3})
	waiters := []*waiter{e.start(e.awaitPLog(0, 3)), e.start(e.awaitWLog(3, 3)), e.start(e.awaitAny(2, 3))}
	for _, f := range flaws {
		b := p.Build(Spec{Workspace: 3, Create: []messages.SeqID{SeqOrder}})
		f.spoil(&b.Events[0])
		e.isOneOf(f.name, e.put(e.Context(), b), f.want...)
		for _, w := range waiters {
			w.mustWait("after the refusal of " + f.name)
		}
	}
	e.append(p, Spec{Workspace: 3})
	for _, w := range waiters {
		w.mustEnd("after an append", nil)
	}
}

// checkAwaitContext: a wait ends with its context, and only that one does.
func checkAwaitContext(e *env) {
	p := e.half()
	next := e.nextWaits(p)
	var stay []*waiter
	for _, w := range next {
		gone := e.start(w)
		stay = append(stay, e.start(w))
		gone.cancel()
		gone.mustEnd("after its context has ended", context.Canceled)
	}
	for _, w := range stay {
		w.mustWait("after another's context has ended")
	}
	e.append(p, Spec{Workspace: 3})
	for _, w := range stay {
		w.mustEnd("after an append", nil)
	}
}

// nextWaits returns a wait of each kind for the next event of workspace 3 in partition 0, the
// only one that was written.
func (e *env) nextWaits(p *Partition) []wait {
	wlog := len(e.model.workspace(3).WLog)
	return []wait{
		e.awaitPLog(0, p.last+1), e.awaitWLog(3, messages.WLogOffset(wlog)+1), e.awaitAny(uint64(p.last), uint64(p.last)+1),
	}
}

// eachWait returns a wait of each kind for what is there, and then for what is not.
func (e *env) eachWait(p *Partition) []wait {
	return append([]wait{e.awaitPLog(0, 1), e.awaitWLog(3, 1), e.awaitAny(0, 1)}, e.nextWaits(p)...)
}

// checkAwaitClose: whoever waits while the store is closed is told so.
func checkAwaitClose(e *env) {
	p := e.half()
	var waiters []*waiter
	for _, w := range e.nextWaits(p) {
		waiters = append(waiters, e.start(w), e.start(w))
	}
	e.close()
	for _, w := range waiters {
		w.mustEnd("after the store was closed", storage.ErrClosed)
	}
	e.reopen()
}

// follower reads on each time that it is told.
type follower struct {
	name string
	// next waits, reads on, and returns how far it has come: an offset, or a count.
	next func(ctx context.Context) (uint64, error)
	// upTo is how far it must have come when the first events of the history are there.
	upTo func(events int) uint64
	at   chan uint64
	// came is how far it has come.
	came uint64
}

// checkAwaitRace: nobody sleeps on, however appends and flushes fall between looking and
// waiting. Each append waits until all have seen the one before, so that one that is
// missed is missed for ever.
func checkAwaitRace(e *env) {
	e.open()
	p := e.take(0)
	h := newHistory(p, 50)
	ctx, cancel := context.WithCancel(e.Context())
	var running sync.WaitGroup
	written := make(chan int, len(h.batches))
	end := sync.OnceFunc(func() {
		close(written)
		cancel()
		running.Wait()
	})
	store := e.store
	e.Cleanup(func() {
		_ = store.Close(context.Background())
		end()
	})
	followers := e.followers(h)
	for _, f := range followers {
		running.Go(func() { e.follow(ctx, f) })
	}
	running.Go(func() { e.flushBeside(h, written) })
	done := 0
	for i, b := range h.batches {
		if err := e.put(e.Context(), b); err != nil {
			e.Fatalf("append: %v", err)
		}
		written <- i
		done += len(b.Events)
		for j := range followers {
			// Another one is the last to be told to go on, just before the next append.
			f := followers[(i+j)%len(followers)]
			e.awaitFollower(f, f.upTo(done))
		}
	}
	end()
	e.model.append(h.events...)
	e.model.partitions[0].checkpoint = p.checkpoint
}

// followers returns two of each kind and log.
func (e *env) followers(h *history) (all []*follower) {
	for i := range 2 {
		all = append(all, e.plogFollower(h, i), e.countFollower(i))
		for _, ws := range []messages.WSID{0, 3, 6} {
			all = append(all, e.wlogFollower(h, ws, i))
		}
	}
	return all
}

func newFollower(format string, args ...any) *follower {
	return &follower{name: fmt.Sprintf(format, args...), at: make(chan uint64)}
}

func (e *env) plogFollower(h *history, i int) *follower {
	f := newFollower("follower %d of partition 0", i)
	next := 0
	f.next = func(ctx context.Context) (uint64, error) {
		offset := messages.PLogOffset(next) + 1
		err := e.store.AwaitPLog(ctx, 0, offset)
		if err == nil {
			var got []messages.Event
			got, err = collectEvents(e.store.PLog(ctx, 0, offset))
			next += len(got)
			err = firstFailure(err, continues(got, h.events[next-len(got):]))
		}
		return uint64(next), err
	}
	f.upTo = func(events int) uint64 { return uint64(events) }
	return f
}

func (e *env) wlogFollower(h *history, ws messages.WSID, i int) *follower {
	f := newFollower("follower %d of workspace %d", i, ws)
	var log []messages.Event
	upTo := make([]uint64, 1, len(h.events)+1)
	for _, event := range h.events {
		if event.Workspace == ws {
			log = append(log, event)
		}
		upTo = append(upTo, uint64(len(log)))
	}
	next := 0
	f.next = func(ctx context.Context) (uint64, error) {
		offset := messages.WLogOffset(next) + 1
		err := e.store.AwaitWLog(ctx, ws, offset)
		if err == nil {
			var got []messages.Event
			got, err = collectEvents(e.store.WLog(ctx, ws, offset))
			next += len(got)
			err = firstFailure(err, continues(got, log[next-len(got):]))
		}
		return uint64(next), err
	}
	f.upTo = func(events int) uint64 { return upTo[events] }
	return f
}

func (e *env) countFollower(i int) *follower {
	f := newFollower("follower %d of all partitions", i)
	seen := uint64(0)
	f.next = func(ctx context.Context) (uint64, error) {
		n, err := e.store.AwaitAny(ctx, seen)
		if err != nil {
			return seen, err
		}
		there, err := e.count(ctx)
		if err == nil && (n <= seen || n > there) {
			err = fmt.Errorf("it was told of %d events after %d, %d are there", n, seen, there)
		}
		seen = n
		return seen, err
	}
	f.upTo = func(events int) uint64 { return uint64(events) }
	return f
}

func firstFailure(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// continues returns an error unless what was read is something, and how the log goes on.
func continues(got, want []messages.Event) error {
	if len(got) == 0 || len(got) > len(want) || !reflect.DeepEqual(got, want[:len(got)]) {
		return fmt.Errorf("it read %+v, want a beginning of %+v", got, want)
	}
	return nil
}

// follow goes on until its context ends.
func (e *env) follow(ctx context.Context, f *follower) {
	defer close(f.at)
	for {
		at, err := f.next(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			e.Errorf("%s: %v", f.name, err)
			return
		}
		select {
		case f.at <- at:
		case <-ctx.Done():
			return
		}
	}
}

// awaitFollower waits until a follower has come as far as it must.
func (e *env) awaitFollower(f *follower, upTo uint64) {
	e.Helper()
	for f.came < upTo {
		select {
		case at, going := <-f.at:
			if !going {
				e.Fatalf("%s has ended at %d, want it to come to %d", f.name, f.came, upTo)
			}
			f.came = at
		case <-time.After(awaitLimit):
			e.Fatalf("%s sleeps at %d, want it to come to %d", f.name, f.came, upTo)
		}
	}
}

// flushBeside makes the flush of each batch that was written.
func (e *env) flushBeside(h *history, written <-chan int) {
	for i := range written {
		if err := e.store.Flush(e.Context(), h.flushes[i]); err != nil {
			e.Errorf("flush: %v", err)
			return
		}
	}
}
