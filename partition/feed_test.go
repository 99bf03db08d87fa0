package partition_test

import (
	"context"
	"iter"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// feed returns the feed from a cursor's text on.
func (l *library) feed(text string) *partition.Feed {
	l.t.Helper()
	c, err := l.reader.ParseCursor(text)
	noError(l.t, err)
	f, err := l.reader.Feed(l.ctx, c)
	noError(l.t, err)
	return f
}

func (l *library) page(f *partition.Feed, limit int) []messages.Event {
	l.t.Helper()
	events, err := f.Page(l.ctx, limit)
	noError(l.t, err)
	isTrue(l.t, len(events) <= max(limit, 1), "got %d, want at most %d", len(events), max(limit, 1))
	return events
}

// byPartition takes events apart.
func byPartition(events []messages.Event) [3][]messages.Event {
	var logs [3][]messages.Event
	for _, e := range events {
		logs[e.Partition] = append(logs[e.Partition], e)
	}
	return logs
}

// sameLogs fails the test unless events are all of all partitions, in the order of each.
func (l *library) sameLogs(events []messages.Event) {
	l.t.Helper()
	logs := byPartition(events)
	for p := range messages.PartitionID(3) {
		equal(l.t, l.read(l.reader.PLog(l.ctx, p, 1)), logs[p])
	}
}

// TestFeedIsAllLogs: in one pass, and in pages of any size from the cursor's text.
func TestFeedIsAllLogs(t *testing.T) {
	eachLibrary(t, func(t *testing.T, l *library) {
		l.fill(400, 0, 0, 0, 1, 3)
		l.append(2)
		l.sameLogs(l.read(l.feed("").Events(l.ctx)))
		for _, limit := range []int{-1, 1, 2, 7, 112, 113, 200, 1000} {
			text := ""
			var all []messages.Event
			for {
				f := l.feed(text)
				page := l.page(f, limit)
				if len(page) == 0 {
					equal(t, text, f.Cursor().String())
					break
				}
				if len(all)+len(page) < 401 {
					equal(t, max(limit, 1), len(page))
				}
				text = f.Cursor().String()
				all = append(all, page...)
			}
			l.sameLogs(all)
		}
	})
}

// TestFeedAfterIdle: a partition that was idle for many pages goes on where it stood.
func TestFeedAfterIdle(t *testing.T) {
	eachLibrary(t, func(t *testing.T, l *library) {
		l.append(0, 1, 2, 2)
		f := l.feed("")
		all := l.page(f, 100)
		for i := range 30 {
			l.append(0)
			all = append(all, l.page(f, 100)...)
			f = l.feed(f.Cursor().String())
			if i%10 == 9 {
				l.append(2, 1, 2)
				all = append(all, l.page(f, 100)...)
			}
		}
		equal(t, 43, len(all))
		l.sameLogs(all)
	})
}

// TestFeedIsFair: a partition with a long backlog does not keep the others waiting, in one
// pass and in short pages.
func TestFeedIsFair(t *testing.T) {
	l := memoryLibrary(t)
	l.fill(5000, 0)
	l.append(1, 2, 2)
	for _, limit := range []int{1, 2, 10, 500} {
		text := ""
		var all []messages.Event
		for range 6 {
			f := l.feed(text)
			all = append(all, l.page(f, limit)...)
			text = f.Cursor().String()
		}
		logs := byPartition(all)
		isTrue(t, len(logs[0]) > 0, "it is empty")
		equal(t, 1, len(logs[1]))
		isTrue(t, len(logs[2]) >= 1, "got %d, want at least %d", len(logs[2]), 1)
	}
	first := slices.IndexFunc(l.read(l.feed("").Events(l.ctx)), func(e messages.Event) bool { return e.Partition == 2 })
	isTrue(t, first < 200, "got %d, want less than %d", first, 200)
}

// TestFeedPageThatFails: what was not given is given when reading works again.
func TestFeedPageThatFails(t *testing.T) {
	l := memoryLibrary(t)
	l.fill(60, 0, 1, 2)
	f := l.feed("")
	all := l.page(f, 10)
	before := f.Cursor().String()
	faulty := l.store.(*storagetest.Faulty)
	for _, fault := range []storagetest.Fault{
		{Op: storagetest.OpPLog, Do: storagetest.Break(3, errInjected)},
		{Op: storagetest.OpRegister, Do: storagetest.Fail(errInjected), Skip: 1},
	} {
		faulty.Plant(fault)
		page, err := f.Page(l.ctx, 50)
		isError(t, err, errInjected)
		isTrue(t, page == nil, "got %v, want none", page)
		equal(t, before, f.Cursor().String())
		faulty.Heal()
	}
	faulty.Plant(storagetest.Fault{Op: storagetest.OpPLog, Do: storagetest.Break(3, errInjected)})
	var failed error
	for e, err := range f.Events(l.ctx) {
		noError(t, failed)
		if failed = err; err == nil {
			all = append(all, e)
		}
	}
	isError(t, failed, errInjected)
	faulty.Heal()
	all = append(all, l.read(l.feed(f.Cursor().String()).Events(l.ctx))...)
	l.sameLogs(all)
}

// TestFeedFollow: it shows what is there and then what comes, of every partition.
func TestFeedFollow(t *testing.T) {
	eachLibrary(t, func(t *testing.T, l *library) {
		feed := l.feed("")
		f := l.follow(func(ctx context.Context) iter.Seq2[messages.Event, error] { return feed.Follow(ctx) })
		f.waits()
		var all []messages.Event
		for i, ws := range []messages.WSID{0, 1, 2, 2, 1, 0, 3, 5, 7, 1} {
			l.append(ws)
			all = append(all, f.take(1)...)
			if i%4 == 3 {
				l.flush()
			}
			f.waits()
		}
		l.append(0, 0, 1, 2, 2)
		all = append(all, f.take(5)...)
		f.waits()
		l.sameLogs(all)
		f.cancel()
		isError(t, f.ends(), context.Canceled)
		l.append(1)
		l.sameLogs(append(all, l.page(feed, 10)...))
	})
}

// TestFeedFollowAgain: whoever breaks off, after an event, a page or a wait, goes on with the
// next event.
func TestFeedFollowAgain(t *testing.T) {
	eachLibrary(t, func(t *testing.T, l *library) {
		l.fill(60, 0, 1, 2)
		f := l.feed("")
		var all []messages.Event
		for len(all) < 60 {
			switch len(all) % 3 {
			case 0:
				all = append(all, l.page(f, 2)...)
			case 1:
				noError(t, f.Await(l.ctx))
			}
			for e, err := range f.Follow(l.ctx) {
				noError(t, err)
				all = append(all, e)
				break
			}
		}
		l.sameLogs(all)
	})
}

// TestFeedCursorInTheLoop: a cursor that is taken in the loop body is behind the event, and
// what goes on from it begins with another partition.
func TestFeedCursorInTheLoop(t *testing.T) {
	l := memoryLibrary(t)
	l.fill(300, 0, 0, 0, 1)
	l.append(2, 2)
	var all []messages.Event
	f := l.feed("")
	for e, err := range f.Events(l.ctx) {
		noError(t, err)
		all = append(all, e)
		rest := l.feed(f.Cursor().String())
		next := l.page(rest, 1)
		isTrue(t, len(all) == 302 || next[0].Partition != e.Partition || e.Partition == 0, "got partition %d twice", e.Partition)
		if len(all)%7 == 0 || len(all) > 295 {
			l.sameLogs(slices.Concat(all, next, l.read(rest.Events(l.ctx))))
		}
	}
	equal(t, 302, len(all))
}

// TestFeedAwait: it returns when there is an event that the feed has not given, and not
// for one that it has.
func TestFeedAwait(t *testing.T) {
	eachLibrary(t, func(t *testing.T, l *library) {
		f := l.feed("")
		for range 6 {
			for _, ws := range []messages.WSID{0, 4, 2} {
				ctx := storagetest.NewLookout(l.ctx)
				ended := make(chan error, 1)
				go func() { ended <- f.Await(ctx) }()
				<-ctx.Waits()
				equal(t, 0, len(ended))
				l.append(ws, ws)
				noError(t, <-ended)
				noError(t, f.Await(l.ctx))
				equal(t, 1, len(l.page(f, 1)))
				noError(t, f.Await(l.ctx))
				equal(t, 1, len(l.page(f, 10)))
			}
		}
		ctx, cancel := context.WithCancel(l.ctx)
		cancel()
		isError(t, f.Await(ctx), context.Canceled)
		noError(t, l.store.Close(l.ctx))
		isError(t, f.Await(l.ctx), storage.ErrClosed)
	})
}

// TestFeedModel: however appends, pages, loops that break off and restarts from the
// cursor's text fall, each event is given once, in the order of its partition.
func TestFeedModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := memoryLibrary(t)
		f := l.feed("")
		var all []messages.Event
		appended := 0
		rt.Repeat(map[string]func(*rapid.T){
			"append": func(rt *rapid.T) {
				p := rapid.IntRange(0, 2).Draw(rt, "partition")
				n := rapid.SampledFrom([]int{1, 2, 3, 120}).Draw(rt, "events")
				specs := slices.Repeat([]storagetest.Spec{{Workspace: messages.WSID(p)}}, n)
				l.writers[p].Append(t, specs...)
				appended += n
			},
			"page": func(rt *rapid.T) {
				limit := rapid.SampledFrom([]int{0, 1, 2, 3, 111, 112, 113, 200}).Draw(rt, "limit")
				page := l.page(f, limit)
				equal(rt, min(max(limit, 1), appended-len(all)), len(page))
				all = append(all, page...)
			},
			"follow": func(rt *rapid.T) {
				n := rapid.SampledFrom([]int{1, 2, 5, 113}).Draw(rt, "events")
				if n = min(n, appended-len(all)); n == 0 {
					rt.Skip("it would wait")
				}
				for e, err := range f.Follow(l.ctx) {
					noError(rt, err)
					all = append(all, e)
					if n--; n == 0 {
						break
					}
				}
			},
			"await": func(rt *rapid.T) {
				if appended == len(all) {
					rt.Skip("it would wait")
				}
				noError(rt, f.Await(l.ctx))
			},
			"beside": func(rt *rapid.T) {
				n := min(rapid.SampledFrom([]int{1, 5, 113, 300}).Draw(rt, "events"), appended)
				if n == 0 {
					rt.Skip("it would wait")
				}
				var ends [3]messages.PLogOffset
				for e, err := range l.feed("").Follow(l.ctx) {
					noError(rt, err)
					ends[e.Partition]++
					equal(rt, ends[e.Partition], e.PLogOffset)
					if n--; n == 0 {
						break
					}
				}
			},
			"restart": func(*rapid.T) { f = l.feed(f.Cursor().String()) },
			"":        func(rt *rapid.T) { isTrue(rt, len(all) <= appended, "got %d, want at most %d", len(all), appended) },
		})
		all = append(all, l.read(f.Events(l.ctx))...)
		l.sameLogs(all)
	})
}

// TestFeedEnds although something is appended for each event that it gives, and takes turns
// when a cursor is taken in its loop.
func TestFeedEnds(t *testing.T) {
	eachLibrary(t, func(t *testing.T, l *library) {
		l.append(0, 1, 2)
		l.fill(120, 0)
		f := l.feed("")
		n := 0
		for _, err := range f.Events(l.ctx) {
			noError(t, err)
			l.append(0)
			n++
		}
		equal(t, 123, n)
		var order []messages.PartitionID
		for text := ""; len(order) < 4; {
			f := l.feed(text)
			for e, err := range f.Events(l.ctx) {
				noError(t, err)
				order = append(order, e.Partition)
				text = f.Cursor().String()
				break
			}
		}
		equal(t, []messages.PartitionID{0, 1, 2, 0}, order)
	})
}
