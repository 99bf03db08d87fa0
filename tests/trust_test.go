package tests

import (
	"fmt"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
)

// Workspaces of the trust tests, with 2 partitions: the victim's neighbour shares
// its partition, the stranger does not.
const (
	victim    messages.WSID = 2
	neighbour messages.WSID = 4
	stranger  messages.WSID = 3
)

// forEachLevel runs a test at each trust level, over a store with one event of each
// workspace, stopped cleanly.
func forEachLevel(t *testing.T, test func(t *testing.T, s *site, level messages.TrustLevel)) {
	t.Helper()
	for level := messages.TrustNone; level <= messages.TrustAll; level++ {
		t.Run(fmt.Sprintf("level=%d", level), func(t *testing.T) {
			s := newSite(t, 2, neverFlushed())
			s.app.TrustLevel = level
			d := s.run(t)
			for _, ws := range []messages.WSID{victim, neighbour, stranger} {
				must(commitRecord(limit(t), d.app, ws))(t)
			}
			d.stop(t)
			test(t, s, level)
		})
	}
}

// goOn checks that workspaces have not suffered: each takes another event with the
// next number.
func goOn(t testing.TB, d *deployment, next messages.Number, all ...messages.WSID) {
	t.Helper()
	for _, ws := range all {
		tx := must(commitRecord(limit(t), d.app, ws))(t)
		if got := tx.Numbers()[0].Number; got != next {
			t.Errorf("workspace %d: got number %d, want %d", ws, got, next)
		}
	}
}

// repair deletes state.db: everything works again, with the numbers given.
func repair(t testing.TB, s *site, next map[messages.WSID]messages.Number) {
	t.Helper()
	s.deleteState(t)
	d := s.run(t)
	for ws, n := range next {
		goOn(t, d, n, ws)
	}
	d.stop(t)
}

// TestTrustPLog puts a foreign key where the victim's partition will write its
// second next entry. At levels 0 and 1 the append fails and the partition with it,
// until it is repaired; the other partition goes on. At level 2 the flush fails, and the partition with it.
func TestTrustPLog(t *testing.T) {
	forEachLevel(t, func(t *testing.T, s *site, level messages.TrustLevel) {
		taken := plogKey(0, 4)
		taken.plant(t, s)
		d := s.run(t)
		goOn(t, d, 2, victim)
		if level == messages.TrustAll {
			goOn(t, d, 3, victim)
			wantConflict(t, d.parts.Close(limit(t)), storage.PlacePLog)
			check(t, d.store.Close(limit(t)))
			failsAgain(t, s, 4, 2)
			s.keep(t, taken, true)
			repair(t, s, map[messages.WSID]messages.Number{victim: 4, neighbour: 2, stranger: 3})
			return
		}
		_, err := commitRecord(limit(t), d.app, victim)
		if conflict := wantConflict(t, err, storage.PlacePLog); conflict.PLogOffset != 4 {
			t.Errorf("got %v, want offset 4", err)
		}
		wantFailed(t, s.awaitState(t, d, 0, messages.StateFailed).Err, 0, 4)
		_, err = commitRecord(limit(t), d.app, neighbour)
		wantError(t, err, messages.ErrPartitionFailed, storage.ErrConflict)
		goOn(t, d, 2, stranger)
		d.crash(t)
		failsAgain(t, s, 4, 3)
		s.keep(t, taken, true)
		repair(t, s, map[messages.WSID]messages.Number{victim: 3, neighbour: 2, stranger: 4})
	})
}

// failsAgain checks that after a restart partition 0 fails at an offset, while the
// other one goes on.
func failsAgain(t testing.TB, s *site, o messages.PLogOffset, next messages.Number) {
	t.Helper()
	d, err := s.start(t)
	wantConflict(t, err, storage.PlacePLog)
	wantFailed(t, err, 0, o)
	goOn(t, d, next, stranger)
	d.crash(t)
}

// TestTrustPLogTail puts a foreign key where the recovered tail will be projected.
// No level overwrites then: the partition has failed, the other goes on.
func TestTrustPLogTail(t *testing.T) {
	forEachLevel(t, func(t *testing.T, s *site, _ messages.TrustLevel) {
		d := s.run(t)
		goOn(t, d, 2, victim, victim+2, stranger)
		d.crash(t)
		taken := plogKey(0, 4)
		taken.plant(t, s)
		failsAgain(t, s, 4, 3)
		failsAgain(t, s, 4, 4)
		s.keep(t, taken, true)
		repair(t, s, map[messages.WSID]messages.Number{victim: 3, neighbour: 3, stranger: 5})
	})
}

// TestTrustWLog puts a foreign key where the victim's log goes on. At levels 0 and 1
// the workspace errs, also after a restart, and nobody else; at level 2 it errs from the flush on.
func TestTrustWLog(t *testing.T) {
	forEachLevel(t, func(t *testing.T, s *site, level messages.TrustLevel) {
		taken := wlogSpot{victim, 2}
		taken.plant(t, s)
		d := s.run(t)
		if level == messages.TrustAll {
			goOn(t, d, 2, victim, neighbour, stranger)
			check(t, d.parts.Close(limit(t)))
			check(t, d.store.Close(limit(t)))
			s.keep(t, taken, true)
			d = s.run(t)
			_, err := commitRecord(limit(t), d.app, victim)
			wantConflict(t, err, storage.PlaceWLog)
			d.crash(t)
			return // the log has no event at the foreign one's offset: no repair brings the workspace back
		}
		for range 2 {
			_, err := commitRecord(limit(t), d.app, victim)
			if conflict := wantConflict(t, err, storage.PlaceWLog); conflict.Workspace != victim || conflict.WLogOffset != 2 {
				t.Errorf("got %v, want workspace %d, offset 2", err, victim)
			}
		}
		goOn(t, d, 2, neighbour, stranger)
		check(t, d.parts.Close(limit(t)))
		check(t, d.store.Close(limit(t)))
		d = s.run(t)
		_, err := commitRecord(limit(t), d.app, victim)
		wantConflict(t, err, storage.PlaceWLog)
		d.crash(t)
		s.keep(t, taken, true)
		repair(t, s, map[messages.WSID]messages.Number{victim: 2, neighbour: 3, stranger: 3})
	})
}

// TestTrustWLogTail puts a foreign key where the recovered tail's entry of the
// victim's log will be projected: no level overwrites it, and the workspace errs
// until it is repaired.
func TestTrustWLogTail(t *testing.T) {
	forEachLevel(t, func(t *testing.T, s *site, _ messages.TrustLevel) {
		d := s.run(t)
		goOn(t, d, 2, victim, neighbour, stranger)
		d.crash(t)
		taken := wlogSpot{victim, 2}
		taken.plant(t, s)
		flushTail(t, s)
		s.keep(t, taken, true)
		d = s.run(t)
		_, err := commitRecord(limit(t), d.app, victim)
		wantConflict(t, err, storage.PlaceWLog)
		// The workspace's log cannot be read past the foreign entry, and says so.
		for e, err := range d.store.WLog(limit(t), victim, 2) {
			if err == nil {
				t.Errorf("got event %+v in place of a foreign entry", e)
			}
		}
		goOn(t, d, 3, neighbour, stranger)
		d.crash(t)
		repair(t, s, map[messages.WSID]messages.Number{victim: 3, neighbour: 4, stranger: 4})
	})
}

// flushTail starts the application and stops it cleanly, so that what was recovered
// is projected.
func flushTail(t testing.TB, s *site) {
	t.Helper()
	d := s.run(t)
	check(t, d.parts.Close(limit(t)))
	check(t, d.store.Close(limit(t)))
	store := openBolt(t, s.dir, s.app.Descriptor, bolt.Options{})
	for p := range messages.PartitionID(2) {
		if r := must(store.Register(limit(t), p))(t); r.Checkpoint != r.Last+1 {
			t.Errorf("partition %d: got checkpoint %d, want %d", p, r.Checkpoint, r.Last+1)
		}
	}
	check(t, store.Close(limit(t)))
}

// TestTrustRecord puts a foreign key where the victim's next record goes. At level 0
// that sequence of the workspace errs, also after a restart, and nothing else;
// levels 1 and 2 overwrite.
func TestTrustRecord(t *testing.T) {
	forEachLevel(t, func(t *testing.T, s *site, level messages.TrustLevel) {
		id := messages.RecordID{Seq: seqInvoice, Number: 2}
		taken := recordSpot{victim, id}
		taken.plant(t, s)
		d := s.run(t)
		if level != messages.TrustNone {
			goOn(t, d, 2, victim, neighbour, stranger)
			d.stop(t)
			s.keep(t, taken, false)
			return
		}
		for range 2 {
			_, err := commitRecord(limit(t), d.app, victim)
			if conflict := wantConflict(t, err, storage.PlaceRecord); conflict.Workspace != victim || conflict.Record != id {
				t.Errorf("got %v, want workspace %d, record %v", err, victim, id)
			}
		}
		d.commit(t, victim, seqReceipt)
		goOn(t, d, 2, neighbour, stranger)
		check(t, d.parts.Close(limit(t)))
		check(t, d.store.Close(limit(t)))
		d = s.run(t)
		_, err := commitRecord(limit(t), d.app, victim)
		wantConflict(t, err, storage.PlaceRecord)
		d.commit(t, victim, seqReceipt)
		d.crash(t)
		s.keep(t, taken, true)
		repair(t, s, map[messages.WSID]messages.Number{victim: 2, neighbour: 3, stranger: 3})
	})
}

// TestTrustRecordTail puts a foreign key where the recovered tail's record will be
// projected: no level overwrites it.
func TestTrustRecordTail(t *testing.T) {
	forEachLevel(t, func(t *testing.T, s *site, _ messages.TrustLevel) {
		d := s.run(t)
		goOn(t, d, 2, victim, neighbour, stranger)
		d.crash(t)
		taken := recordSpot{victim, messages.RecordID{Seq: seqInvoice, Number: 2}}
		taken.plant(t, s)
		flushTail(t, s)
		s.keep(t, taken, true)
		d = s.run(t)
		_, err := commitRecord(limit(t), d.app, victim)
		wantConflict(t, err, storage.PlaceRecord)
		d.commit(t, victim, seqReceipt)
		goOn(t, d, 3, neighbour, stranger)
		d.crash(t)
		repair(t, s, map[messages.WSID]messages.Number{victim: 3, neighbour: 4, stranger: 4})
	})
}

// TestTrustLog puts a foreign entry where the log itself goes on: at every level the
// whole store has failed, and says where; nothing is overwritten.
func TestTrustLog(t *testing.T) {
	forEachLevel(t, func(t *testing.T, s *site, _ messages.TrustLevel) {
		taken := logKey(4)
		taken.plant(t, s)
		d, err := s.start(t)
		wantError(t, err, messages.ErrPartitionFailed)
		for _, ws := range []messages.WSID{victim, stranger} {
			if _, err := commitRecord(limit(t), d.app, ws); err == nil {
				t.Errorf("workspace %d: an event was written behind a foreign entry of the log", ws)
			}
		}
		d.crash(t)
		s.keep(t, taken, true)
	})
}
