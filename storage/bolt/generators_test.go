package bolt

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/idsdb"
	"github.com/partita-go/partita/storage/verify"
)

var _ ids.GeneratorCounter = (*Store)(nil)

// nextOf takes a number, which must be the one that is wanted.
func nextOf(t *testing.T, s *Store, launch, want uint32) {
	t.Helper()
	if n, err := s.NextGenerator(t.Context(), launch); err != nil || n != want {
		t.Errorf("launch %d: got %d, %v, want %d", launch, n, err, want)
	}
}

// withGenerators returns a store that was closed after generators were numbered: 3 of launch 1, 1 of launch 7.
func withGenerators(t *testing.T) string {
	t.Helper()
	dir, s := verifiable(t)
	for n := range uint32(3) {
		nextOf(t, s, 1, n+1)
	}
	nextOf(t, s, 7, 1)
	closeStore(t, s)
	return dir
}

func reopen(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := OpenExisting(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

// Each launch counts for itself, and goes on when the store is opened again. Whoever takes no number has no file.
func TestGeneratorsAreNumbered(t *testing.T) {
	dir, s := verifiable(t)
	closeStore(t, s)
	path := filepath.Join(dir, format.IDsFileName)
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("before the first number: got %v, want no %s", err, format.IDsFileName)
	}
	for round := range uint32(3) {
		s := reopen(t, dir)
		for n := range uint32(4) {
			nextOf(t, s, 1, round*4+n+1)
			nextOf(t, s, 99_999-round, n+1)
		}
		closeStore(t, s)
	}
	if r, err := Verify(t.Context(), dir, verify.Options{}); err != nil || r.Err() != nil {
		t.Errorf("got %v, %v", r, err)
	}
}

// Of many who take numbers at the same time each gets another one.
func TestGeneratorsBesideEachOther(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(2, messages.TrustNone), Options{})
	const callers, each = 4, 5
	var wait sync.WaitGroup
	var mu sync.Mutex
	seen := make(map[uint32]bool)
	for range callers {
		wait.Go(func() {
			for range each {
				n, err := s.NextGenerator(t.Context(), 1)
				mu.Lock()
				if err != nil || seen[n] || n < 1 || n > callers*each {
					t.Errorf("got %d, %v, want another one of 1 to %d", n, err, callers*each)
				}
				seen[n] = true
				mu.Unlock()
			}
		})
	}
	wait.Wait()
}

// Nobody waits longer than its context lets it, nor for a store that is closed or only read.
func TestGeneratorsOfNoStore(t *testing.T) {
	dir := withGenerators(t)
	s := reopen(t, dir)
	held, release, read := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		read <- s.launches.Read(t.Context(), func(*boltfile.File) error {
			close(held)
			<-release
			return nil
		})
	}()
	<-held
	ctx, cancel := context.WithCancel(t.Context())
	waiting := make(chan error)
	go func() {
		_, err := s.NextGenerator(ctx, 1)
		waiting <- err
	}()
	cancel()
	if err := <-waiting; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that the context has ended", err)
	}
	go func() {
		_, err := s.NextGenerator(t.Context(), 1)
		waiting <- err
	}()
	s.triggerClose()
	close(release)
	expect.NoError(t, <-read)
	if err := <-waiting; !errors.Is(err, storage.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	closeStore(t, s)
	// Who has asked before the store was closed, and comes to the file only now.
	late, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if err := s.launches.Next(late, &format.Generator{Launch: 1}); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	if _, err := s.NextGenerator(t.Context(), 1); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	if _, err := openToRead(t, dir).NextGenerator(t.Context(), 1); !errors.Is(err, ErrReadOnly) {
		t.Errorf("got %v, want ErrReadOnly", err)
	}
}

// Backups and compacted stores go on where they were. Of a restored one, whose original may have gone on, no launch does
// that it knows.
func TestGeneratorsOfCopies(t *testing.T) {
	dir, base := withGenerators(t), t.TempDir()
	s := reopen(t, dir)
	backup := filepath.Join(base, "backup")
	if _, err := s.Backup(t.Context(), backup, CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	nextOf(t, s, 1, 4)
	closeStore(t, s)
	compacted, restored := filepath.Join(base, "compacted"), filepath.Join(base, "restored")
	if _, err := Restore(t.Context(), backup, restored, CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := Compact(t.Context(), dir, compacted, CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	nextOf(t, reopen(t, backup), 1, 4)
	c := reopen(t, compacted)
	nextOf(t, c, 1, 5)
	nextOf(t, c, 7, 2)
	r := reopen(t, restored)
	for range 2 {
		nextOf(t, r, 1, math.MaxUint32)
		nextOf(t, r, 7, math.MaxUint32)
	}
	nextOf(t, r, 8, 1)
	if _, err := ids.NewDecimalGenerator(t.Context(), r, 1); !errors.Is(err, ids.ErrLaunchUsedUp) {
		t.Errorf("got %v, want ErrLaunchUsedUp", err)
	}
}

// generatorDoctoring is a way to make ids.db wrong, and what the error says.
type generatorDoctoring struct {
	do   func(*testing.T, *boltfile.File)
	want string
}

func generatorDoctorings() map[string]generatorDoctoring {
	key := []byte{0, 0, 0, 1}
	moved := func(t *testing.T, f *boltfile.File) {
		put(t, f, format.BucketLaunches, []byte{0, 0, 0, 2}, get(t, f, format.BucketLaunches, key))
		removing(format.BucketLaunches, key)(t, f)
	}
	zero := func(t *testing.T, f *boltfile.File) {
		put(t, f, format.BucketLaunches, key, format.SealedUint(nil, format.BucketLaunches, key, 0))
	}
	return map[string]generatorDoctoring{
		"a launch is lost":       {removing(format.BucketLaunches, key), "got 1 launches, want 2"},
		"a launch is damaged":    {spoiling(format.BucketLaunches, key), "launch 00000001: checksum"},
		"a launch is another's":  {moved, "launch 00000002: checksum"},
		"a number is none":       {zero, "launch 00000001"},
		"the count is lost":      {removing(format.BucketHeader, format.KeyLaunches), "bucket header, launches"},
		"the count is different": {func(t *testing.T, f *boltfile.File) { mustPutCount(t, f, 3) }, "got 2 launches, want 3"},
	}
}

func mustPutCount(t *testing.T, f *boltfile.File, n uint64) {
	t.Helper()
	if err := f.Update(func(tx *bbolt.Tx) error { return idsdb.PutCount(tx, n) }); err != nil {
		t.Fatal(err)
	}
}

// What is damaged gives no number, and no copy; verify finds it. The store is not held up otherwise.
func TestDamagedGenerators(t *testing.T) {
	for name, way := range generatorDoctorings() {
		t.Run(name, func(t *testing.T) {
			dir := withGenerators(t)
			f := openPlain(t, dir, format.RoleIDs)
			way.do(t, f)
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			s := reopen(t, dir)
			for _, launch := range []uint32{1, 7, 8} {
				n, err := s.NextGenerator(t.Context(), launch)
				if !errors.Is(err, storage.ErrDamaged) || !strings.Contains(err.Error(), way.want) || n != 0 {
					t.Errorf("launch %d: got %d, %v, want %s", launch, n, err, way.want)
				}
			}
			if _, err := s.Backup(t.Context(), filepath.Join(t.TempDir(), "copy"), CopyOptions{}); !errors.Is(err, storage.ErrDamaged) {
				t.Errorf("backup: got %v, want ErrDamaged", err)
			}
			closeStore(t, s)
			r, err := Verify(t.Context(), dir, verify.Options{})
			if err != nil || r.FaultCount != 1 || !strings.Contains(r.String(), way.want) {
				t.Errorf("verify: got %v, %v, want %s", &r, err, way.want)
			}
		})
	}
}

// A file that is cut or another store's is refused.
func TestForeignGenerators(t *testing.T) {
	dir, other := withGenerators(t), withGenerators(t)
	own := filesOf(t, dir)[format.IDsFileName]
	for content, want := range map[string]error{
		filesOf(t, other)[format.IDsFileName]: storage.ErrForeign, "": storage.ErrDamaged, own[:100]: storage.ErrDamaged, own[:os.Getpagesize()*3]: storage.ErrDamaged,
	} {
		writeFiles(t, dir, map[string]string{format.IDsFileName: content})
		s := reopen(t, dir)
		if n, err := s.NextGenerator(t.Context(), 1); !errors.Is(err, want) || n != 0 {
			t.Errorf("%d bytes: got %d, %v, want %v", len(content), n, err, want)
		}
		closeStore(t, s)
		if r, err := Verify(t.Context(), dir, verify.Options{}); errors.Join(err, r.Err()) == nil {
			t.Errorf("%d bytes: verify finds nothing", len(content))
		}
	}
	writeFiles(t, dir, map[string]string{format.IDsFileName: own})
	nextOf(t, reopen(t, dir), 1, 4)
}

// Bits are flipped all over the file: the next number is right, or an error.
func TestFlippedBitsInGenerators(t *testing.T) {
	t.Parallel()
	dir := withGenerators(t)
	path := filepath.Join(dir, format.IDsFileName)
	sound := usedOf(t, path)
	s, found, flips := reopen(t, dir), 0, 0
	for at := range sound {
		if sound[at] == 0 && at%61 != 0 {
			continue // most of the file is empty
		}
		flips++
		overwrite(t, path, int64(at), []byte{sound[at] ^ 1<<(flips%8)})
		n, err := s.NextGenerator(t.Context(), 1)
		if err != nil {
			found++
		}
		if err == nil && n != 4 || err != nil && n != 0 {
			t.Fatalf("byte %d: got %d, %v, want 4 or an error", at, n, err)
		}
		overwrite(t, path, 0, sound)
	}
	nextOf(t, s, 1, 4)
	if found < flips/10 {
		t.Errorf("%d of %d flips were found", found, flips)
	}
	t.Logf("%d of %d flips were found, the others change nothing", found, flips)
}
