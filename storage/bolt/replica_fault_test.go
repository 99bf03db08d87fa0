package bolt

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/faulty"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/queue"
	"github.com/partita-go/partita/storage/bolt/internal/tail"
	"github.com/partita-go/partita/storage/replog"
	"github.com/partita-go/partita/storage/replog/memory"
)

// openThree opens the stores of three nodes, the first of which leads, and a partition of it with an event of workspace 1.
func openThree(t *testing.T) (*replicas, *writer) {
	t.Helper()
	r := openReplicas(t, 3, testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, r.nodes[0].store, 0)
	w.append(1)
	return r, w
}

// caughtUp waits until all nodes have the same head as the one given, and returns the events of each.
func (r *replicas) caughtUp(t *testing.T, of *Store) (all [][]messages.Event) {
	t.Helper()
	want := of.lastLSN.Load()
	for _, n := range r.nodes {
		for last := uint64(0); last < want; {
			var err error
			if last, err = n.store.AwaitAny(t.Context(), last); err != nil {
				t.Fatalf("node %s: %v", n.id, err)
			}
		}
		all = append(all, collectEvents(t, n.store.Log(replog.Local(t.Context()), 1)))
	}
	return all
}

// same makes sure that all nodes have the same events, so many.
func (r *replicas) same(t *testing.T, of *Store, want int) {
	t.Helper()
	all := r.caughtUp(t, of)
	expect.Equal(t, want, len(all[0]))
	for _, events := range all[1:] {
		expect.Equal(t, all[0], events)
	}
}

// An append of which nobody knows is there or not once the next owner has taken an epoch, and for ever.
func TestUnknownIsDecidedByTheNextEpoch(t *testing.T) {
	for fate, there := range map[memory.Fate]int{memory.Kept: 1, memory.Lost: 0, memory.Late: 0} {
		t.Run(fate.String(), func(t *testing.T) {
			r, w := openThree(t)
			r.cluster.Doom("a", fate)
			expect.ErrorIs(t, w.try(w.event(1)), messages.ErrOutcomeUnknown)
			if err := w.try(w.event(1)); err == nil || errors.Is(err, messages.ErrOutcomeUnknown) {
				t.Fatalf("it goes on: %v", err)
			}

			next := takeOver(t, r.lead(t, 1), 0)
			expect.Equal(t, messages.PLogOffset(2+there), next.next)
			r.cluster.Release()
			next.append(1, 2)
			r.same(t, next.s, 3+there)

			// Whoever was told so goes on when it leads again, under its old epoch in vain.
			r.lead(t, 0)
			expect.ErrorIs(t, w.try(w.event(1)), messages.ErrFenced)
			takeOver(t, w.s, 0).append(2)
			r.same(t, w.s, 4+there)
		})
	}
}

// What is accepted behind a refusal is judged by what the log has then, however long that has taken.
func TestHeadIsThatOfTheFirstAccepted(t *testing.T) {
	_, w := openThree(t)
	c := newCommitter(w.s)
	c.begin()
	w.append(1)
	r := &writeRequest{Ticket: queue.NewTicket(), partition: &w.s.partitions[0], epoch: w.epoch + 1, takeEpoch: true}
	c.admit(r)
	if want := w.s.replica.head.Load(); len(c.staged.accepted) != 1 || c.head != want {
		t.Errorf("got %d requests accepted at head %d, want 1 at %d", len(c.staged.accepted), c.head, want)
	}
}

// A late entry is void although the next owner has written nothing but its epoch.
func TestEpochIsAnEntry(t *testing.T) {
	r, w := openThree(t)
	r.cluster.Doom("a", memory.Late)
	expect.ErrorIs(t, w.try(w.event(1)), messages.ErrOutcomeUnknown)
	next := takeOver(t, r.lead(t, 2), 0)
	r.cluster.Release()
	r.lead(t, 1)
	r.lead(t, 2) // all has been applied by then
	r.same(t, next.s, 1)
	next.append(1)
	r.same(t, next.s, 2)
}

// Nobody is answered before the log has the entry, and it is here.
func TestReplicaAnswersWhatIsThere(t *testing.T) {
	r, w := openThree(t)
	r.cluster.Doom("a", memory.Delayed)
	e := w.event(1)
	answer := make(chan error, 1)
	go func() {
		answer <- w.s.Append(t.Context(), storage.Batch{Partition: 0, Epoch: w.epoch, Events: []messages.Event{e}})
	}()
	for last := uint64(0); last < 2; {
		var err error
		last, err = w.s.AwaitAny(t.Context(), last)
		expect.NoError(t, err)
	}
	r.lead(t, 1)
	select {
	case err := <-answer:
		t.Fatalf("answered before the log has: %v", err)
	default:
	}
	r.cluster.Release()
	expect.NoError(t, <-answer)
}

// Whoever is cut off and does not know shows nothing old, and writes nothing.
func TestReadsOfAnOldOwner(t *testing.T) {
	r, w := openThree(t)
	r.cluster.Cut("a")
	next := takeOver(t, r.lead(t, 1), 0)
	next.append(1)

	s, ctx := w.s, t.Context()
	_, err := s.Register(ctx, 0)
	expect.ErrorIs(t, err, replog.ErrNotOwner)
	_, err = s.Tail(ctx, 0, 1, 1)
	expect.ErrorIs(t, err, replog.ErrNotOwner)
	_, err = s.Numbers(ctx, 1)
	expect.ErrorIs(t, err, replog.ErrNotOwner)
	_, err = s.Find(ctx, 1, messages.DedupID{1})
	expect.ErrorIs(t, err, replog.ErrNotOwner)
	for _, err := range s.PLog(ctx, 0, 1) {
		expect.ErrorIs(t, err, replog.ErrNotOwner)
	}
	for _, err := range s.WLog(ctx, 1, 1) {
		expect.ErrorIs(t, err, replog.ErrNotOwner)
	}
	for _, err := range s.Records(ctx, 1, storage.RecordRange{Seq: testSeq}) {
		expect.ErrorIs(t, err, replog.ErrNotOwner)
	}
	_, err = s.TakeEpoch(ctx, 0)
	expect.ErrorIs(t, err, replog.ErrNotOwner)
	expect.ErrorIs(t, w.try(w.event(1)), replog.ErrNotOwner)

	// A prefix is to be had, from anybody.
	expect.Equal(t, 1, len(collectEvents(t, s.PLog(replog.Local(ctx), 0, 1))))
	r.cluster.Heal("a")
	r.same(t, next.s, 2)
}

// An entry is taken once, however often the log gives it, and none is left out, wherever the replica was.
func TestReplicaComesBack(t *testing.T) {
	r, w := openThree(t)
	d := w.s.Descriptor()
	back := r.nodes[2]
	r.close(t, back)
	r.untrimmed = true
	r.open(t, back, d)
	for round := range 3 {
		r.caughtUp(t, w.s)
		crashed := quietCopy(t, back.store, back.dir)
		r.close(t, back)
		if round == 1 {
			back.dir = crashed // as it was killed, and the log gives again what it has not forgotten
		}
		w.append(1, 2)
		w.flush()
		w = takeOver(t, w.s, 0)
		r.open(t, back, d)
		w.append(2)
		r.same(t, w.s, 1+3*(round+1))
	}
	s := r.lead(t, 2)
	takeOver(t, s, 0).append(1)
	r.same(t, s, 11)
}

// A node that does not lead brings its projections up to its log, and disturbs no owner.
func TestFollowerFlushes(t *testing.T) {
	r, w := openThree(t)
	w.append(1, 2, 1)
	r.caughtUp(t, w.s)
	follower := r.nodes[1].store
	_, err := follower.replica.flush()
	expect.NoError(t, err)
	some, err := w.s.replica.flush()
	if some || err != nil {
		t.Errorf("the owner flushes by itself: %v", err)
	}
	reg, err := follower.Register(replog.Local(t.Context()), 0)
	expect.NoError(t, err)
	expect.Equal(t, messages.PLogOffset(5), reg.Checkpoint)
	reg, err = w.s.Register(t.Context(), 0)
	expect.NoError(t, err)
	expect.Equal(t, messages.PLogOffset(1), reg.Checkpoint) // the checkpoint is the owner's
	w.flush()

	next := takeOver(t, r.lead(t, 1), 0)
	expect.Equal(t, messages.PLogOffset(5), next.flushed)
	expect.Equal(t, 3, len(collectRows(t, next.s, 1, storage.RecordRange{Seq: testSeq})))
	next.append(1)
	next.flush()
}

// A node that does not lead has a quarter of what tails may take: it may catch up as fast as its log brings events.
func TestTailsOfAFollowerAreShort(t *testing.T) {
	const limit = 40
	r := openReplicas(t, 3, testDescriptor(1, messages.TrustNone), Options{TailEvents: limit})
	w := takeOver(t, r.nodes[0].store, 0)
	for range limit/pacePart - 1 { // at more anybody is in a hurry
		w.append(1)
	}
	r.caughtUp(t, w.s)
	p := &r.nodes[1].store.partitions[0]
	p.mu.RLock()
	defer p.mu.RUnlock()
	if got, want := p.tail.Len(), limit/4+1; got > want {
		t.Errorf("got %d events in the tail, want at most %d", got, want)
	}
}

// Projections are never ahead of what this directory has of the log.
func TestFlushAwaitsTheLog(t *testing.T) {
	_, w := openThree(t)
	w.append(1, 2)
	w.flush()
	first, values := w.s.log.Pending()
	expect.Equal(t, 4, first)
	expect.Equal(t, 0, len(values))
}

// A replica is not written without the others. It can be read, and a backup of it is a store by itself.
func TestReplicaAlone(t *testing.T) {
	r, w := openThree(t)
	w.append(1)
	backup := t.TempDir() + "/backup"
	_, err := w.s.Backup(t.Context(), backup, CopyOptions{})
	expect.NoError(t, err)
	d, dir := w.s.Descriptor(), r.nodes[0].dir
	r.stop(t)

	_, err = Open(t.Context(), dir, d, Options{})
	expect.ErrorIs(t, err, ErrReplica)
	_, err = Compact(t.Context(), dir, t.TempDir()+"/compact", CopyOptions{})
	expect.ErrorIs(t, err, ErrReplica)
	s, err := Open(t.Context(), dir, d, Options{ReadOnly: true})
	expect.NoError(t, err)
	expect.Equal(t, 2, len(collectEvents(t, s.Log(t.Context(), 1))))
	closeStore(t, s)

	s = open(t, backup, d, Options{})
	takeOver(t, s, 0).append(1)
	expect.Equal(t, 3, len(collectEvents(t, s.Log(t.Context(), 1))))
	_, err = Open(t.Context(), t.TempDir(), d, Options{ReadOnly: true, Log: r.cluster.Log("a")})
	expect.ErrorIs(t, err, messages.ErrSettings)
}

// A replica that is not like the others stops, and the others go on.
func TestReplicaThatDiffers(t *testing.T) {
	d := testDescriptor(1, messages.TrustNone)
	r := openReplicas(t, 3, d, Options{})
	other := r.nodes[2]
	r.close(t, other)
	other.dir = t.TempDir()
	alone := open(t, other.dir, d, Options{})
	takeOver(t, alone, 0).append(7)
	closeStore(t, alone)
	r.open(t, other, d)

	w := takeOver(t, r.nodes[0].store, 0)
	w.append(1)
	for {
		now, changed := other.log.Leadership()
		if now.Stopped != nil {
			expect.ErrorIs(t, now.Stopped, replog.ErrDiverged)
			break
		}
		<-changed
	}
	_, err := other.store.AwaitAny(t.Context(), 1)
	expect.ErrorIs(t, err, replog.ErrDiverged)
	expect.Equal(t, 1, len(collectEvents(t, other.store.Log(replog.Local(t.Context()), 1))))
	w.append(1)
}

// A program that does not know what a newer one has written stops, and its replica is not one that differs: it would be made
// anew. A version that no program has written is a difference.
func TestReplicaOfAnOlderProgram(t *testing.T) {
	entry := func(version byte) func([]byte) []byte {
		return func(b []byte) []byte {
			b[0] = version
			return b
		}
	}
	event := func(version byte) func([]byte) []byte {
		return func([]byte) []byte {
			return (&format.Entry{Values: [][]byte{{version, 1, 2, 3, 4, 5, 6, 7}}}).Encode()
		}
	}
	for name, test := range map[string]struct {
		content   func([]byte) []byte
		want, not error
	}{
		"entry":   {entry(3), replog.ErrNewer, replog.ErrDiverged},
		"event":   {event(99), replog.ErrNewer, replog.ErrDiverged},
		"entry 0": {entry(0), replog.ErrDiverged, replog.ErrNewer},
		"event 0": {event(0), replog.ErrDiverged, replog.ErrNewer},
	} {
		t.Run(name, func(t *testing.T) {
			r := openReplicas(t, 3, testDescriptor(1, messages.TrustNone), Options{})
			takeOver(t, r.nodes[0].store, 0).append(1)
			head := r.nodes[0].store.replica.head.Load()
			_ = r.nodes[0].log.Append(t.Context(), head, test.content((&format.Entry{}).Encode()))
			for _, n := range r.nodes {
				for {
					now, changed := n.log.Leadership()
					if now.Stopped != nil {
						expect.ErrorIs(t, now.Stopped, test.want)
						expect.Equal(t, false, errors.Is(now.Stopped, test.not))
						break
					}
					<-changed
				}
				expect.Equal(t, 1, len(collectEvents(t, n.store.Log(replog.Local(t.Context()), 1))))
			}
		})
	}
}

// A partition that has failed on one node only grows there, and the others of that node go on.
func TestFailedPartitionOfAReplica(t *testing.T) {
	r := openReplicas(t, 3, testDescriptor(2, messages.TrustNone), Options{})
	damaged := r.nodes[1].store
	broken := errors.New("damaged here")
	damaged.partitions[0].fail(broken)
	a, b := takeOver(t, r.nodes[0].store, 0), takeOver(t, r.nodes[0].store, 1)
	ws := [2]messages.WSID{}
	for id := messages.WSID(1); ws[0] == 0 || ws[1] == 0; id++ {
		ws[messages.PartitionOf(id, 2)] = id
	}
	a.append(ws[0], ws[0])
	b.append(ws[1])
	r.same(t, a.s, 3)
	s := r.lead(t, 1)
	_, err := s.TakeEpoch(t.Context(), 0)
	expect.ErrorIs(t, err, broken)
	takeOver(t, s, 1).append(ws[1])
	r.same(t, s, 4)
}

// What a commit takes at most does not keep a large append out.
func TestLargeEntry(t *testing.T) {
	r, w := openThree(t)
	e := w.event(1)
	e.Body = make([]byte, replog.GoodEntry+1)
	expect.NoError(t, w.try(e))
	r.same(t, w.s, 2)
}

// log.db lets the log forget what it has.
func TestReplicaTrims(t *testing.T) {
	r, w := openThree(t)
	d := w.s.Descriptor()
	w.append(1)
	r.stop(t)
	for _, n := range r.nodes {
		n.dir = t.TempDir()
		_, err := Open(t.Context(), n.dir, d, Options{Create: true, Log: r.cluster.Log(n.id)})
		expect.ErrorIs(t, err, replog.ErrBehind)
	}
}

// Whoever judges by the head that is published has what it stands for.
func TestHeadIsWhatIsPublished(t *testing.T) {
	r, w := openThree(t)
	r.same(t, w.s, 1)
	follower := r.nodes[1].store
	p, before := &follower.partitions[0], follower.replica.head.Load()
	p.mu.RLock()
	w.append(1)
	for p.mu.TryRLock() { // until somebody waits to publish
		p.mu.RUnlock()
		runtime.Gosched()
	}
	got := follower.replica.head.Load()
	p.mu.RUnlock()
	expect.Equal(t, before, got)
	r.same(t, w.s, 2)
}

// Whose commit meets entries of others that are not published yet is told that the log has moved: that is no damage.
func TestMovedIsNoConflict(t *testing.T) {
	r, w := openThree(t)
	r.same(t, w.s, 1)
	late := r.nodes[1].store
	e := w.event(1)
	value := format.EncodeEvent(&e)
	format.SealEvent(value, 2)
	p, before := &late.partitions[0], late.replica.head.Load()
	p.mu.RLock()
	w.append(1)
	for late.log.Taken() == before {
		runtime.Gosched()
	}
	err := late.log.AwaitEntry(t.Context(), before+1)
	if err == nil {
		err = late.replica.propose(before, &format.Entry{Values: [][]byte{value}})
	}
	p.mu.RUnlock()
	expect.ErrorIs(t, err, replog.ErrMoved)
	if errors.Is(err, storage.ErrConflict) {
		t.Errorf("got %v", err)
	}
	r.same(t, w.s, 2)
	takeOver(t, r.lead(t, 1), 0).append(1)
}

// A node that does not lead and has no space for what it takes stops, and says so. Opened again, it has all that it missed.
func TestReplicaWithoutSpace(t *testing.T) {
	for name, full := range map[string]func(*Store) *faulty.Point{
		"log.db":   func(s *Store) *faulty.Point { return &faulty.CommitsOf(s.log.File).Before },
		"state.db": func(s *Store) *faulty.Point { return &faulty.CommitsOf(s.state).Before },
	} {
		t.Run(name, func(t *testing.T) {
			const limit = 32
			d := testDescriptor(1, messages.TrustNone)
			r := openReplicas(t, 3, d, Options{TailEvents: limit})
			w := takeOver(t, r.nodes[0].store, 0)
			stuck := r.nodes[2]
			full(stuck.store).Fail(errNoSpace)
			count := 0
			for now, _ := stuck.log.Leadership(); now.Stopped == nil; now, _ = stuck.log.Leadership() {
				w.append(1)
				w.flush()
				count++
				if count > 8*limit {
					t.Fatal("it goes on for ever")
				}
				for n := stuck.store.replica.head.Load(); n < w.s.replica.head.Load(); n = stuck.store.replica.head.Load() {
					if now, _ := stuck.log.Leadership(); now.Stopped != nil {
						break
					}
					runtime.Gosched()
				}
				if name == "log.db" {
					_ = stuck.store.log.AwaitEntry(t.Context(), w.s.replica.head.Load())
				}
			}
			now, _ := stuck.log.Leadership()
			expect.ErrorIs(t, now.Stopped, storage.ErrFull)
			// A partition whose write was cut short waits for no other answer.
			_, err := stuck.store.TakeEpoch(t.Context(), 0)
			expect.ErrorIs(t, err, storage.ErrFull)
			expect.ErrorIs(t, err, replog.ErrNotOwner)
			if got := stuck.store.partitions[0].tail.Len(); got > limit+1 {
				t.Errorf("it has %d events in memory", got)
			}
			r.close(t, stuck)
			r.open(t, stuck, d)
			r.same(t, w.s, count)
		})
	}
}

// A node that does not lead tries to flush when its tails have grown, not for each entry, if that is refused or leaves what
// nobody can flush.
func TestReplicaTriesWhenTailsHaveGrown(t *testing.T) {
	const limit = 16 * growPart
	for name, test := range map[string]struct {
		refusal  error
		unwanted int64 // what partitions that have failed take
	}{
		"a full state.db":  {errNoSpace, 0},
		"failed partition": {nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := openReplicas(t, 3, testDescriptor(1, messages.TrustNone), Options{TailEvents: limit})
			w := takeOver(t, r.nodes[0].store, 0)
			s := r.nodes[2].store
			s.tails.Count(0, tail.Size{Bytes: test.unwanted * s.shares.tail / 2})
			var tries atomic.Int32
			faulty.CommitsOf(s.state).Before.Set(func() error {
				tries.Add(1)
				return test.refusal
			})
			for n := range limit - 1 {
				w.append(1)
				if untilHead(t, s, w.s); n%16 == 0 {
					w.flush()
				}
			}
			// Two may try for the same growth: whoever applies entries, and whoever flushes without a caller.
			if got := tries.Load(); got == 0 || got > 2*growPart {
				t.Errorf("got %d tries for %d entries, want at most %d", got, limit, 2*growPart)
			}
		})
	}
}
