package partition_test

import (
	"context"
	"iter"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// followed is a log that a reader can follow, and where in it an event is. What is
// appended to workspace 3 goes into both.
type followed struct {
	name   string
	follow func(ctx context.Context, r *partition.Reader, from uint64) iter.Seq2[messages.Event, error]
	at     func(messages.Event) uint64
}

var followedLogs = []followed{
	{"partition", func(ctx context.Context, r *partition.Reader, from uint64) iter.Seq2[messages.Event, error] {
		return r.FollowPLog(ctx, 0, messages.PLogOffset(from))
	}, func(e messages.Event) uint64 { return uint64(e.PLogOffset) }},
	{"workspace", func(ctx context.Context, r *partition.Reader, from uint64) iter.Seq2[messages.Event, error] {
		return r.FollowWLog(ctx, 3, messages.WLogOffset(from))
	}, func(e messages.Event) uint64 { return uint64(e.WLogOffset) }},
}

// eachFollowed runs a test for each log, over each store.
func eachFollowed(t *testing.T, test func(t *testing.T, l *library, log followed)) {
	for _, log := range followedLogs {
		t.Run(log.name, func(t *testing.T) {
			eachLibrary(t, func(t *testing.T, l *library) { test(t, l, log) })
		})
	}
}

// from starts a follower.
func (l *library) from(log followed, from uint64) *following {
	l.t.Helper()
	return l.follow(func(ctx context.Context) iter.Seq2[messages.Event, error] { return log.follow(ctx, l.reader, from) })
}

// consecutive fails the test unless events are those from an offset on.
func (log followed) consecutive(t *testing.T, from uint64, events []messages.Event) {
	t.Helper()
	for i, e := range events {
		equal(t, from+uint64(i), log.at(e))
		equal(t, 3, e.Workspace)
	}
}

// TestFollow: a follower that starts behind gets what is there, then each event as it is
// appended.
func TestFollow(t *testing.T) {
	eachFollowed(t, func(t *testing.T, l *library, log followed) {
		l.fill(40, 3)
		behind, middle, end := l.from(log, 0), l.from(log, 21), l.from(log, 41)
		log.consecutive(t, 1, behind.take(40))
		log.consecutive(t, 21, middle.take(20))
		for n := uint64(41); n <= 60; n++ {
			for _, f := range []*following{behind, middle, end} {
				f.waits()
			}
			// Events of others wake nobody in vain, or in vain only.
			l.append(1, 3)
			for _, f := range []*following{behind, middle, end} {
				log.consecutive(t, n, f.take(1))
			}
			if n%5 == 0 {
				l.flush()
			}
		}
	})
}

// TestFollowFromAhead: events before the offset are not shown, also when the log comes to
// it later.
func TestFollowFromAhead(t *testing.T) {
	eachFollowed(t, func(t *testing.T, l *library, log followed) {
		f := l.from(log, 5)
		f.waits()
		for range 6 {
			l.append(3)
		}
		log.consecutive(t, 5, f.take(2))
	})
}

// TestSlowFollower: one that does not come back from its loop body keeps nobody from
// writing and flushing, and finds everything later.
func TestSlowFollower(t *testing.T) {
	eachFollowed(t, func(t *testing.T, l *library, log followed) {
		l.append(3)
		slow, fast := l.from(log, 1), l.from(log, 1)
		const n = 600
		for i := range n {
			l.append(3)
			log.consecutive(t, uint64(i)+1, fast.take(1))
			if i%200 == 0 {
				l.flush()
			}
		}
		log.consecutive(t, 1, slow.take(n+1))
	})
}

// TestFollowBodyCallsTheStore: the loop body may write what the loop then shows.
func TestFollowBodyCallsTheStore(t *testing.T) {
	eachFollowed(t, func(t *testing.T, l *library, log followed) {
		l.append(3)
		at := uint64(0)
		for e, err := range log.follow(l.ctx, l.reader, 1) {
			noError(t, err)
			at++
			log.consecutive(t, at, []messages.Event{e})
			if at == 40 {
				break
			}
			l.append(3, 1)
			if at%8 == 0 {
				l.flush()
			}
			page, err := l.reader.WLogPage(l.ctx, 3, 1, 1000)
			noError(t, err)
			equal(t, int(at)+1, len(page))
		}
	})
}

// TestFollowAgain: whoever breaks off goes on where he likes.
func TestFollowAgain(t *testing.T) {
	eachFollowed(t, func(t *testing.T, l *library, log followed) {
		l.fill(20, 3)
		at := uint64(0)
		for at < 20 {
			for e, err := range log.follow(l.ctx, l.reader, at+1) {
				noError(t, err)
				at++
				log.consecutive(t, at, []messages.Event{e})
				if at%3 == 0 || at == 20 {
					break
				}
			}
		}
	})
}

// TestFollowEnds: with its context, while it waits and in its loop body; with the store;
// and at once if it cannot begin.
func TestFollowEnds(t *testing.T) {
	eachFollowed(t, func(t *testing.T, l *library, log followed) {
		l.append(3, 3)
		waits, busy, stays := l.from(log, 3), l.from(log, 1), l.from(log, 1)
		waits.waits()
		waits.cancel()
		isError(t, waits.ends(), context.Canceled)
		busy.take(1)
		busy.cancel()
		isError(t, busy.ends(), context.Canceled)
		isError(t, l.follow(func(ctx context.Context) iter.Seq2[messages.Event, error] {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			return log.follow(ended, l.reader, 1)
		}).ends(), context.Canceled)

		stays.take(2)
		stays.waits()
		noError(t, l.store.Close(l.ctx))
		isError(t, stays.ends(), storage.ErrClosed)
		isError(t, l.from(log, 1).ends(), storage.ErrClosed)
	})
}

// TestFollowFails: an error of reading or waiting is the last element.
func TestFollowFails(t *testing.T) {
	for op, elements := range map[storagetest.Op]int{
		storagetest.OpPLog: 5, storagetest.OpWLog: 5, storagetest.OpAwaitPLog: 8, storagetest.OpAwaitWLog: 8,
	} {
		t.Run(op.String(), func(t *testing.T) {
			l := memoryLibrary(t)
			l.fill(8, 3)
			effect := storagetest.Fail(errInjected)
			if elements < 8 {
				effect = storagetest.Break(elements, errInjected)
			}
			l.store.(*storagetest.Faulty).Plant(storagetest.Fault{Op: op, Do: effect})
			log := followedLogs[0]
			if op == storagetest.OpWLog || op == storagetest.OpAwaitWLog {
				log = followedLogs[1]
			}
			f := l.from(log, 1)
			log.consecutive(t, 1, f.take(elements))
			isError(t, f.ends(), errInjected)
		})
	}
}

// TestFollowDeployed: what a client commits is followed. The reader is the store's: it
// goes on when the application is undeployed, and ends with the store.
func TestFollowDeployed(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := billing("followed")
	store := h.newStore(app.Descriptor)
	a := h.deploy(app, store)
	reader := a.Reader()
	got := make(chan messages.Event)
	ended := make(chan error, 1)
	ctx := storagetest.NewLookout(h.ctx)
	go func() {
		defer close(ended)
		for e, err := range reader.FollowWLog(ctx, 7, 1) {
			if err != nil {
				ended <- err
				return
			}
			got <- e
		}
	}()
	for n := range messages.WLogOffset(5) {
		<-ctx.Waits()
		number := h.commit(a, 7)
		e := soon(h, "the event", got)
		equal(t, n+1, e.WLogOffset)
		equal(t, number, e.Numbers[0].Number)
	}
	<-ctx.Waits()
	h.check(h.parts.Undeploy(h.ctx, "followed"))
	equal(t, 0, len(ended))
	a = h.deploy(app, store)
	h.commit(a, 7)
	equal(t, 6, soon(h, "the event of the next deployment", got).WLogOffset)
	<-ctx.Waits()
	h.check(h.parts.Undeploy(h.ctx, "followed"))
	h.check(store.Close(h.ctx))
	isError(t, soon(h, "the end", ended), storage.ErrClosed)
}
