package bolt

import (
	"errors"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// settled returns log.db when it has all events.
func settled(t testing.TB, s *Store) *boltfile.File {
	t.Helper()
	if err := s.log.AwaitApplied(t.Context(), messages.LSN(s.lastLSN.Load())); err != nil {
		t.Fatal(err)
	}
	return s.log.File
}

// damageLog flips a bit in the middle of an entry of the log.
func damageLog(t *testing.T, s *Store, lsns ...messages.LSN) {
	t.Helper()
	for _, lsn := range lsns {
		key := format.AppendLSNKey(nil, lsn)
		value := get(t, settled(t, s), format.BucketLog, key)
		value[len(value)/2] ^= 4
		put(t, settled(t, s), format.BucketLog, key, value)
	}
}

func removeLog(t *testing.T, s *Store, lsn messages.LSN) {
	t.Helper()
	if err := settled(t, s).Update(func(tx *bbolt.Tx) error { return tx.Bucket(format.BucketLog).Delete(format.AppendLSNKey(nil, lsn)) }); err != nil {
		t.Fatal(err)
	}
}

// interleaved makes a store with events 1 to 3n of partitions 0, 1, 2 in turn,
// and with partition 3 empty.
func interleaved(t *testing.T, n int) (string, messages.Descriptor, *Store) {
	t.Helper()
	dir, d := t.TempDir(), testDescriptor(4, messages.TrustNone)
	s := open(t, dir, d, Options{})
	var writers []*writer
	for id := range messages.PartitionID(3) {
		writers = append(writers, takeOver(t, s, id))
	}
	for range n {
		for i, w := range writers {
			w.append(messages.WSID(i))
		}
	}
	return dir, d, s
}

func damagedAt(err error, p messages.PartitionID, o messages.PLogOffset) bool {
	var damage *storage.DamagedError
	return errors.As(err, &damage) && damage.Partition == p && damage.PLogOffset == o && errors.Is(err, storage.ErrDamaged)
}

// checkFailed makes sure that exactly the partitions listed have failed, at the
// offsets given, and that the others work.
func checkFailed(t *testing.T, s *Store, failed map[messages.PartitionID]messages.PLogOffset) {
	t.Helper()
	for id := range messages.PartitionID(s.files.Descriptor.Partitions) {
		o, bad := failed[id]
		if !bad {
			w := takeOver(t, s, id)
			w.append(messages.WSID(id))
			w.flush()
			continue
		}
		_, err := s.TakeEpoch(t.Context(), id)
		_, regErr := s.Register(t.Context(), id)
		_, tailErr := s.Tail(t.Context(), id, 1, 1)
		for what, err := range map[string]error{
			"TakeEpoch": err, "Register": regErr, "Tail": tailErr,
			"Append": s.Append(t.Context(), storage.Batch{Partition: id, Epoch: 1}),
			"Flush":  s.Flush(t.Context(), storage.Flush{Partition: id, Epoch: 1, Expected: 1, Checkpoint: 2}),
		} {
			if !damagedAt(err, id, o) {
				t.Fatalf("partition %d: %s: got %v, want damage at %d", id, what, err, o)
			}
		}
		var n messages.PLogOffset
		for e, err := range s.PLog(t.Context(), id, 0) {
			if err != nil {
				if !damagedAt(err, id, o) || n != o-1 {
					t.Fatalf("partition %d: after %d events: got %v", id, n, err)
				}
				break
			}
			n = e.PLogOffset
		}
	}
}

func TestDamagedEvent(t *testing.T) {
	for name, c := range map[string]struct {
		spoil  func(*testing.T, *Store)
		failed map[messages.PartitionID]messages.PLogOffset
	}{
		"in the middle": {
			func(t *testing.T, s *Store) { damageLog(t, s, 5) },
			map[messages.PartitionID]messages.PLogOffset{1: 2},
		},
		"missing in the middle": {
			func(t *testing.T, s *Store) { removeLog(t, s, 5) },
			map[messages.PartitionID]messages.PLogOffset{1: 2},
		},
		"two of two partitions": {
			func(t *testing.T, s *Store) { damageLog(t, s, 4, 6) },
			map[messages.PartitionID]messages.PLogOffset{0: 2, 2: 2},
		},
		"two of one partition": {
			func(t *testing.T, s *Store) { damageLog(t, s, 4, 7) },
			map[messages.PartitionID]messages.PLogOffset{0: 2},
		},
		// Partition 2 has an event behind it, the empty one has none.
		"the last of a partition": {
			func(t *testing.T, s *Store) { damageLog(t, s, 11) },
			map[messages.PartitionID]messages.PLogOffset{0: 5, 1: 4, 3: 1},
		},
		"the last of the log": {
			func(t *testing.T, s *Store) { damageLog(t, s, 12) },
			map[messages.PartitionID]messages.PLogOffset{0: 5, 1: 5, 2: 4, 3: 1},
		},
		"one with a hole and the last of the log": {
			func(t *testing.T, s *Store) { damageLog(t, s, 5, 12) },
			map[messages.PartitionID]messages.PLogOffset{0: 5, 1: 2, 2: 4, 3: 1},
		},
		"a swapped pair": {
			func(t *testing.T, s *Store) {
				a, b := format.AppendLSNKey(nil, 2), format.AppendLSNKey(nil, 3)
				first, second := get(t, settled(t, s), format.BucketLog, a), get(t, settled(t, s), format.BucketLog, b)
				put(t, settled(t, s), format.BucketLog, a, second)
				put(t, settled(t, s), format.BucketLog, b, first)
			},
			map[messages.PartitionID]messages.PLogOffset{1: 1, 2: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, d, s := interleaved(t, 4)
			c.spoil(t, s)
			closeStore(t, s)
			for range 2 { // flushes in between must not hide the damage
				s = open(t, dir, d, Options{})
				checkFailed(t, s, c.failed)
				closeStore(t, s)
			}
			s = open(t, dir, d, Options{TailEvents: 1})
			checkFailed(t, s, c.failed)
		})
	}
}

// A damaged event that is projected already does not stop anybody; whoever reads it is
// told.
// The last entries of the log are gone, as if their page had lost them: the log
// says itself that it went further, also when no projection does.
func TestLogEndsEarlier(t *testing.T) {
	for lost := messages.LSN(1); lost <= 9; lost += 4 {
		dir, d, s := interleaved(t, 3)
		for lsn := 10 - lost; lsn <= 9; lsn++ {
			removeLog(t, s, lsn)
		}
		closeStore(t, s)
		_, err := Open(t.Context(), dir, d, Options{})
		if _, ok := errors.AsType[*storage.DamagedError](err); !ok {
			t.Fatalf("%d entries lost: got %v, want damage", lost, err)
		}
	}
}

func TestDamagedProjectedEvent(t *testing.T) {
	dir, d, s := interleaved(t, 4)
	w := takeOver(t, s, 1)
	w.flush() // the others keep the beginning of the log to be scanned
	damageLog(t, s, 11)
	closeStore(t, s)
	s = open(t, dir, d, Options{})
	for id := range messages.PartitionID(4) {
		if _, err := s.TakeEpoch(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	takeOver(t, s, 0).append(0)
	takeOver(t, s, 3).append(3)
	n := 0
	var last error
	for _, err := range s.WLog(t.Context(), 1, 0) {
		if last = err; err == nil {
			n++
		}
	}
	if n != 3 || !errors.Is(last, storage.ErrDamaged) {
		t.Fatalf("got %d events, %v", n, last)
	}
	last = nil
	for _, err := range s.PLog(t.Context(), 1, 4) {
		last = err
		break
	}
	if !damagedAt(last, 1, 4) {
		t.Fatalf("got %v", last)
	}
}

// A flush whose last event was damaged meanwhile is refused, alone.
func TestDamageAtFlush(t *testing.T) {
	_, _, s := interleaved(t, 4)
	writers := []*writer{takeOver(t, s, 0), takeOver(t, s, 1)}
	damageLog(t, s, 11)
	if err := s.Flush(t.Context(), writers[1].pending()); !damagedAt(err, 1, 4) {
		t.Fatalf("got %v", err)
	}
	writers[0].flush()
	writers[0].append(0)
}

func TestDamagedStateValues(t *testing.T) {
	dir, d, s := interleaved(t, 4)
	w := takeOver(t, s, 1)
	w.flush()
	putList(t, s, 1, 1, 2, 5, 6, 11)
	changeHead(t, s, 1, func(h *format.Head) {
		h.LSNs[1] = 6 // another workspace's
		h.Find(testSeq).Point(1001, 8)
	})

	count := func(seq func(func(messages.Event, error) bool)) (n int, last error) {
		for _, err := range seq {
			if last = err; err == nil {
				n++
			}
		}
		return n, last
	}
	if n, err := count(s.PLog(t.Context(), 1, 0)); n != 2 || !damagedAt(err, 1, 3) {
		t.Fatalf("PLog: got %d, %v", n, err)
	}
	if n, err := count(s.WLog(t.Context(), 1, 0)); n != 1 || !errors.Is(err, storage.ErrDamaged) {
		t.Fatalf("WLog: got %d, %v", n, err)
	}
	n := 0
	var last error
	for _, err := range s.Records(t.Context(), 1, storage.RecordRange{Seq: testSeq}) {
		if last = err; err == nil {
			n++
		}
	}
	if n != 1 || !errors.Is(last, storage.ErrDamaged) {
		t.Fatalf("Records: got %d, %v", n, last)
	}
	key := format.AppendWorkspaceKey(nil, 1)
	value := get(t, s.state, format.BucketWorkspaces, key)
	value[3]++
	put(t, s.state, format.BucketWorkspaces, key, value)
	if _, err := s.Numbers(t.Context(), 1); !errors.Is(err, storage.ErrDamaged) {
		t.Fatalf("Numbers: got %v", err)
	}
	closeStore(t, s)
	s = open(t, dir, d, Options{})
	key = format.AppendPartitionKey(nil, 1)
	value = get(t, s.state, format.BucketCheckpoints, key)
	value[3]++
	put(t, s.state, format.BucketCheckpoints, key, value)
	closeStore(t, s)
	if _, err := Open(t.Context(), dir, d, Options{}); !errors.Is(err, storage.ErrDamaged) {
		t.Fatalf("damaged checkpoint: got %v", err)
	}
}

// A damaged epoch fails its partition: whoever held it could not be fenced.
func TestDamagedEpoch(t *testing.T) {
	dir, d, s := interleaved(t, 1)
	key := format.AppendPartitionKey(nil, 2)
	value := get(t, s.log.File, format.BucketEpochs, key)
	value[0]++
	put(t, s.log.File, format.BucketEpochs, key, value)
	closeStore(t, s)
	s = open(t, dir, d, Options{})
	if _, err := s.TakeEpoch(t.Context(), 2); !errors.Is(err, storage.ErrDamaged) {
		t.Fatalf("got %v", err)
	}
	takeOver(t, s, 0).append(0)
}

// rewriteLog replaces an event of the log by a changed one that is sealed well.
func rewriteLog(t *testing.T, s *Store, lsn messages.LSN, change func(*messages.Event)) {
	t.Helper()
	key := format.AppendLSNKey(nil, lsn)
	var view format.EventView
	if err := view.Decode(lsn, get(t, settled(t, s), format.BucketLog, key)); err != nil {
		t.Fatal(err)
	}
	e := view.Event()
	change(&e)
	value := format.EncodeEvent(&e)
	format.SealEvent(value, lsn)
	put(t, settled(t, s), format.BucketLog, key, value)
}

// A log that contradicts itself fails the partition at the place.
func TestLogContradictsItself(t *testing.T) {
	for name, change := range map[string]func(*messages.Event){
		"time falls":               func(e *messages.Event) { e.RegisteredAt = 0 },
		"epoch falls":              func(e *messages.Event) { e.Epoch = 0 },
		"epoch was not taken":      func(e *messages.Event) { e.Epoch = 3 },
		"unknown kind":             func(e *messages.Event) { e.WorkspaceKind = 77 },
		"no WLog offset":           func(e *messages.Event) { e.WLogOffset = 0 },
		"hole":                     func(e *messages.Event) { e.PLogOffset++ },
		"offset for a second time": func(e *messages.Event) { e.PLogOffset-- },
	} {
		t.Run(name, func(t *testing.T) {
			dir, d, s := interleaved(t, 4)
			rewriteLog(t, s, 8, change) // partition 1, offset 3
			closeStore(t, s)
			s = open(t, dir, d, Options{})
			checkFailed(t, s, map[messages.PartitionID]messages.PLogOffset{1: 3})
			closeStore(t, s)
			s = open(t, dir, d, Options{})
			checkFailed(t, s, map[messages.PartitionID]messages.PLogOffset{1: 3})
		})
	}
	t.Run("another partition's workspace", func(t *testing.T) {
		dir, d, s := interleaved(t, 4)
		rewriteLog(t, s, 8, func(e *messages.Event) { e.Workspace++ })
		closeStore(t, s)
		s = open(t, dir, d, Options{})
		checkFailed(t, s, map[messages.PartitionID]messages.PLogOffset{1: 3})
	})
}

// An event of the log that is not the one of the tail is damage, whichever half of its place in the
// workspace's log is wrong: a flush reads its last one.
func TestFlushComparesWorkspaceAndOffset(t *testing.T) {
	for name, change := range map[string]func(*messages.Event){
		"another workspace": func(e *messages.Event) { e.Workspace += 2 },
		"another offset":    func(e *messages.Event) { e.WLogOffset++ },
		"another place":     func(e *messages.Event) { e.PLogOffset++ },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir(), testDescriptor(2, messages.TrustNone), Options{})
			w := takeOver(t, s, 0)
			w.append(2, 2)
			rewriteLog(t, s, 2, change)
			if err := s.Flush(t.Context(), w.pending()); !damagedAt(err, 0, 2) {
				t.Errorf("got %v, want damage at offset 2", err)
			}
		})
	}
}
