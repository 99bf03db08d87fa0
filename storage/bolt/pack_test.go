package bolt

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/statedb"
	"github.com/partita-go/partita/storage/verify"
)

// write appends an event that writes records of testSeq.
func (w *writer) write(ws messages.WSID, data string, numbers ...messages.Number) {
	w.t.Helper()
	e := w.event(ws)
	e.Numbers, e.Records = nil, nil
	for _, n := range numbers {
		e.Records = append(e.Records, messages.Record{ID: messages.RecordID{Seq: testSeq, Number: n}, Data: []byte(data)})
	}
	expect.NoError(w.t, w.try(e))
}

// Rows that are written in any order, and again, are found all and as they were written last, in the tail and in packs.
// Packs do not overlap.
func TestPacks(t *testing.T) {
	for seed := range uint64(4) {
		dir, random := t.TempDir(), rand.New(rand.NewPCG(seed, 0))
		s := open(t, dir, testDescriptor(1, messages.TrustNone), Options{})
		w := takeOver(t, s, 0)
		want := make(map[messages.WSID]map[messages.Number]string)
		for ws := range messages.WSID(3) {
			want[ws] = make(map[messages.Number]string)
		}
		next := messages.Number(2000)
		for i := range 40 {
			for range 12 {
				ws := messages.WSID(random.IntN(3))
				numbers := []messages.Number{next, 1000 + messages.Number(random.IntN(500)), next - 1}
				next += messages.Number(random.IntN(3))
				data := fmt.Sprint(i, next, string(make([]byte, random.IntN(400))))
				w.write(ws, data, numbers...)
				for _, n := range numbers {
					want[ws][n] = data
				}
			}
			w.flush()
			if i%8 != 7 {
				continue
			}
			for ws, rows := range want {
				checkRows(t, s, ws, rows)
			}
			checkPacks(t, s)
		}
		closeStore(t, s)
		checkSound(t, dir)
	}
}

// checkRows makes sure that a workspace has just these rows, whether all are read or one.
func checkRows(t *testing.T, s *Store, ws messages.WSID, want map[messages.Number]string) {
	t.Helper()
	all := collectRows(t, s, ws, storage.RecordRange{Seq: testSeq})
	expect.Equal(t, len(want), len(all))
	for i, n := range slices.Sorted(maps.Keys(want)) {
		one := collectRows(t, s, ws, storage.RecordRange{Seq: testSeq, From: n, To: n})
		if all[i].ID.Number != n || string(all[i].Data) != want[n] || len(one) != 1 || string(one[0].Data) != want[n] {
			t.Fatalf("workspace %d, number %d: got %v and %v, want %q", ws, n, all[i], one, want[n])
		}
	}
}

// checkPacks makes sure that packs are there, that none is led to twice, and that they do not overlap.
func checkPacks(t *testing.T, s *Store) {
	t.Helper()
	ids := make(map[format.PackID]bool)
	ends := make(map[format.RecordKey]messages.Number)
	check := func(seq format.RecordKey, e format.PackEntry) {
		seq.ID.Number = 0
		if ids[e.ID] || e.First <= ends[seq] {
			t.Errorf("pack %d, %v: it is led to twice, or the one before it ends at %d", e.ID, seq, ends[seq])
		}
		ids[e.ID], ends[seq] = true, e.Last
	}
	expect.NoError(t, s.state.View(func(tx *bbolt.Tx) error {
		indexed := tx.Bucket(format.BucketIndex).ForEach(func(k, v []byte) error {
			at := format.ParseRecordKey(k)
			if at.ID.Seq == messages.SeqWLogOffset {
				return nil
			}
			e, err := format.DecodePackEntry(k, v)
			check(at, e)
			return err
		})
		return errors.Join(indexed, tx.Bucket(format.BucketWorkspaces).ForEach(func(k, v []byte) error {
			var h format.Head
			ws, err := statedb.DecodeHead(k, v, &h)
			for i := range h.Sequences {
				for _, e := range h.Sequences[i].Packs {
					check(format.RecordKey{Workspace: ws, ID: messages.RecordID{Seq: h.Sequences[i].Seq}}, e)
				}
			}
			return err
		}))
	}))
	if len(ids) == 0 {
		t.Error("there are no packs")
	}
}

// The last write of a record in an event counts when its row goes into a pack, be it read back before or not.
func TestPacksShowTheLastWriteOfAnEvent(t *testing.T) {
	for _, swept := range []int{0, 1 << 20} {
		s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
		s.shares.swept = swept
		w := takeOver(t, s, 0)
		e := w.event(1)
		e.Numbers, e.Records = nil, nil
		want := make(map[messages.Number]string)
		for n := range messages.Number(40) {
			for _, data := range []string{"first", "", "longer than the others", "", "last"}[:n%5+1] {
				e.Records = append(e.Records, messages.Record{ID: messages.RecordID{Seq: testSeq, Number: 1000 + n}, Data: []byte(data)})
				want[1000+n] = data
			}
		}
		expect.NoError(t, w.try(e))
		w.flush()
		expect.Equal(t, swept != 0, cap(s.tables.rows) > 0)
		checkPacks(t, s)
		checkRows(t, s, 1, want)
	}
}

// A flush that may read back a part of what it has, or nothing, packs the same rows as one that may read back all, and never
// has more of it in memory than it may.
func TestReadBackIsBounded(t *testing.T) {
	for _, swept := range []int{0, 1, 2000, 10_000, 1 << 20} {
		dir, random := t.TempDir(), rand.New(rand.NewPCG(uint64(swept), 0))
		s := open(t, dir, testDescriptor(1, messages.TrustNone), Options{})
		s.shares.swept, s.shares.rangeEvents, s.shares.rangeBytes = swept, 100, max(int64(swept/4), 1)
		w := takeOver(t, s, 0)
		want := make(map[messages.WSID]map[messages.Number]string)
		for range 3 {
			w.tryMany(200, func() messages.Event {
				e := w.event(messages.WSID(random.IntN(30) * random.IntN(2)))
				n := messages.Number(1000 + random.IntN(200))
				data := fmt.Sprint(w.next, string(make([]byte, random.IntN(100))))
				e.Numbers = nil
				e.Records = []messages.Record{{ID: messages.RecordID{Seq: testSeq, Number: n}, Data: []byte(data)}}
				if want[e.Workspace] == nil {
					want[e.Workspace] = make(map[messages.Number]string)
				}
				want[e.Workspace][n] = data
				return e
			})
			w.flush()
			most := swept + swept/4 + 32 // memory is given out in certain sizes
			if got := cap(s.tables.rows); got > most || swept >= 10_000 && got == 0 {
				t.Errorf("%d bytes: got room for %d bytes", swept, got)
			}
		}
		for ws, rows := range want {
			checkRows(t, s, ws, rows)
		}
		checkPacks(t, s)
		closeStore(t, s)
		checkSound(t, dir)
	}
}

// A row whose event is damaged when it would go into a pack stays damaged, and keeps no other one away.
func TestPacksBesideADamagedEvent(t *testing.T) {
	for _, swept := range []int{0, 1 << 20} {
		testPacksBesideADamagedEvent(t, swept)
	}
}

func testPacksBesideADamagedEvent(t *testing.T, swept int) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	s.shares.swept = swept
	w := takeOver(t, s, 0)
	for n := range messages.Number(20) {
		w.write(1, fmt.Sprint(n), 1000+n)
	}
	put(t, settled(t, s), format.BucketLog, format.AppendLSNKey(nil, 6), []byte("damaged"))
	w.flush()
	checkPacks(t, s)
	for n := range messages.Number(20) {
		var got []string
		var failed error
		for row, err := range s.Records(t.Context(), 1, storage.RecordRange{Seq: testSeq, From: 1000 + n, To: 1000 + n}) {
			if got, failed = append(got, string(row.Data)), err; err != nil {
				break
			}
		}
		if n == 5 {
			expect.ErrorIs(t, failed, storage.ErrDamaged)
			continue
		}
		expect.NoError(t, failed)
		if !slices.Equal(got, []string{fmt.Sprint(n)}) {
			t.Errorf("number %d: got %q", 1000+n, got)
		}
	}
}

// A pointer that leads to another workspace's record is damage: that row is not this workspace's.
func TestPointerToAnotherWorkspace(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.append(2, 4)
	w.flush()
	changeHead(t, s, 2, func(h *format.Head) { h.Sequence(testSeq).Point(1000, 2) })
	for row, err := range s.Records(t.Context(), 2, storage.RecordRange{Seq: testSeq}) {
		if expect.ErrorIs(t, err, storage.ErrDamaged); err == nil {
			t.Errorf("got %v", row)
		}
	}
}

// What a head has too much goes into lists, from where each event of a workspace's log is found.
func TestHeadsSpill(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	for _, n := range []int{1, 62, 1, 1, 63, 200, 64, 1} {
		w.appendMany(n, 1)
		w.appendMany(n, 2, 3)
		w.flush()
		for ws, last := range w.wlog {
			if h := headOf(t, s, ws); h.Last != last || len(h.LSNs) >= 64 {
				t.Errorf("workspace %d: the head ends at %d and names %d events, want %d and less than 64", ws, h.Last, len(h.LSNs), last)
			}
			for from := messages.WLogOffset(1); from <= last; from += 9 {
				events := collectEvents(t, s.WLog(t.Context(), ws, from))
				if len(events) != int(last+1-from) || events[0].WLogOffset != from {
					t.Errorf("workspace %d from %d: got %d events, want %d", ws, from, len(events), last+1-from)
				}
			}
		}
	}
	closeStore(t, s)
	checkSound(t, dir)
}

// An entry of the index that is no link of its sequence's chain hides no rows: readers and verify tell of it, wherever
// it stands.
func TestForeignEntryOfAPack(t *testing.T) {
	for _, at := range []messages.Number{999, 1005, 1500, 2000} {
		dir := t.TempDir()
		s := open(t, dir, testDescriptor(1, messages.TrustNone), Options{})
		w := takeOver(t, s, 0)
		for range 33 { // packs, which are more than the head leads to
			w.appendMany(16, 2)
			w.flush()
		}
		expect.NoError(t, s.state.Update(func(tx *bbolt.Tx) error {
			k := format.AppendIndexKey(nil, format.RecordKey{Workspace: 2, ID: messages.RecordID{Seq: testSeq, Number: at}})
			e := format.PackEntry{ID: 1, First: at, Last: at + 1, Next: at + 2}
			return tx.Bucket(format.BucketIndex).Put(k, e.Append(nil, k))
		}))
		var last error
		for _, last = range s.Records(t.Context(), 2, storage.RecordRange{Seq: testSeq}) {
			continue
		}
		expect.ErrorIs(t, last, storage.ErrDamaged, at)
		closeStore(t, s)
		r, err := Verify(t.Context(), dir, verify.Options{})
		expect.NoError(t, err)
		expect.Equal(t, true, r.FaultCount > 0, at)
	}
}
