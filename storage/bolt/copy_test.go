package bolt

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/verify"
)

// sameEvents compares all events of two stores.
func sameEvents(t *testing.T, a, b string) {
	t.Helper()
	first, second := openToRead(t, a), openToRead(t, b)
	got, want := collectEvents(t, second.Log(t.Context(), 1)), collectEvents(t, first.Log(t.Context(), 1))
	closeStore(t, first)
	closeStore(t, second)
	if len(got) != len(want) || len(got) == 0 {
		t.Fatalf("got %d events, want %d", len(got), len(want))
	}
	for i := range got {
		if string(format.EncodeEvent(&got[i])) != string(format.EncodeEvent(&want[i])) {
			t.Errorf("event %d differs", i+1)
		}
	}
}

func openToRead(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := OpenExisting(t.Context(), dir, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

// nothingAt makes sure that a copy that failed left nothing where it would have been.
func nothingAt(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("%s was left", e.Name())
	}
}

// A backup of a store in use holds all that was durable when it began, is sound, and can
// be written to. When either file was copied more is written and projected: the
// projections of the copy may be behind its log, never ahead.
func TestBackupInUse(t *testing.T) {
	dir, s := verifiable(t)
	w := takeOver(t, s, 0)
	to := filepath.Join(t.TempDir(), "deep", "backup")
	more := CopyOptions{Progress: func(p CopyProgress) {
		if p.Done == p.Total {
			w.append(0, 2, 4)
			w.flush()
		}
	}}
	copied, err := s.Backup(t.Context(), to, more)
	if err != nil {
		t.Fatal(err)
	}
	if copied.Events < 9 || copied.Report.Events != uint64(copied.Events) || copied.LogTo == 0 || copied.StateTo == 0 || w.next < 12 {
		t.Errorf("got %+v", copied)
	}
	second := filepath.Join(t.TempDir(), "backup")
	if err := os.Mkdir(second, 0o700); err != nil {
		t.Fatal(err)
	}
	whole, err := s.Backup(t.Context(), second, CopyOptions{})
	if err != nil || whole.Events != messages.LSN(s.lastLSN.Load()) || whole.ID != s.files.ID.String() {
		t.Fatalf("got %+v, %v", whole, err)
	}
	closeStore(t, s)
	sameEvents(t, dir, second)
	written, err := OpenExisting(t.Context(), to, Options{})
	if err != nil {
		t.Fatal(err)
	}
	takeOver(t, written, 0).append(0)
	closeStore(t, written)
}

func TestBackupOfClosedStore(t *testing.T) {
	_, s := verifiable(t)
	closeStore(t, s)
	if _, err := s.Backup(t.Context(), filepath.Join(t.TempDir(), "b"), CopyOptions{}); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// Nothing is overwritten, and nothing is left of a copy that did not succeed.
func TestCopyRefuses(t *testing.T) {
	sound, s := verifiable(t)
	closeStore(t, s)
	dir, s := verifiable(t)
	damageLog(t, s, 3)
	closeStore(t, s)
	s = openToRead(t, dir)
	base := t.TempDir()
	to := filepath.Join(base, "copy")
	ended, cancel := context.WithCancel(t.Context())
	for name, copyTo := range eachCopy(s, dir) {
		before := hashes(t, dir)
		if _, err := copyTo(t.Context(), dir, CopyOptions{}); !errors.Is(err, ErrExists) {
			t.Errorf("%s over a store: got %v", name, err)
		}
		for _, file := range []string{format.LogFileName, format.WALFileName, format.SubscriptionsFileName} {
			if _, err := copyTo(t.Context(), filepath.Join(dir, file), CopyOptions{}); !errors.Is(err, ErrExists) {
				t.Errorf("%s under the name of %s: got %v", name, file, err)
			}
		}
		if _, err := copyTo(t.Context(), to, CopyOptions{}); !errors.Is(err, verify.ErrFaults) {
			t.Errorf("%s of a damaged store: got %v", name, err)
		}
		nothingAt(t, to)
		if hashes(t, dir) != before {
			t.Errorf("%s changed the store", name)
		}
	}
	cancel()
	if _, err := s.Backup(ended, to, CopyOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	for phase, copyTo := range map[string]func(context.Context, CopyOptions) (Copied, error){
		"copy state.db":    func(ctx context.Context, o CopyOptions) (Copied, error) { return s.Backup(ctx, to, o) },
		"copy log.db":      func(ctx context.Context, o CopyOptions) (Copied, error) { return Compact(ctx, dir, to, o) },
		"rebuild state.db": func(ctx context.Context, o CopyOptions) (Copied, error) { return Restore(ctx, sound, to, o) },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := copyTo(ctx, CopyOptions{Progress: func(p CopyProgress) {
			if p.Phase == phase {
				cancel()
			}
		}})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", phase, err)
		}
		nothingAt(t, to)
		cancel()
	}
	if _, err := s.Backup(t.Context(), to, CopyOptions{SkipVerify: true}); err != nil {
		t.Errorf("got %v", err)
	}
}

// A restored store has another id, finds all ids by it, and only needs log.db.
func TestRestore(t *testing.T) {
	dir, s := verifiable(t)
	id := s.files.ID.String()
	closeStore(t, s)
	from := filepath.Join(t.TempDir(), "only-log")
	content, err := os.ReadFile(filepath.Join(dir, format.LogFileName))
	if err != nil {
		t.Fatal(err)
	}
	writeFiles(t, mkdir(t, from), map[string]string{format.LogFileName: string(content)})
	to := filepath.Join(t.TempDir(), "restored")
	copied, err := Restore(t.Context(), from, to, CopyOptions{})
	if err != nil || copied.Events != 9 || copied.ID == id || len(copied.ID) != len(id) {
		t.Fatalf("got %+v, %v, the copy was of store %s", copied, err, id)
	}
	sameEvents(t, dir, to)
	restored := openToRead(t, to)
	if restored.files.ID.String() != copied.ID {
		t.Errorf("got id %v, want %s", restored.files.ID, copied.ID)
	}
	for ws, ids := range map[messages.WSID]map[byte]messages.WLogOffset{0: {1: 1, 2: 2}, 2: {3: 3}} {
		for id, at := range ids {
			checkFind(t, restored, ws, messages.DedupID{id}, at)
		}
	}
	if _, err := Restore(t.Context(), t.TempDir(), filepath.Join(t.TempDir(), "x"), CopyOptions{}); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func mkdir(t *testing.T, dir string) string {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A copy without free pages holds the same, in less room.
func TestCompact(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	for range 10 {
		w.appendMany(200, 1, 2, 3, 4, 5, 6, 7, 8, 9)
		w.flush()
	}
	w.appendNamed(3, messages.DedupID{9})
	w.flush()
	closeStore(t, s)
	to := filepath.Join(t.TempDir(), "compact")
	copied, err := Compact(t.Context(), dir, to, CopyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sameEvents(t, dir, to)
	a, b := openToRead(t, dir), openToRead(t, to)
	if a.files.ID != b.files.ID || copied.Events != 2001 {
		t.Errorf("got %+v, ids %v and %v", copied, a.files.ID, b.files.ID)
	}
	before, err := a.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	after, err := b.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if used := after.State.Pages - after.State.FreePage; used >= before.State.Pages || copied.StateTo >= copied.StateFrom {
		t.Errorf("got %+v, was %+v", after.State, before.State)
	}
	if before.Workspaces != 9 || after.Workspaces != 9 || after.Projected != before.Projected || before.Partitions[0].Lag() != 0 {
		t.Errorf("got %+v, was %+v", after, before)
	}
	checkFind(t, b, 3, messages.DedupID{9}, w.wlog[3])
	if got, want := sequenceOf(t, b), sequenceOf(t, a); got != want || got != 2001 {
		t.Errorf("got sequence %d of the log, want %d", got, want)
	}
}

// sequenceOf returns what tells that entries at the end of the log are lost.
func sequenceOf(t *testing.T, s *Store) (n uint64) {
	t.Helper()
	err := s.log.File.View(func(tx *bbolt.Tx) error {
		n = tx.Bucket(format.BucketLog).Sequence()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
