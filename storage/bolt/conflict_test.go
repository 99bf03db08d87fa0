package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/statedb"
)

var allLevels = []messages.TrustLevel{messages.TrustNone, messages.TrustRecords, messages.TrustAll}

// foreign is what somebody else has written to the log, foreignLSN what leads to it from state.db.
var foreign = []byte("foreign!")

const foreignLSN messages.LSN = 1 << 40

// plant puts a foreign value where an event's entry of a kind will go, and returns
// a function that says whether it is still there.
func plant(t *testing.T, s *Store, place storage.Place, e *messages.Event) (intact func(*Store) bool) {
	t.Helper()
	switch place {
	case storage.PlacePLog:
		putList(t, s, e.Partition, e.PLogOffset, foreignLSN)
		return func(s *Store) bool {
			lsns, err := statedb.PLog(s.state, e.Partition, e.PLogOffset, e.PLogOffset+1)
			return err == nil && lsns[0] == foreignLSN
		}
	case storage.PlaceWLog:
		changeHead(t, s, e.Workspace, func(h *format.Head) {
			for h.Last < e.WLogOffset {
				h.Last++
				h.LSNs = append(h.LSNs, foreignLSN+messages.LSN(h.Last))
			}
		})
		return func(s *Store) bool {
			lsns, err := statedb.WLog(s.state, e.Workspace, e.WLogOffset, e.WLogOffset+1)
			return err == nil && lsns[0] == foreignLSN+messages.LSN(e.WLogOffset)
		}
	default:
		id := e.Records[0].ID
		changeHead(t, s, e.Workspace, func(h *format.Head) { h.Sequence(id.Seq).Point(id.Number, foreignLSN) })
		return func(s *Store) bool {
			h := headOf(t, s, e.Workspace)
			i, found := h.Find(id.Seq).Pointed(id.Number)
			return found && h.Find(id.Seq).Pointers[i].LSN == foreignLSN
		}
	}
}

func put(t testing.TB, f *boltfile.File, bucket, key, value []byte) {
	t.Helper()
	if err := f.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put(key, value) }); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, f *boltfile.File, bucket, key []byte) (value []byte) {
	t.Helper()
	if err := f.View(func(tx *bbolt.Tx) error {
		value = bytes.Clone(tx.Bucket(bucket).Get(key))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return value
}

func conflictAt(err error, place storage.Place) bool {
	var conflict *storage.ConflictError
	return errors.As(err, &conflict) && conflict.Place == place && errors.Is(err, storage.ErrConflict)
}

func eachPlace(t *testing.T, levels []messages.TrustLevel, fn func(*testing.T, messages.TrustLevel, storage.Place)) {
	for _, level := range levels {
		for _, place := range []storage.Place{storage.PlacePLog, storage.PlaceWLog, storage.PlaceRecord} {
			t.Run(fmt.Sprintf("level=%d/%v", level, place), func(t *testing.T) { fn(t, level, place) })
		}
	}
}

// checked reports whether a level checks a place before it appends.
func checked(level messages.TrustLevel, place storage.Place) bool {
	return level == messages.TrustNone || level == messages.TrustRecords && place != storage.PlaceRecord
}

// A foreign key where the next event goes: refused at the levels that check, and
// again after a restart. The others meet it when they flush; a record they overwrite.
func TestConflictAtAppend(t *testing.T) {
	eachPlace(t, allLevels, func(t *testing.T, level messages.TrustLevel, place storage.Place) {
		dir, d := t.TempDir(), testDescriptor(2, level)
		s := open(t, dir, d, Options{})
		w := takeOver(t, s, 0)
		w.append(2, 4, 2)
		w.flush()
		e := w.event(2)
		intact := plant(t, s, place, &e)
		forgetEnds(s)
		err := w.try(e)
		if !checked(level, place) {
			if err != nil {
				t.Fatal(err)
			}
			err := s.Flush(t.Context(), w.pending())
			if place == storage.PlacePLog && !conflictAt(err, place) || place != storage.PlacePLog && err != nil {
				t.Fatalf("flush: got %v", err)
			}
			if intact(s) != (place != storage.PlaceRecord) {
				t.Fatal("a foreign record is overwritten, and nothing else")
			}
			if place == storage.PlaceWLog {
				if err := w.try(w.event(2)); !conflictAt(err, place) {
					t.Fatalf("append: got %v", err)
				}
			}
			return
		}
		for range 2 {
			if !conflictAt(err, place) {
				t.Fatalf("got %v", err)
			}
			if reg, err := s.Register(t.Context(), 0); err != nil || reg.Last != 3 {
				t.Fatalf("got %v, %v", reg, err)
			}
			if !intact(s) {
				t.Fatal("the foreign value was overwritten")
			}
			if place != storage.PlacePLog {
				w.append(4) // others do not suffer
				w.flush()
				break
			}
			if _, err := s.TakeEpoch(t.Context(), 0); !conflictAt(err, storage.PlacePLog) {
				t.Fatalf("TakeEpoch: got %v", err)
			}
			other := takeOver(t, s, 1)
			other.append(1)
			other.flush()
			closeStore(t, s)
			s = open(t, dir, d, Options{})
			w.s = s
			err = w.try(e)
		}
	})
}

// A foreign key that shows up between append and flush is not overwritten at the
// levels that had checked it. PLog: the partition has failed. WLog, record: what
// they touch errs, also after a restart, until state.db is rebuilt.
func TestConflictAtFlush(t *testing.T) {
	eachPlace(t, allLevels, func(t *testing.T, level messages.TrustLevel, place storage.Place) {
		if !checked(level, place) {
			t.Skip("this level overwrites")
		}
		dir, d := t.TempDir(), testDescriptor(2, level)
		s := open(t, dir, d, Options{})
		w := takeOver(t, s, 0)
		w.append(2, 4)
		e := w.event(2)
		w.append(2)
		intact := plant(t, s, place, &e)
		err := s.Flush(t.Context(), w.pending())
		if place == storage.PlacePLog {
			if !conflictAt(err, place) {
				t.Fatalf("flush: got %v", err)
			}
			if err := w.try(w.event(4)); !conflictAt(err, place) {
				t.Fatalf("append: got %v", err)
			}
		} else if err != nil {
			t.Fatal(err)
		}
		if !intact(s) {
			t.Fatal("the foreign value was overwritten")
		}
		checkBlocked(t, dir, d, s, place)
	})
}

// What was recovered at open overwrites nothing foreign, at no level.
func TestConflictInRecovery(t *testing.T) {
	eachPlace(t, allLevels, func(t *testing.T, level messages.TrustLevel, place storage.Place) {
		dir, d := t.TempDir(), testDescriptor(2, level)
		s := open(t, dir, d, Options{})
		w := takeOver(t, s, 0)
		w.append(2, 4)
		e := w.event(2)
		w.append(2)
		intact := plant(t, s, place, &e)
		closeStore(t, s)
		s = open(t, dir, d, Options{})
		if place == storage.PlacePLog {
			if _, err := s.TakeEpoch(t.Context(), 0); !conflictAt(err, place) {
				t.Fatalf("TakeEpoch: got %v", err)
			}
		} else {
			w = takeOver(t, s, 0)
			w.flush()
		}
		if !intact(s) {
			t.Fatal("the foreign value was overwritten")
		}
		checkBlocked(t, dir, d, s, place)
	})
}

// checkBlocked makes sure that a conflict with an event of workspace 2 in
// partition 0 blocks what it must and nothing else, lasts over a restart, and is
// repaired by deleting state.db.
func checkBlocked(t *testing.T, dir string, d messages.Descriptor, s *Store, place storage.Place) {
	t.Helper()
	for restarted := range 2 {
		takeOver(t, s, 1).append(1)
		if place == storage.PlacePLog {
			if _, err := s.Register(t.Context(), 0); !conflictAt(err, place) {
				t.Fatalf("register: got %v", err)
			}
		} else {
			var w *writer
			if place == storage.PlaceWLog {
				w = &writer{t: t, s: s}
				reg, err := s.TakeEpoch(t.Context(), 0)
				if err != nil {
					t.Fatal(err)
				}
				w.epoch, w.next, w.at = reg.Epoch, reg.Last+1, reg.LastRegisteredAt
				w.wlog = map[messages.WSID]messages.WLogOffset{2: 2, 4: messages.WLogOffset(1 + restarted)}
				w.last, w.changed = map[numberKey]messages.Number{}, map[numberKey]messages.Number{}
			} else {
				w = takeOver(t, s, 0)
			}
			if err := w.try(w.event(2)); !conflictAt(err, place) {
				t.Fatalf("append: got %v", err)
			}
			if place == storage.PlaceRecord {
				e := w.event(2)
				e.Numbers, e.Records = e.Numbers[1:], e.Records[1:]
				if err := w.try(e); err != nil {
					t.Fatalf("append to another sequence: %v", err)
				}
			}
			other := w.event(4)
			other.Numbers, other.Records = nil, nil
			if err := w.try(other); err != nil {
				t.Fatalf("append to another workspace: %v", err)
			}
		}
		closeStore(t, s)
		if restarted == 1 {
			break
		}
		s = open(t, dir, d, Options{})
	}
	if err := os.Remove(filepath.Join(dir, format.StateFileName)); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, d, Options{})
	w := takeOver(t, s, 0)
	w.append(2, 4, 2)
	w.flush()
}

// Recovery replaces rows that the log itself has written.
func TestRecoveryOverwritesOwnRows(t *testing.T) {
	for _, level := range allLevels {
		dir, d := t.TempDir(), testDescriptor(1, level)
		s := open(t, dir, d, Options{})
		w := takeOver(t, s, 0)
		w.append(1, 1)
		w.flush()
		e := w.event(1)
		id := messages.RecordID{Seq: testSeq, Number: 1000}
		e.Records = append(e.Records, messages.Record{ID: id, Data: []byte("updated"), New: level > messages.TrustNone})
		if err := w.try(e); err != nil {
			t.Fatal(err)
		}
		closeStore(t, s)
		s = open(t, dir, d, Options{})
		w = takeOver(t, s, 0)
		w.flush()
		rows := collectRows(t, s, 1, storage.RecordRange{Seq: testSeq, From: 1000, To: 1000})
		if len(rows) != 1 || string(rows[0].Data) != "updated" || rows[0].PLogOffset != 3 {
			t.Fatalf("got %v", rows)
		}
		w.append(1)
	}
}

// The next place of the physical log is taken: nothing is overwritten, and nothing
// can be appended any more.
func TestConflictInLog(t *testing.T) {
	for _, level := range allLevels {
		s := open(t, t.TempDir(), testDescriptor(2, level), Options{})
		w := takeOver(t, s, 0)
		w.append(2)
		put(t, settled(t, s), format.BucketLog, format.AppendLSNKey(nil, 2), foreign)
		for _, ws := range []messages.WSID{2, 4} {
			if err := w.try(w.event(ws)); !conflictAt(err, storage.PlaceLog) {
				t.Fatalf("got %v", err)
			}
		}
		if _, err := s.TakeEpoch(t.Context(), 1); !conflictAt(err, storage.PlaceLog) {
			t.Fatalf("got %v", err)
		}
		if got := get(t, settled(t, s), format.BucketLog, format.AppendLSNKey(nil, 2)); !bytes.Equal(got, foreign) {
			t.Fatal("the foreign value was overwritten")
		}
		if got := collectEvents(t, s.PLog(t.Context(), 0, 0)); len(got) != 1 {
			t.Fatalf("got %d events", len(got))
		}
	}
}

// A pointer that looks right but is not the log's is foreign to recovery.
func TestRecoveryTellsForeignRows(t *testing.T) {
	for name, lsn := range map[string]messages.LSN{
		"another workspace's": 4,
		"another event's":     1,
		"nobody's":            9,
	} {
		t.Run(name, func(t *testing.T) {
			dir, d := t.TempDir(), testDescriptor(2, messages.TrustAll)
			s := open(t, dir, d, Options{})
			w := takeOver(t, s, 0)
			w.append(2, 2)
			w.flush()
			e := w.event(2)
			w.append(2, 4)
			id := e.Records[1].ID
			changeHead(t, s, 2, func(h *format.Head) { h.Sequence(id.Seq).Point(id.Number, lsn) })
			closeStore(t, s)
			s = open(t, dir, d, Options{})
			w = takeOver(t, s, 0)
			w.flush()
			if err := w.try(w.event(2)); !conflictAt(err, storage.PlaceRecord) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

// The log has a workspace's offset twice, which level 2 took while it ran: the first
// one stays, also if both are projected at once, and the workspace errs.
func TestConflictWithinOneRebuild(t *testing.T) {
	for _, at := range []messages.WLogOffset{1, 2, 3} {
		t.Run(fmt.Sprint("offset ", at), func(t *testing.T) { conflictWithinOneRebuild(t, at) })
	}
}

func conflictWithinOneRebuild(t *testing.T, at messages.WLogOffset) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustAll)
	s := open(t, dir, d, Options{})
	w := takeOver(t, s, 0)
	w.append(2, 2, 2)
	w.flush()
	twice := w.event(2)
	twice.WLogOffset = at
	if err := w.try(twice); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	if err := os.Remove(filepath.Join(dir, format.StateFileName)); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, d, Options{})
	w = takeOver(t, s, 0)
	if events := collectEvents(t, s.WLog(t.Context(), 2, at)); len(events) != int(4-at) || events[0].PLogOffset != messages.PLogOffset(at) {
		t.Errorf("got %d events, want those that were first", len(events))
	}
	if err := w.try(w.event(2)); !conflictAt(err, storage.PlaceWLog) {
		t.Errorf("got %v, want a conflict", err)
	}
	w.append(4)
}

// Of the conflicts of a workspace's log the first one is kept: there its log ends.
func TestFirstConflictStays(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.append(2)
	w.flush()
	w.append(2, 2)
	plant(t, s, storage.PlaceWLog, &messages.Event{Workspace: 2, WLogOffset: 2})
	w.flush()
	key := format.ConflictKeyOf(&storage.ConflictError{Place: storage.PlaceWLog, Workspace: 2}).Append(nil)
	kept, err := format.DecodeConflict(key, get(t, s.state, format.BucketConflicts, key))
	if err != nil || kept.WLogOffset != 2 || kept.PLogOffset != 2 {
		t.Errorf("got %v, %v, want that of offset 2", kept, err)
	}
}
