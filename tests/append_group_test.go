package tests

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
)

// TestAppendExpectedRace: of many who expect the same offset exactly one writes, and
// the others learn where the workspace is now; they use up no number.
func TestAppendExpectedRace(t *testing.T) {
	s := newSite(t, 1, often)
	d := s.run(t)
	processor := must(d.app.SpawnAppendProcessor(draftBody))(t)
	const callers = 24
	var last [2]messages.WLogOffset
	var invoices, receipts [2]messages.Number
	for round := range 25 {
		ends := d.ends(t)[0]
		start := make(chan struct{})
		var answers [2][callers]answer
		var all sync.WaitGroup
		for i := range callers {
			for ws := range 2 { // they share the partition
				all.Go(func() {
					<-start
					b := &begun{Workspace: messages.WSID(ws), ID: idOf(uint64(i), uint64(round)), Bodies: []string{fmt.Sprint(round, i), "more"}[:1+i%2]}
					if i%3 > 0 {
						each, err := b.send(limit(t), d.app, new(last[ws]))
						answers[ws][i] = answer{each, err}
						return
					}
					done, err := processor.Execute(limit(t), messages.Command{
						Workspace: b.Workspace, Kind: kindShop, Body: []byte(b.Bodies[0]), DedupID: b.ID, Expected: new(last[ws]),
					})
					if err == nil {
						answers[ws][i].each = []messages.Appended{{WLogOffset: done.WLogOffset, Numbers: done.Numbers}}
					}
					answers[ws][i].err = err
				})
			}
		}
		close(start)
		all.Wait()
		for ws := range answers {
			won := winner(t, answers[ws][:], messages.WSID(ws), last[ws])
			last[ws] += messages.WLogOffset(len(won))
			ends += messages.PLogOffset(len(won))
			counter, initial := &invoices[ws], messages.Number(0)
			if won[0].Numbers[0].Seq == seqReceipt {
				counter, initial = &receipts[ws], 999
			}
			if *counter++; won[0].Numbers[0].Number != initial+*counter {
				t.Errorf("got number %d, want %d", won[0].Numbers[0].Number, initial+*counter)
			}
		}
		if now := d.ends(t)[0]; now != ends {
			t.Fatalf("round %d: the log ends at %d, want %d", round, now, ends)
		}
	}
	d.stop(t)
}

// winner returns what the one of many who expected the same offset was promised.
func winner(t testing.TB, answers []answer, ws messages.WSID, want messages.WLogOffset) []messages.Appended {
	t.Helper()
	var won []messages.Appended
	for _, a := range answers {
		if a.err != nil {
			continue
		}
		if won != nil {
			t.Errorf("got %+v and %+v for the same expected offset", won, a.each)
		}
		won = a.each
	}
	if won == nil {
		t.Fatalf("nobody has written: %v", answers[0].err)
	}
	if won[0].WLogOffset != want+1 {
		t.Errorf("got offset %d, want %d", won[0].WLogOffset, want+1)
	}
	for _, a := range answers {
		if a.err == nil {
			continue
		}
		moved, ok := errors.AsType[*messages.OffsetError](a.err)
		if !ok || moved.Workspace != ws || moved.Want != want || moved.Got != want+messages.WLogOffset(len(won)) {
			t.Errorf("got error %v, want that workspace %d is at %d, not at %d", a.err, ws, want+messages.WLogOffset(len(won)), want)
		}
	}
	return won
}

// groups is a load of appends of several events each. A body says which event of
// how many it is.
type groups struct {
	app *partition.App
	// acked is the last event that was acknowledged, per workspace.
	acked [groupWorkspaces]atomic.Uint64
}

const groupWorkspaces = 4

// write appends groups to one workspace until an append fails.
func (g *groups) write(ctx context.Context, ws messages.WSID, client, times int) error {
	random := rand.New(rand.NewPCG(uint64(client), uint64(ws)))
	for n := range times {
		b := &begun{Workspace: ws}
		size := 1 + random.IntN(6)
		for i := range size {
			b.Bodies = append(b.Bodies, fmt.Sprintf("%d/%d of %d-%d", i+1, size, client, n))
		}
		each, err := b.send(ctx, g.app, nil)
		if err != nil {
			return err
		}
		last := uint64(each[size-1].WLogOffset)
		for was := g.acked[ws].Load(); was < last && !g.acked[ws].CompareAndSwap(was, last); {
			was = g.acked[ws].Load()
		}
	}
	return nil
}

// whole reads a log to its end and returns an error if a group is cut off there, or
// elsewhere. It returns how many events there were, and the last one's offset in its
// workspace.
func whole(events iter.Seq2[messages.Event, error]) (n int, last messages.WLogOffset, err error) {
	next, size, name := 1, 0, ""
	for e, err := range events {
		if err != nil {
			return n, last, err
		}
		var i, of int
		var who string
		if _, err := fmt.Sscanf(string(e.Body), "%d/%d of %s", &i, &of, &who); err != nil {
			return n, last, err
		}
		if next > size {
			next, size, name = 1, of, who
		}
		if i != next || of != size || who != name {
			return n, last, fmt.Errorf("offset %d: got event %s, want %d/%d of %s", e.PLogOffset, e.Body, next, size, name)
		}
		next++
		n++
		last = e.WLogOffset
	}
	if next <= size {
		return n, last, fmt.Errorf("the log ends after %d of %d events of %s", next-1, size, name)
	}
	return n, last, nil
}

// TestAppendAllIsSeenWhole: readers who follow the logs while groups are appended
// and flushed see each group whole or not at all, and what was acknowledged at once.
func TestAppendAllIsSeenWhole(t *testing.T) {
	for name, settings := range map[string]partition.Settings{"flushing often": often, "never flushing": neverFlushed()} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, 2, settings)
			s.options.Observer = nil
			d := s.run(t)
			ctx := limit(t)
			g := &groups{app: d.app}
			var writers, readers sync.WaitGroup
			written := make(chan struct{})
			failed := make(chan error, 8+groupWorkspaces+2)
			for client := range 8 {
				writers.Go(func() { failed <- g.write(ctx, messages.WSID(client%groupWorkspaces), client, 25) })
			}
			for ws := range messages.WSID(groupWorkspaces) {
				readers.Go(func() { failed <- g.followWLog(ctx, d.store, ws, written) })
			}
			for p := range messages.PartitionID(2) {
				readers.Go(func() { failed <- followPLog(ctx, d.store, p, written) })
			}
			writers.Wait()
			close(written)
			readers.Wait()
			close(failed)
			for err := range failed {
				check(t, err)
			}
			d.stop(t)
		})
	}
}

// followPLog reads a partition's log while it grows.
func followPLog(ctx context.Context, store storage.Store, p messages.PartitionID, written chan struct{}) error {
	for from := messages.PLogOffset(1); ; {
		end := closed(written)
		n, _, err := whole(store.PLog(ctx, p, from))
		if err != nil || end {
			return err
		}
		from += messages.PLogOffset(n)
	}
}

// followWLog reads a workspace's log while it grows.
func (g *groups) followWLog(ctx context.Context, store storage.Store, ws messages.WSID, written chan struct{}) error {
	seen := messages.WLogOffset(0)
	for {
		end, acked := closed(written), messages.WLogOffset(g.acked[ws].Load())
		_, last, err := whole(store.WLog(ctx, ws, seen+1))
		seen = max(seen, last)
		switch {
		case err != nil:
			return err
		case seen < acked:
			return fmt.Errorf("workspace %d: got events to %d, acknowledged were those to %d", ws, seen, acked)
		case end:
			return nil
		}
	}
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestAppendAllAfterCrash: the store goes away at any moment of the load; each group
// is there whole or not at all, also when state.db is rebuilt.
func TestAppendAllAfterCrash(t *testing.T) {
	random := rand.New(rand.NewPCG(uint64(setting("SEED", 1)), 0))
	s := newSite(t, 2, often)
	s.options.Observer = nil
	g := &groups{}
	for round := range setting("GROUP_CRASHES", unlessShort(12)) {
		s.app.Settings = []partition.Settings{often, neverFlushed()}[random.IntN(2)]
		d := s.run(t)
		g.app = d.app
		g.writeUntil(t, round, 1+random.Int64N(80), func() { d.crash(t) })
		if random.IntN(3) == 0 {
			s.deleteState(t)
		}
		s.look(t, func(store *bolt.Store) {
			for ws := range messages.WSID(groupWorkspaces) {
				_, last, err := whole(store.WLog(limit(t), ws, 1))
				check(t, err)
				if acked := messages.WLogOffset(g.acked[ws].Load()); last < acked {
					t.Errorf("workspace %d: got events to %d, acknowledged were those to %d", ws, last, acked)
				}
			}
			for p := range messages.PartitionID(2) {
				_, _, err := whole(store.PLog(limit(t), p, 1))
				check(t, err)
			}
		})
	}
}

// writeUntil writes until so many groups are acknowledged, then ends it all.
func (g *groups) writeUntil(t testing.TB, round int, acks int64, end func()) {
	t.Helper()
	ctx := limit(t)
	enough := make(chan struct{})
	var acked atomic.Int64
	var writers sync.WaitGroup
	for client := range 8 {
		writers.Go(func() {
			for n := 0; g.write(ctx, messages.WSID(client%groupWorkspaces), 10_000*round+1000*client+n, 1) == nil; n++ {
				if acked.Add(1) == acks {
					close(enough)
				}
			}
		})
	}
	select {
	case <-enough:
	case <-ctx.Done():
		t.Error("the writers do not get on")
	}
	end()
	writers.Wait()
}
