package bolt

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/dedup"
	"github.com/partita-go/partita/storage/bolt/internal/faulty"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/queue"
	"github.com/partita-go/partita/storage/bolt/internal/tail"
)

// named is the writer's next event with an id.
func (w *writer) named(ws messages.WSID, id messages.DedupID) messages.Event {
	e := w.event(ws)
	e.DedupID = id
	return e
}

// appendNamed appends an event to a workspace for each id.
func (w *writer) appendNamed(ws messages.WSID, ids ...messages.DedupID) {
	w.t.Helper()
	for _, id := range ids {
		if err := w.try(w.named(ws, id)); err != nil {
			w.t.Fatal(err)
		}
	}
}

func checkFind(t testing.TB, s *Store, ws messages.WSID, id messages.DedupID, want messages.WLogOffset) {
	t.Helper()
	if got, err := s.Find(t.Context(), ws, id); err != nil || got != want {
		t.Fatalf("find %v in workspace %d: got %d, %v, want %d", id, ws, got, err, want)
	}
}

// runsOf reads the list of runs.
func runsOf(t testing.TB, s *Store) (runs dedup.Runs) {
	t.Helper()
	err := s.state.View(func(tx *bbolt.Tx) (err error) {
		runs, err = dedup.LoadRuns(tx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

// putEntries projects entries as one flush.
func putEntries(t testing.TB, s *Store, entries ...dedup.Entry) {
	t.Helper()
	err := s.state.Update(func(tx *bbolt.Tx) error {
		return (&projection{s: s, flushTables: &flushTables{}}).putEntries(tx, slices.Clone(entries))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func candidatesOf(t testing.TB, s *Store, hash uint64) (lsns []messages.LSN) {
	t.Helper()
	err := s.state.View(func(tx *bbolt.Tx) error {
		r, err := dedup.NewReader(tx)
		if err == nil {
			lsns, err = r.Candidates(nil, hash)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lsns)
	return lsns
}

// Two ids with one hash are told apart, by Find and by Append.
func TestDedupHashesMeet(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	id, other := messages.DedupID{1}, messages.DedupID{2}
	w.appendNamed(5, id, messages.DedupID{3})
	w.append(6)
	w.flush()
	key := format.DedupKey{Workspace: 5, ID: other}
	putEntries(t, s, dedup.Entry{Hash: key.Hash(s.files.ID), LSN: 1}, dedup.Entry{Hash: key.Hash(s.files.ID), LSN: 3})
	checkFind(t, s, 5, other, 0)
	w.appendNamed(5, other)
	w.flush()
	checkFind(t, s, 5, other, 3)
	checkFind(t, s, 5, id, 1)
	if got := candidatesOf(t, s, key.Hash(s.files.ID)); !slices.Equal(got, []messages.LSN{1, 3, 4}) {
		t.Fatalf("got %v", got)
	}
	if err := w.try(w.named(5, other)); !errors.Is(err, storage.ErrDuplicate) {
		t.Fatalf("got %v", err)
	}
}

// Whatever bit of the projection is damaged: whoever looks an id up gets an error or the
// right answer, and flushes go on.
func TestDedupDamage(t *testing.T) {
	t.Parallel()
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	s := open(t, dir, d, Options{})
	w := takeOver(t, s, 0)
	var ids []messages.DedupID
	for i := range byte(30) {
		ids = append(ids, messages.DedupID{i + 1})
		w.appendNamed(3, ids[i])
		if i%5 == 4 {
			w.flush()
		}
	}
	var keys [][]byte
	err := s.state.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(format.BucketDedup).ForEach(func(k, _ []byte) error {
			keys = append(keys, bytes.Clone(k))
			return nil
		})
	})
	if err != nil || len(keys) < 2 {
		t.Fatalf("got %d blocks, %v", len(keys), err)
	}
	errs, bits := 0, 0
	look := func(what string, at int) {
		for i, id := range ids {
			got, err := s.Find(t.Context(), 3, id)
			if err == nil && got != messages.WLogOffset(i+1) || err != nil && !errors.Is(err, storage.ErrDamaged) {
				t.Fatalf("%s, bit %d: id %d: got %d, %v", what, at, i+1, got, err)
			}
			if err != nil {
				errs++
			}
			if again := w.try(w.named(3, id)); !errors.Is(again, storage.ErrDuplicate) && !errors.Is(again, storage.ErrDamaged) {
				t.Fatalf("%s, bit %d: id %d again: got %v", what, at, i+1, again)
			}
		}
		bits++
	}
	for _, key := range keys {
		value := get(t, s.state, format.BucketDedup, key)
		for at := 0; at < 8*len(value); at += 13 {
			spoilt := bytes.Clone(value)
			spoilt[at/8] ^= 1 << (at % 8)
			put(t, s.state, format.BucketDedup, key, spoilt)
			look("value", at)
		}
		for at := 0; at < 8*len(key); at += 3 {
			spoilt := bytes.Clone(key)
			spoilt[at/8] ^= 1 << (at % 8)
			remove(t, s.state, format.BucketDedup, key)
			put(t, s.state, format.BucketDedup, spoilt, value)
			look("key", at)
			remove(t, s.state, format.BucketDedup, spoilt)
		}
		look("block missing", 0)
		put(t, s.state, format.BucketDedup, key, value)
	}
	list := get(t, s.state, format.BucketHeader, format.KeyDedup)
	for at := 0; at < 8*len(list); at += 3 {
		spoilt := bytes.Clone(list)
		spoilt[at/8] ^= 1 << (at % 8)
		put(t, s.state, format.BucketHeader, format.KeyDedup, spoilt)
		look("list", at)
	}
	remove(t, s.state, format.BucketHeader, format.KeyDedup)
	look("list missing", 0)
	if errs < bits {
		t.Fatalf("got %d errors with %d bits", errs, bits)
	}
}

func remove(t testing.TB, f *boltfile.File, bucket, key []byte) {
	t.Helper()
	if err := f.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Delete(key) }); err != nil {
		t.Fatal(err)
	}
}

// A damaged block does not stop flushes: the merge that meets it waits. A damaged
// list refuses the flushes with ids, and those only.
func TestFlushWithDamagedDedup(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(3, messages.TrustNone), Options{})
	w, other, busy := takeOver(t, s, 0), takeOver(t, s, 1), takeOver(t, s, 2)
	busy.append(2)
	w.appendNamed(3, messages.DedupID{1})
	w.flush()
	key := dedup.AppendKey(nil, 1, dedup.LastHash)
	value := get(t, s.state, format.BucketDedup, key)
	value[len(value)-1] ^= 1
	put(t, s.state, format.BucketDedup, key, value)
	lost := format.DedupKey{Workspace: 3, ID: messages.DedupID{1}}
	half := 1 - lost.Hash(s.files.ID)>>63 // the slot that is whole
	for i, id := range idsInHalf(s, 3, half, 8) {
		w.appendNamed(3, id)
		w.flush()
		checkFind(t, s, 3, id, messages.WLogOffset(i)+2)
	}
	if _, err := s.Find(t.Context(), 3, messages.DedupID{1}); !errors.Is(err, storage.ErrDamaged) {
		t.Fatalf("got %v", err)
	}
	if got := s.Stats().StuckMerges; got != 1 {
		t.Fatalf("got %d merges that are stuck, want 1", got)
	}
	list := get(t, s.state, format.BucketHeader, format.KeyDedup)
	w.append(3)
	other.append(1)
	e := other.named(1, idsInHalf(s, 1, half, 1)[0])
	if err := other.try(e); err != nil {
		t.Fatal(err)
	}
	list[0] ^= 1
	put(t, s.state, format.BucketHeader, format.KeyDedup, list)
	errs := inOneFlush(t, s, busy.pending(), w.pending(), other.pending())
	if errs[1] != nil || !errors.Is(errs[2], storage.ErrDamaged) {
		t.Fatalf("got %v", errs)
	}
	list[0] ^= 1
	put(t, s.state, format.BucketHeader, format.KeyDedup, list)
	other.flush()
	checkFind(t, s, 1, e.DedupID, 2)
}

// spoilSlot damages the slot of a run that answers for a hash, or mends it again. It
// returns the first and the last hash of the slot.
func spoilSlot(t testing.TB, s *Store, serial, hash uint64) (first, last uint64) {
	t.Helper()
	var key []byte
	err := s.state.View(func(tx *bbolt.Tx) error {
		b, err := dedup.SeekBlock(tx.Bucket(format.BucketDedup).Cursor(), serial, hash)
		key = dedup.AppendKey(nil, serial, b.Last)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	value := get(t, s.state, format.BucketDedup, key)
	b, err := dedup.DecodeBlock(key, value)
	if err != nil {
		t.Fatal(err)
	}
	slot := b.SlotOf(hash)
	value[dedup.HeadLen+4*b.Slots+4*slot] ^= 1
	put(t, s.state, format.BucketDedup, key, value)
	width := (b.Last-b.First)/uint64(b.Slots) + 1
	first = b.First + uint64(slot)*width
	return first, min(b.Last, first+width-1)
}

// A merge that meets damage on its way holds up no other of its size. It is not tried
// again before the store is opened anew: a flush does not pay for old damage.
func TestDamageInALongMerge(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	s := open(t, dir, d, Options{})
	random := rand.New(rand.NewPCG(5, 6))
	lsn := messages.LSN(0)
	want := make(map[uint64]messages.LSN)
	fill := func(n int) dedup.Runs {
		entries := make([]dedup.Entry, n)
		for i := range entries {
			lsn++
			entries[i] = dedup.Entry{Hash: random.Uint64(), LSN: lsn}
		}
		want[entries[0].Hash] = lsn - messages.LSN(n) + 1
		putEntries(t, s, entries...)
		return runsOf(t, s)
	}
	// Three runs that fill the next one over many flushes.
	var runs dedup.Runs
	for range dedup.FanIn * dedup.FanIn {
		runs = fill(8000)
	}
	if len(runs.All) != dedup.FanIn {
		t.Fatalf("got %+v", runs.All)
	}
	sources := slices.Clone(runs.All)
	for runs = fill(1); runs.Run(sources[1].Serial).Into == 0; runs = fill(1) {
	}
	long := runs.Run(sources[1].Serial).Into
	if through := runs.Run(long).Through; through == 0 || through == dedup.LastHash {
		t.Fatalf("got %x", through)
	}
	const middle = 1 << 63
	first, last := spoilSlot(t, s, sources[1].Serial, middle)
	for range 4 * dedup.FanIn * dedup.FanIn {
		runs = fill(8000)
		others := make(map[int]int)
		for _, r := range runs.All {
			if r.Into != long {
				others[r.Class()]++
			}
			if n := others[r.Class()]; n > 2*dedup.FanIn {
				t.Fatalf("got %d runs of a class: %+v", n, runs.All)
			}
		}
	}
	through := runs.Run(long).Through
	if got := s.Stats().StuckMerges; got != 1 || through >= first {
		t.Fatalf("got %d merges that are stuck, the first one at %x, want it before %x", got, through, first)
	}
	check := func() {
		t.Helper()
		for hash, lsn := range want {
			if hash >= first && hash <= last {
				continue
			}
			if got := candidatesOf(t, s, hash); !slices.Equal(got, []messages.LSN{lsn}) {
				t.Fatalf("hash %x: got %v, want %v", hash, got, lsn)
			}
		}
	}
	check()
	spoilSlot(t, s, sources[1].Serial, middle)
	if runs = fill(1); runs.Run(long).Through != through {
		t.Fatalf("the merge was tried again: at %x, was at %x", runs.Run(long).Through, through)
	}
	closeStore(t, s)
	s = open(t, dir, d, Options{})
	for range 30 {
		runs = fill(1)
	}
	if got := s.Stats().StuckMerges; got != 0 || runs.Run(sources[1].Serial) != nil {
		t.Fatalf("mended: got %d merges that are stuck, runs %+v", got, runs.All)
	}
	first, last = 1, 0
	check()
}

// inOneFlush keeps the flusher busy with the first flush until the others wait, and
// returns the outcomes.
func inOneFlush(t *testing.T, s *Store, flushes ...storage.Flush) []error {
	t.Helper()
	entered, proceed := faulty.CommitsOf(s.state).Before.Hold()
	errs := make([]error, len(flushes))
	var wait sync.WaitGroup
	for i, f := range flushes {
		wait.Go(func() { errs[i] = s.Flush(t.Context(), f) })
		if i == 0 {
			<-entered
		}
	}
	for len(s.flushes) < len(flushes)-1 {
		runtime.Gosched()
	}
	close(proceed)
	wait.Wait()
	return errs
}

// idsInHalf returns n ids that lie in a half of the hashes.
func idsInHalf(s *Store, ws messages.WSID, half uint64, n int) (ids []messages.DedupID) {
	k := format.DedupKey{Workspace: ws, ID: messages.DedupID{15: 1}}
	for ; len(ids) < n; k.ID[1]++ {
		if k.Hash(s.files.ID)>>63 == half {
			ids = append(ids, k.ID)
		}
	}
	return ids
}

// The event that has an id is damaged: nobody can know whether it has it.
func TestDedupDamagedEvent(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.appendNamed(2, messages.DedupID{1})
	w.append(2)
	w.flush()
	damageLog(t, s, 1)
	if _, err := s.Find(t.Context(), 2, messages.DedupID{1}); !errors.Is(err, storage.ErrDamaged) {
		t.Fatalf("got %v", err)
	}
	if err := w.try(w.named(2, messages.DedupID{1})); !errors.Is(err, storage.ErrDamaged) {
		t.Fatalf("got %v", err)
	}
	checkFind(t, s, 2, messages.DedupID{2}, 0)
	w.appendNamed(2, messages.DedupID{2})
}

// A partition that has failed cannot say that an id is not there.
func TestFindInFailedPartition(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	s := open(t, dir, d, Options{})
	w := takeOver(t, s, 0)
	w.appendNamed(2, messages.DedupID{1}, messages.DedupID{2}, messages.DedupID{3})
	damageLog(t, s, 2)
	closeStore(t, s)
	s = open(t, dir, d, Options{})
	checkFind(t, s, 2, messages.DedupID{1}, 1)
	if _, err := s.Find(t.Context(), 2, messages.DedupID{3}); !damagedAt(err, 0, 2) {
		t.Fatalf("got %v", err)
	}
}

// A batch that is refused for its ids leaves no trace on those in the same commit, of
// its own partition or of another.
func TestDuplicateInTheSameCommit(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(2, messages.TrustAll), Options{})
	w, other := takeOver(t, s, 0), takeOver(t, s, 1)
	w.appendNamed(2, messages.DedupID{1})
	w.flush()
	fresh := w.named(2, messages.DedupID{2})
	again := w.named(2, messages.DedupID{1})
	again.PLogOffset, again.WLogOffset, again.RegisteredAt = again.PLogOffset+1, again.WLogOffset+1, again.RegisteredAt+1
	behind := again
	behind.DedupID = messages.DedupID{2}
	third := behind
	third.DedupID = messages.DedupID{3}
	batches := []storage.Batch{
		{Partition: 0, Epoch: w.epoch, Events: []messages.Event{fresh, again}}, // leaves id 2 free
		{Partition: 1, Epoch: other.epoch, Events: []messages.Event{other.named(1, messages.DedupID{1})}},
		{Partition: 0, Epoch: w.epoch, Events: []messages.Event{fresh}},
		{Partition: 0, Epoch: w.epoch, Events: []messages.Event{behind}}, // id 2 is staged
		{Partition: 0, Epoch: w.epoch, Events: []messages.Event{third}},
	}
	wants := []error{storage.ErrDuplicate, nil, nil, storage.ErrDuplicate, nil}
	before := s.Stats().Commits
	for i, err := range inOneCommit(t, s, batches) {
		if !errors.Is(err, wants[i]) {
			t.Fatalf("batch %d: got %v, want %v", i, err, wants[i])
		}
	}
	if got := s.Stats().Commits - before; got != 1 {
		t.Fatalf("got %d commits, want 1", got)
	}
	checkFind(t, s, 2, messages.DedupID{2}, 2)
	checkFind(t, s, 2, messages.DedupID{3}, 3)
	checkFind(t, s, 1, messages.DedupID{1}, 1)
}

// inOneCommit hands batches over, in order, while the committer is kept busy by one
// empty batch, and returns their outcomes.
func inOneCommit(t *testing.T, s *Store, batches []storage.Batch) []error {
	t.Helper()
	requests := make([]*writeRequest, len(batches))
	for i := range batches {
		requests[i] = requestOf(t, s, &batches[i])
	}
	// The committer is kept busy until all requests wait.
	entered, proceed := make(chan error), make(chan struct{})
	busy := requestOf(t, s, &storage.Batch{Partition: batches[0].Partition, Epoch: batches[0].Epoch})
	busy.Then = func(err error) {
		entered <- err
		<-proceed
	}
	s.writes <- busy
	if err := <-entered; err != nil {
		t.Fatal(err)
	}
	for _, r := range requests {
		s.writes <- r
	}
	close(proceed)
	errs := make([]error, len(requests))
	for i, r := range requests {
		errs[i] = r.Await(t.Context(), s.committed)
	}
	return errs
}

// A refusal that says that an id is in the log waits until it is. What is true
// without the commit is said all the same.
func TestDuplicateOfWhatIsNotDurable(t *testing.T) {
	for name, c := range map[string]struct{ failure, want, found error }{
		"durable": {nil, storage.ErrDuplicate, nil},
		"refused": {syscall.ENOSPC, storage.ErrFull, nil},
		"unknown": {syscall.EIO, messages.ErrOutcomeUnknown, storage.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			dir, d := t.TempDir(), testDescriptor(1, messages.TrustAll)
			s := open(t, dir, d, Options{})
			w := takeOver(t, s, 0)
			w.appendNamed(2, messages.DedupID{1})
			closeStore(t, s)
			s = open(t, dir, d, Options{}) // log.wal is made by the commit that may fail
			diskOf(s).Growth.Fail(c.failure)
			fresh := w.named(2, messages.DedupID{2})
			behind := func(id messages.DedupID, by int) messages.Event {
				e := fresh
				e.PLogOffset, e.WLogOffset, e.DedupID = e.PLogOffset+messages.PLogOffset(by), e.WLogOffset+messages.WLogOffset(by), id
				return e
			}
			batches := [][]messages.Event{
				{fresh},
				{behind(messages.DedupID{2}, 1)}, // staged
				{behind(messages.DedupID{1}, 1)}, // in the log
				{behind(messages.DedupID{3}, 1), behind(messages.DedupID{3}, 2)}, // twice in the batch
				{behind(messages.DedupID{1}, 1), behind(messages.DedupID{2}, 2)}, // one in the log, one staged
			}
			wants := []error{c.failure, c.want, storage.ErrDuplicate, storage.ErrDuplicate, c.want}
			if c.failure != nil {
				wants[0] = c.want
			}
			var handed []storage.Batch
			for _, events := range batches {
				handed = append(handed, storage.Batch{Partition: 0, Epoch: w.epoch, Events: events})
			}
			for i, err := range inOneCommit(t, s, handed) {
				if !errors.Is(err, wants[i]) || (wants[i] == nil) != (err == nil) {
					t.Errorf("batch %d: got %v, want %v", i, err, wants[i])
				}
			}
			want := messages.WLogOffset(0)
			if c.failure == nil {
				want = 2
			}
			if got, err := s.Find(t.Context(), 2, messages.DedupID{2}); got != want || !errors.Is(err, c.found) {
				t.Errorf("got %d, %v, want %d, %v", got, err, want, c.found)
			}
		})
	}
}

// requestOf makes the request that Append hands over.
func requestOf(t *testing.T, s *Store, b *storage.Batch) *writeRequest {
	t.Helper()
	r := prepared(t, s, b)
	s.lookAhead(r)
	return r
}

// prepared makes a request that was not looked at.
func prepared(t *testing.T, s *Store, b *storage.Batch) *writeRequest {
	t.Helper()
	r := &writeRequest{Ticket: queue.NewTicket(), partition: &s.partitions[b.Partition], epoch: b.Epoch, events: make([]newEvent, len(b.Events))}
	c := batchCheck{Batch: b}
	for i := range b.Events {
		if err := r.events[i].prepare(s.schema, i, &c, new(batchCopies)); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// An id that came, and left the tail, between its lookup and its append is found all
// the same.
func TestDuplicateFlushedSinceTheLookup(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustAll), Options{})
	w := takeOver(t, s, 0)
	id := messages.DedupID{1}
	b := storage.Batch{Partition: 0, Epoch: w.epoch, Events: []messages.Event{w.named(2, id)}}
	early := requestOf(t, s, &b)
	w.appendNamed(2, id)
	w.flush()
	late := w.event(2)
	early.events[0].offset, early.events[0].wlog, early.events[0].at = late.PLogOffset, late.WLogOffset, late.RegisteredAt
	s.writes <- early
	if err := early.Await(t.Context(), s.committed); !errors.Is(err, storage.ErrDuplicate) {
		t.Fatalf("got %v", err)
	}
}

// The committer does not look up again what was looked up under the same checkpoint.
func TestLookupsAreMadeAhead(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustAll), Options{})
	w := takeOver(t, s, 0)
	w.appendNamed(2, messages.DedupID{1})
	w.flush()
	b := storage.Batch{Partition: 0, Epoch: w.epoch, Events: []messages.Event{w.named(2, messages.DedupID{2})}}
	r := requestOf(t, s, &b)
	remove(t, s.state, format.BucketHeader, format.KeyDedup) // a lookup fails from now on
	s.writes <- r
	if err := r.Await(t.Context(), s.committed); err != nil {
		t.Fatal(err)
	}
}

// An id of a commit that wrote nothing is free.
func TestIDOfARefusedCommit(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	e := w.named(2, messages.DedupID{1})
	disk := diskOf(s)
	disk.Growth.Fail(syscall.ENOSPC)
	if err := w.try(e); !errors.Is(err, storage.ErrFull) {
		t.Fatalf("got %v", err)
	}
	disk.Growth.Clear()
	checkFind(t, s, 2, e.DedupID, 0)
	if err := w.try(e); err != nil {
		t.Fatal(err)
	}
}

// From its acknowledgement on an id is found and refused, while flushes move it from
// the tail to state.db.
func TestDedupWhileFlushing(t *testing.T) {
	const events = 400
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	flushes := make(chan storage.Flush, 1)
	appended := make(chan messages.WLogOffset, events)
	id := func(o messages.WLogOffset) messages.DedupID { return messages.DedupID{byte(o), byte(o >> 8), 1} }
	var wait sync.WaitGroup
	wait.Go(func() {
		for f := range flushes {
			if err := s.Flush(t.Context(), f); err != nil {
				t.Error(err)
			}
		}
	})
	wait.Go(func() {
		last := messages.WLogOffset(0)
		for o := range appended {
			for _, o := range []messages.WLogOffset{last, o, o / 2} {
				if got, err := s.Find(t.Context(), 3, id(o)); o != 0 && (err != nil || got != o) {
					t.Errorf("find %d: got %d, %v", o, got, err)
					return
				}
			}
			last = o
		}
	})
	for i := range messages.WLogOffset(events) {
		w.appendNamed(3, id(i+1))
		appended <- i + 1
		if err := w.try(w.named(3, id(i/2+1))); !errors.Is(err, storage.ErrDuplicate) {
			t.Errorf("id %d again: got %v", i/2+1, err)
		}
		if i%3 == 2 {
			select {
			case flushes <- w.pending():
				w.flushed = w.next
				clear(w.changed)
			default:
			}
		}
	}
	close(flushes)
	close(appended)
	wait.Wait()
}

// What ids take in the tail is counted, and given back.
func TestTailBytesOfIDs(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.append(3)
	without := s.Stats().TailBytes
	w.appendNamed(3, messages.DedupID{1})
	if got := s.Stats().TailBytes; got != 2*without+tail.IDBytes || got != s.partitions[0].tail.Size.Bytes {
		t.Fatalf("got %d bytes, want %d", got, 2*without+tail.IDBytes)
	}
	first := w.pending()
	w.appendNamed(3, messages.DedupID{2})
	w.append(3)
	if err := s.Flush(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if got := s.Stats().TailBytes; got != 2*without+tail.IDBytes || len(s.partitions[0].tail.ByID) != 1 {
		t.Fatalf("half flushed: got %d bytes, want %d", got, 2*without+tail.IDBytes)
	}
	checkFind(t, s, 3, messages.DedupID{1}, 2)
	checkFind(t, s, 3, messages.DedupID{2}, 3)
}
