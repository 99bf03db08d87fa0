package tests

import (
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
)

// batchOf is a batch of one event.
func batchOf(e messages.Event) storage.Batch {
	return storage.Batch{Partition: e.Partition, Epoch: e.Epoch, Events: []messages.Event{e}}
}

// truth is what a store held before it was damaged.
type truth struct {
	plogs   [][]messages.Event
	wlogs   map[messages.WSID][]messages.Event
	records map[messages.WSID][]storage.Row
}

const truthWorkspaces = 12

// readTruth reads everything. Each read goes as far as it can: the error is what
// ended it.
func readTruth(ctx context.Context, store storage.Store) (truth, []error) {
	tr := truth{wlogs: make(map[messages.WSID][]messages.Event), records: make(map[messages.WSID][]storage.Row)}
	var errs []error
	for p := range messages.PartitionID(store.Descriptor().Partitions) {
		var events []messages.Event
		for e, err := range store.PLog(ctx, p, 1) {
			if err != nil {
				errs = append(errs, err)
				break
			}
			events = append(events, e)
		}
		tr.plogs = append(tr.plogs, events)
	}
	for ws := range messages.WSID(truthWorkspaces) {
		for e, err := range store.WLog(ctx, ws, 1) {
			if err != nil {
				errs = append(errs, err)
				break
			}
			tr.wlogs[ws] = append(tr.wlogs[ws], e)
		}
		for row, err := range store.Records(ctx, ws, storage.RecordRange{Seq: seqInvoice}) {
			if err != nil {
				errs = append(errs, err)
				break
			}
			tr.records[ws] = append(tr.records[ws], row)
		}
	}
	return tr, errs
}

// wrongs are the elements of a store that are not in the truth: worse than errors.
func (want truth) wrongs(got truth) int {
	n := 0
	for p, events := range got.plogs {
		n += wrong(events, want.plogs[p])
	}
	for ws, events := range got.wlogs {
		n += wrong(events, want.wlogs[ws])
	}
	for ws, rows := range got.records {
		// Rows need not be a prefix: an error ends the read where it is met.
		for _, row := range rows {
			if !slices.ContainsFunc(want.records[ws], func(r storage.Row) bool { return reflect.DeepEqual(r, row) }) {
				n++
			}
		}
	}
	return n
}

// wrong counts the elements that are not a prefix of what is right.
func wrong(got, want []messages.Event) int {
	n := 0
	for i := range got {
		if i >= len(want) || !reflect.DeepEqual(got[i], want[i]) {
			n++
		}
	}
	return n
}

// damaged makes a site with events before and after the checkpoint, and returns
// what it holds.
func damagedSite(t testing.TB) (*site, truth) {
	t.Helper()
	s := newSite(t, 3, neverFlushed())
	for round := range 2 {
		d := s.run(t)
		for i := range 5 * truthWorkspaces {
			must(commitRecord(limit(t), d.app, messages.WSID(i%truthWorkspaces)))(t)
		}
		if round == 0 {
			d.stop(t)
		} else {
			d.crash(t)
		}
	}
	store := openBolt(t, s.dir, s.app.Descriptor, bolt.Options{})
	tr, errs := readTruth(limit(t), store)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	check(t, store.Close(limit(t)))
	return s, tr
}

// copyTo copies a closed site into a directory, over the copy that was there: all
// copies together would be too much.
func (s *site) copyTo(t testing.TB, dir string) *site {
	t.Helper()
	copied := *s
	copied.dir = dir
	for _, name := range []string{"log.db", "state.db"} {
		check(t, os.WriteFile(filepath.Join(dir, name), must(os.ReadFile(s.path(name)))(t), 0o600))
	}
	return &copied
}

// examine opens a damaged site and checks that all it says is an error or right:
// what it reads is true, and what it writes goes on from there.
func (s *site) examine(t testing.TB, want truth) (errored bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(limit(t), 20*time.Second)
	defer cancel()
	store, err := bolt.Open(ctx, s.dir, s.app.Descriptor, s.bolt)
	if err != nil {
		return true
	}
	parts := partition.NewAppParts(system, partition.Options{})
	d := &deployment{parts: parts, store: store}
	defer func() { d.crash(t) }()
	if d.app, err = parts.Deploy(ctx, s.app, store); err != nil {
		return true
	}
	errored = d.app.Ready(ctx) != nil
	got, errs := readTruth(ctx, store)
	if n := want.wrongs(got); n > 0 {
		t.Errorf("%d elements are wrong", n)
	}
	for ws, events := range want.wlogs {
		tx, err := commit(ctx, d.app, ws, seqInvoice)
		if err != nil {
			errored = true
			continue
		}
		last := events[len(events)-1]
		if got := tx.Numbers()[0].Number; got != last.Numbers[0].Number+1 || tx.WLogOffset() != last.WLogOffset+1 {
			t.Errorf("workspace %d: got number %d at offset %d after %d at %d", ws, got, tx.WLogOffset(), last.Numbers[0].Number, last.WLogOffset)
		}
	}
	if ctx.Err() != nil {
		t.Error("it hangs")
	}
	errored = errored || len(errs) > 0
	// A row is not found if bbolt's page has its key wrong: see README, Limits.
	whole := reflect.DeepEqual(got.plogs, want.plogs) && reflect.DeepEqual(got.wlogs, want.wlogs)
	if !errored && !whole {
		t.Error("events are lost, and nothing tells")
	}
	return errored
}

// TestDamagedEvents flips a bit of each event in the log, one at a time.
func TestDamagedEvents(t *testing.T) {
	s, want := damagedSite(t)
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(uint64(setting("SEED", 1)), 0))
	step := 1
	if setting("LONG", 0) == 0 {
		step = 5
	}
	for lsn := 1; lsn <= 10*truthWorkspaces; lsn += step {
		damaged := s.copyTo(t, dir)
		damaged.flip(t, logKey(messages.LSN(lsn)), random)
		if !damaged.examine(t, want) {
			t.Errorf("LSN %d: the damage was not noticed", lsn)
		}
	}
}

// TestDamagedState flips a bit of some value in each bucket of state.db, and of
// log.db's epochs.
func TestDamagedState(t *testing.T) {
	s, want := damagedSite(t)
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(uint64(setting("SEED", 1)), 0))
	keys := s.keys(t, "state.db")
	maps.Copy(keys, s.keys(t, "log.db"))
	delete(keys, "log")
	for bucket, all := range keys {
		noticed := 0
		for range setting("FLIPS", 3) {
			damaged := s.copyTo(t, dir)
			damaged.flip(t, all[random.IntN(len(all))], random)
			if damaged.examine(t, want) {
				noticed++
			}
			if t.Failed() {
				t.Fatalf("bucket %s", bucket)
			}
		}
		t.Logf("bucket %-12s %d values, %d damages noticed", bucket, len(all), noticed)
	}
}

// keys lists all keys of a closed store's file by bucket.
func (s *site) keys(t testing.TB, file string) map[string][]key {
	t.Helper()
	keys := make(map[string][]key)
	s.edit(t, file, func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			return b.ForEach(func(k, _ []byte) error {
				keys[string(name)] = append(keys[string(name)], key{file, string(name), slices.Clone(k)})
				return nil
			})
		})
	})
	return keys
}

// flipByte flips a bit of a byte of a closed store's file.
func (s *site) flipByte(t testing.TB, file string, at, bit int) {
	t.Helper()
	f := must(os.OpenFile(s.path(file), os.O_RDWR, 0))(t)
	defer func() { check(t, f.Close()) }()
	content := make([]byte, 1)
	must(f.ReadAt(content, int64(at)))(t)
	content[0] ^= 1 << bit
	must(f.WriteAt(content, int64(at)))(t)
}

// TestDamagedMetaPages flips bits of the pages that bbolt begins with: of the 64
// bytes that count in each, and of what is before and behind them.
func TestDamagedMetaPages(t *testing.T) {
	s, want := damagedSite(t)
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(uint64(setting("SEED", 1)), 0))
	for n := range setting("FLIPS", 3) * 8 {
		file, page := []string{"log.db", "state.db"}[n%2], n/2%2
		at := random.IntN(96)
		damaged := s.copyTo(t, dir)
		damaged.flipByte(t, file, page*os.Getpagesize()+at, random.IntN(8))
		if noticed, counts := damaged.examine(t, want), at >= 16 && at < 80; noticed != counts {
			t.Errorf("got noticed %v, want %v", noticed, counts)
		}
		if t.Failed() {
			t.Fatalf("%s, byte %d of page %d", file, at, page)
		}
	}
}

// TestDamagedBytes flips bits of the files themselves, wherever they fall: bbolt's
// own pages are among them.
func TestDamagedBytes(t *testing.T) {
	s, want := damagedSite(t)
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(uint64(setting("SEED", 1)), 0))
	noticed, tries := 0, setting("FLIPS", 3)*8
	for n := range tries {
		damaged := s.copyTo(t, dir)
		file := []string{"log.db", "state.db"}[n%2]
		content := must(os.ReadFile(damaged.path(file)))(t)
		at := random.IntN(len(content))
		for content[at] == 0 { // most of the files is empty
			at = random.IntN(len(content))
		}
		damaged.flipByte(t, file, at, random.IntN(8))
		if damaged.examine(t, want) {
			noticed++
		}
		if t.Failed() {
			t.Fatalf("%s, byte %d of page %d", file, at%os.Getpagesize(), at/os.Getpagesize())
		}
	}
	t.Logf("%d of %d damages were noticed, the others harmless", noticed, tries)
}

// TestRebuild deletes state.db: Deploy finds everything as it was.
func TestRebuild(t *testing.T) {
	s, want := damagedSite(t)
	s.deleteState(t)
	d := s.run(t)
	got, errs := readTruth(limit(t), d.store)
	if len(errs) > 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("the rebuilt store differs: %v", errs)
	}
	if n := d.replayed(); n != 0 {
		t.Errorf("got %d events replayed after a rebuild, want 0", n)
	}
	for ws := range messages.WSID(truthWorkspaces) {
		d.invoice(t, ws, 11)
	}
	d.stop(t)
}
