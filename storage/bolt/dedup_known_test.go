package bolt

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/dedup"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/faulty"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/storagetest"
)

// awaitKnown waits until the filter knows which ids state.db has not.
func awaitKnown(t *testing.T, s *Store) {
	t.Helper()
	end := time.Now().Add(time.Minute)
	for hash := uint64(0); !s.known.Absent(hash); hash += 1 << 55 {
		if runtime.Gosched(); time.Now().After(end) {
			t.Fatal("the filter knows nothing")
		}
	}
}

// unknownID returns an id of which the filter is sure, as of now, that state.db does not have it.
func unknownID(t *testing.T, s *Store, ws messages.WSID) messages.DedupID {
	t.Helper()
	for i := range byte(100) {
		k := format.DedupKey{Workspace: ws, ID: messages.DedupID{100 + i, 7}}
		if s.known.Absent(k.Hash(s.files.ID)) {
			return k.ID
		}
	}
	t.Fatal("the filter is not sure of any id")
	return messages.DedupID{}
}

// TestSubmitTakesNewIDs: a batch with an id is taken at once if the filter knows that state.db does not have it, and
// not if state.db has it. What the tail has, or what is on its way there, is found by the committer.
func TestSubmitTakesNewIDs(t *testing.T) {
	for name, c := range map[string]struct {
		id    byte // 0 for a new one
		taken bool
		want  error
	}{
		"new":      {0, true, nil},
		"in state": {1, false, storage.ErrDuplicate},
		"in tail":  {2, true, storage.ErrDuplicate},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir(), storagetest.Descriptor(messages.TrustAll), Options{})
			p := storagetest.Take(t, s, 0)
			p.Append(t, storagetest.Spec{Workspace: 3, DedupID: messages.DedupID{1}})
			p.FlushAll(t)
			awaitKnown(t, s)
			p.Append(t, storagetest.Spec{Workspace: 3, DedupID: messages.DedupID{2}})
			id := messages.DedupID{c.id}
			if c.id == 0 {
				id = unknownID(t, s, 3)
			}
			answer := make(chan error, 1)
			rest := s.Submit(p.Build(storagetest.Spec{Workspace: 3, DedupID: id}), func(err error) { answer <- err })
			if got := rest == nil; got != c.taken {
				t.Fatalf("got taken %t, want %t", got, c.taken)
			}
			if rest != nil {
				expect.NoError(t, rest(t.Context()))
			}
			expect.ErrorIs(t, <-answer, c.want)
		})
	}
}

// TestIDFlushedSinceItWasUnknown: an id that was not in state.db when a batch with it was taken, and came there, and left
// the tail, before the committer had its turn.
func TestIDFlushedSinceItWasUnknown(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustAll), Options{})
	w := takeOver(t, s, 0)
	w.append(2)
	w.flush()
	awaitKnown(t, s)
	id := unknownID(t, s, 2)
	b := storage.Batch{Partition: 0, Epoch: w.epoch, Events: []messages.Event{w.named(2, id)}}
	early := prepared(t, s, &b)
	if s.needsLookup(early) {
		t.Fatal("the filter is not sure any more")
	}
	w.appendNamed(2, id)
	w.flush()
	late := w.event(2)
	early.events[0].offset, early.events[0].wlog, early.events[0].at = late.PLogOffset, late.WLogOffset, late.RegisteredAt
	s.writes <- early
	expect.ErrorIs(t, early.Await(t.Context(), s.committed), storage.ErrDuplicate)
}

// TestIDsAreKnownAfterACrash: of ids in state.db, in a flush that failed, and in the tail, each is found, and refused if it
// comes again: while the filter is filled, and then.
func TestIDsAreKnownAfterACrash(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	s := open(t, dir, d, Options{})
	w := takeOver(t, s, 0)
	var ids []messages.DedupID
	name := func(n int) {
		for range n {
			id := messages.DedupID{15: 1}
			binary.BigEndian.PutUint64(id[:], uint64(len(ids)))
			ids = append(ids, id)
			w.appendNamed(3, id)
		}
	}
	check := func() {
		t.Helper()
		for i, id := range ids {
			checkFind(t, s, 3, id, messages.WLogOffset(i+1))
			if err := w.try(w.named(3, id)); !errors.Is(err, storage.ErrDuplicate) {
				t.Fatalf("id %d again: got %v", i, err)
			}
		}
	}
	for range 3 {
		name(20)
		w.flush()
	}
	awaitKnown(t, s)
	name(20)
	commits := faulty.CommitsOf(s.state)
	commits.Before.Fail(syscall.ENOSPC)
	if err := s.Flush(t.Context(), w.pending()); !errors.Is(err, storage.ErrFull) {
		t.Fatalf("got %v", err)
	}
	commits.Before.Clear()
	check()
	w.flush()
	check()
	name(20)
	closeStore(t, s)
	s = open(t, dir, d, Options{})
	w = takeOver(t, s, 0)
	check()
	awaitKnown(t, s)
	check()
	name(20)
	w.flush()
	check()
}

// TestIDsOfARebuiltStore: the filter of a store whose state.db is made anew from the log has its ids, too.
func TestIDsOfARebuiltStore(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	s := open(t, dir, d, Options{})
	w := takeOver(t, s, 0)
	w.appendNamed(3, messages.DedupID{1}, messages.DedupID{2})
	w.flush()
	closeStore(t, s)
	expect.NoError(t, os.Remove(filepath.Join(dir, format.StateFileName)))
	s = open(t, dir, d, Options{})
	awaitKnown(t, s)
	checkFind(t, s, 3, messages.DedupID{1}, 1)
	checkFind(t, s, 3, messages.DedupID{2}, 2)
}

// TestDamagedIDsAreToldAfterAnOpen: damage that an open finds is told to whoever needs what lies there, as if there were
// no filter. Damage of what the filter has read before hides nothing: an id that is there is refused, and one of which
// it is known that it is not is taken.
func TestDamagedIDsAreToldAfterAnOpen(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	s := open(t, dir, d, Options{})
	w := takeOver(t, s, 0)
	first := messages.DedupID{1}
	w.appendNamed(3, first)
	w.flush()
	awaitKnown(t, s)
	hash := (&format.DedupKey{Workspace: 3, ID: first}).Hash(s.files.ID)
	others := idsInHalf(s, 3, hash>>63, 2)
	spoilSlot(t, s, 1, hash)
	w.mustLose(w.batchOf(3, first), 2)
	w.appendNamed(3, others[0])
	closeStore(t, s)
	s = open(t, dir, d, Options{})
	w = takeOver(t, s, 0)
	w.mustLose(w.batchOf(3, first), 3)
	s.known.Await()
	w.mustLose(w.batchOf(3, others[1]), 3)
}

// TestTooManyIDs: a store with more ids than the filter has room for looks all of them up, and finds them.
func TestTooManyIDs(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{Memory: 1 << 20})
	w := takeOver(t, s, 0)
	w.appendNamed(3, messages.DedupID{1})
	w.flush()
	awaitKnown(t, s)
	random := rand.New(rand.NewPCG(1, 2))
	entries := make([]dedup.Entry, 200_000)
	for i := range entries {
		entries[i] = dedup.Entry{Hash: random.Uint64(), LSN: 1}
	}
	putEntries(t, s, entries...)
	for i := range uint64(64) {
		if s.known.Absent(i << 58) {
			t.Fatal("it has no room for them")
		}
	}
	checkFind(t, s, 3, messages.DedupID{1}, 1)
	w.appendNamed(3, messages.DedupID{2})
	if err := w.try(w.named(3, messages.DedupID{1})); !errors.Is(err, storage.ErrDuplicate) {
		t.Fatalf("got %v", err)
	}
}
