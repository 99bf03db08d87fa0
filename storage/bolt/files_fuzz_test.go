package bolt

import (
	"bytes"
	"errors"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/faulty"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
	"github.com/partita-go/partita/storage/storagetest"
	"github.com/partita-go/partita/storage/verify"
)

// FuzzFiles writes bytes anywhere into the files of a store that was closed, and of one that
// a crash has left: Verify and what opens them never panic nor hang, and whatever they tell is an error
// or right. Where Verify finds nothing, everything reads as it was written, and goes on. Whoever
// only reads changes nothing.
func FuzzFiles(f *testing.F) {
	closed, crashed := smallStore(f)
	files := []*fuzzedFile{
		closed.file(f, format.LogFileName), closed.file(f, format.StateFileName), crashed.file(f, format.LogFileName), crashed.file(f, format.StateFileName),
		crashed.file(f, format.SubscriptionsFileName), crashed.file(f, format.WALFileName),
	}
	f.Add(uint8(0), uint32(0), []byte{})
	f.Add(uint8(1), uint32(4096+32), []byte{0xff, 0xff})
	f.Add(uint8(2), uint32(3*4096), []byte("any page"))
	f.Add(uint8(3), uint32(5*4096+8), []byte{1, 0, 0xff, 0xff})
	f.Add(uint8(4), uint32(4*4096+20), []byte{3})
	f.Add(uint8(5), uint32(wal.HeaderLen-8), []byte{1})
	f.Add(uint8(5), uint32(2*wal.BlockLen+wal.WALHeadLen+wal.WALCommitLen), []byte("any event"))
	for _, c := range crashed.commits {
		f.Add(uint8(5), uint32(c.Behind-wal.SectorLen), make([]byte, wal.SectorLen))
		f.Add(uint8(5), uint32(c.Behind), []byte("where the next one begins"))
	}
	f.Fuzz(func(t *testing.T, which uint8, at uint32, data []byte) {
		file := files[int(which)%len(files)]
		from := int(at) % len(file.sound)
		data = data[:min(len(data), len(file.sound)-from)]
		path := filepath.Join(file.dir, file.name)
		overwrite(t, path, int64(from), data)
		defer overwrite(t, path, int64(from), file.sound[from:from+len(data)])
		before := filesOf(t, file.dir)
		report, err := Verify(t.Context(), file.dir, verify.Options{MaxMemory: 1 << 20})
		sound := err == nil && report.FaultCount == 0
		file.judge(t, file.dir, true, sound)
		if !maps.Equal(before, filesOf(t, file.dir)) {
			t.Fatal("a file was changed by who only reads")
		}
		file.judge(t, crashCopy(t, file.dir), false, sound)
	})
}

// fuzzedStore is a store that nobody has open, and what it has told.
type fuzzedStore struct {
	dir string
	// events are all in their order, each of a commit of its own.
	events        []messages.Event
	numbers       map[messages.WSID]storage.WorkspaceNumbers
	subscriptions []storage.Subscription
	// commits are those in log.wal.
	commits []wal.Commit
}

type fuzzedFile struct {
	*fuzzedStore
	name string
	// sound are its pages without the empty ones at its end, but for the first of those.
	sound []byte
}

func (f *fuzzedStore) file(t testing.TB, name string) *fuzzedFile {
	t.Helper()
	sound := usedOf(t, filepath.Join(f.dir, name))
	return &fuzzedFile{fuzzedStore: f, name: name, sound: append(sound, make([]byte, os.Getpagesize())...)}
}

// judge opens a store that bytes were written into, and reads all of it. Verify has said
// whether it is sound: then it must open, and go on.
func (f *fuzzedFile) judge(t *testing.T, dir string, readOnly, sound bool) {
	t.Helper()
	o := smallMap
	o.ReadOnly = readOnly
	s, err := OpenExisting(t.Context(), dir, o)
	if err != nil {
		if sound {
			t.Fatalf("Verify found nothing, and it does not open (read-only: %v): %v", readOnly, err)
		}
		return
	}
	defer func() { closeStore(t, s) }()
	if err := f.compare(t, s); err != nil && sound {
		t.Fatalf("Verify found nothing, and it does not read (read-only: %v): %v", readOnly, err)
	}
	if readOnly || !sound {
		return
	}
	takeOver(t, s, 1).append(1)
	closeStore(t, s)
	report, err := Verify(t.Context(), dir, verify.Options{})
	expect.NoError(t, errors.Join(err, report.Err()), "after it went on")
}

// compare reads all that a store has. It is right, or there is an error, which is returned.
func (f *fuzzedFile) compare(t *testing.T, s *Store) error {
	t.Helper()
	ctx := t.Context()
	events := f.events[:f.kept(t, s)]
	errs := []error{sameLog(t, s.Log(ctx, 1), events, func(*messages.Event) bool { return true })}
	for p := range messages.PartitionID(2) {
		errs = append(errs, sameLog(t, s.PLog(ctx, p, 1), events, func(e *messages.Event) bool { return e.Partition == p }))
	}
	for ws, want := range f.numbers {
		errs = append(errs, sameLog(t, s.WLog(ctx, ws, 1), events, func(e *messages.Event) bool { return e.Workspace == ws }))
		got, err := s.Numbers(ctx, ws)
		if errs = append(errs, err); err == nil {
			expect.Equal(t, want, got, "numbers")
		}
	}
	for i := range f.subscriptions {
		got, err := storagetest.WholeSubscription(ctx, s, f.subscriptions[i].Name)
		if errs = append(errs, err); err == nil {
			expect.Equal(t, f.subscriptions[i], got, "subscription")
		}
	}
	return errors.Join(errs...)
}

// kept returns how many events a store must have: all, unless a sector of an event's commit in
// log.wal is one that was never written. Such a commit was never acknowledged.
func (f *fuzzedFile) kept(t *testing.T, s *Store) int {
	t.Helper()
	n := s.lastLSN.Load()
	if n >= uint64(len(f.events)) {
		return len(f.events)
	}
	data := []byte(filesOf(t, f.dir)[format.WALFileName])
	for i := range f.commits {
		c := &f.commits[i]
		for at := c.Begin; uint64(c.First) == n+1 && at < c.Behind; at += wal.SectorLen {
			if bytes.Equal(data[at:at+wal.SectorLen], wal.NoSector[:]) {
				return int(n)
			}
		}
	}
	t.Fatalf("%d events of %d are left, and nobody is told", n, len(f.events))
	return 0
}

// sameLog reads a log, which has those of the events that belong to it. An error may end it.
func sameLog(t *testing.T, log iter.Seq2[messages.Event, error], events []messages.Event, belongs func(*messages.Event) bool) error {
	t.Helper()
	var want []messages.Event
	for i := range events {
		if belongs(&events[i]) {
			want = append(want, events[i])
		}
	}
	n := 0
	for e, err := range log {
		if err != nil {
			return err
		}
		if n == len(want) || !reflect.DeepEqual(e, want[n]) {
			t.Fatalf("event %d of %d: got %+v", n, len(want), e)
		}
		n++
	}
	expect.Equal(t, len(want), n, "events of a log")
	return nil
}

// usedOf returns a file's pages without the empty ones at its end.
func usedOf(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	end := len(bytes.TrimRight(content, "\x00"))
	return content[:min(len(content), (end/os.Getpagesize()+1)*os.Getpagesize())]
}

func overwrite(t *testing.T, path string, at int64, data []byte) {
	t.Helper()
	handle, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := handle.WriteAt(data, at); err != nil {
		t.Fatal(err)
	}
	if err := handle.Close(); err != nil {
		t.Fatal(err)
	}
}

// smallStore returns a closed store, some of whose events are projected, and the same as a
// crash leaves it: some events are in log.wal only.
func smallStore(t testing.TB) (closed, crashed *fuzzedStore) {
	t.Helper()
	dir := t.TempDir()
	s, err := Open(t.Context(), dir, testDescriptor(2, messages.TrustNone), creating(smallMap))
	expect.NoError(t, err)
	commits := faulty.CommitsOf(s.log.File)
	w := takeOver(t, s, 1)
	w.append(1, 3, 1)
	w.flush()
	w.append(3)
	settled(t, s)
	for _, name := range []string{"all", "other"} {
		expect.NoError(t, s.PutSubscription(t.Context(), storage.Subscription{
			Name: name, Next: map[messages.PartitionID]uint64{1: 3}, Parked: []storage.ParkedEvent{{Partition: 1, Offset: 2, Reason: "no"}},
		}))
	}
	release := commits.Before.HoldAll(t)
	w.append(5, 1, 3)
	crashed = &fuzzedStore{dir: crashCopy(t, dir)}
	crashed.read(t, s)
	release()
	closeStore(t, s)
	left := wal.Writer{Directory: expect.Opened(t, boltfile.OpenDirectory, crashed.dir), Store: s.files.ID, Half: wal.Half}
	r, err := left.Read()
	expect.NoError(t, err)
	expect.NoError(t, left.Close())
	crashed.commits = r.Commits
	closed = new(*crashed)
	closed.dir, closed.commits = dir, nil
	return closed, crashed
}

// read notes what the store tells.
func (f *fuzzedStore) read(t testing.TB, s *Store) {
	t.Helper()
	f.events = collectEvents(t, s.Log(t.Context(), 1))
	f.numbers = make(map[messages.WSID]storage.WorkspaceNumbers)
	for _, ws := range []messages.WSID{1, 3, 5} {
		n, err := s.Numbers(t.Context(), ws)
		expect.NoError(t, err)
		f.numbers[ws] = n
	}
	all, err := storagetest.WholeSubscriptions(t.Context(), s)
	expect.NoError(t, err)
	f.subscriptions = all
}
