package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// filesOf reads all files of a directory.
func filesOf(t testing.TB, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for _, e := range entries {
		if e.IsDir() {
			files[e.Name()] = "directory"
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(data)
	}
	return files
}

// dump reads all entries of a bbolt file.
func dump(t testing.TB, f *boltfile.File) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := f.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			return b.ForEach(func(k, v []byte) error {
				all[fmt.Sprintf("%s/%x", name, k)] = string(v)
				return nil
			})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// someStore makes a closed store with 30 events, 20 of them projected.
func someStore(t testing.TB) (dir string, d messages.Descriptor) {
	t.Helper()
	dir, d = t.TempDir(), testDescriptor(2, messages.TrustNone)
	s := open(t, dir, d, Options{})
	for id := range messages.PartitionID(2) {
		w := takeOver(t, s, id)
		ws := messages.WSID(id)
		w.append(ws, ws+2, ws, ws+2, ws, ws, ws, ws, ws, ws)
		w.flush()
		w.append(ws, ws+2, ws, ws+2, ws)
	}
	closeStore(t, s)
	return dir, d
}

// cutLastPage cuts the last page that is not all zeros off a file, and what follows.
func cutLastPage(data []byte) []byte {
	used := len(bytes.TrimRight(data, "\x00"))
	return data[:(used-1)/4096*4096]
}

// inFile changes what is in a file of a closed store.
func inFile(name string, change func(*testing.T, *boltfile.File)) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		f, err := openPath(t, filepath.Join(dir, name), name, &bbolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		change(t, f)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Whatever is wrong with a file, opening says so and changes nothing.
func TestOpenRefusesAndTouchesNothing(t *testing.T) {
	t.Parallel()
	edit := func(name string, change func([]byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, name)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, change(data), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	setHeader := func(name string, r format.Role, change func(*format.Header, []byte) []byte) func(*testing.T, string) {
		return inFile(name, func(t *testing.T, f *boltfile.File) {
			h, err := f.ReadHeader(r)
			if err != nil {
				t.Fatal(err)
			}
			put(t, f, format.BucketHeader, format.KeyHeader, change(&h, h.Encode()))
		})
	}
	plant := func(name string, bucket, key []byte) func(*testing.T, string) {
		return inFile(name, func(t *testing.T, f *boltfile.File) { put(t, f, bucket, key, []byte("planted")) })
	}
	removeBucket := func(name string, bucket []byte) func(*testing.T, string) {
		return inFile(name, func(t *testing.T, f *boltfile.File) {
			if err := f.Update(func(tx *bbolt.Tx) error { return tx.DeleteBucket(bucket) }); err != nil {
				t.Fatal(err)
			}
		})
	}
	garbage := func([]byte) []byte { return bytes.Repeat([]byte("no database "), 5000) }
	newer := func(_ *format.Header, value []byte) []byte { value[9]++; return value }
	remove := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	directory := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			remove(name)(t, dir)
			if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name  string
		spoil func(*testing.T, string)
		want  []error
	}{
		{"log is garbage", edit(format.LogFileName, garbage), []error{storage.ErrForeign}},
		{"state is garbage", edit(format.StateFileName, garbage), []error{storage.ErrForeign}},
		{"log is empty", edit(format.LogFileName, func([]byte) []byte { return nil }), []error{storage.ErrDamaged}},
		{"log is gone", remove(format.LogFileName), []error{storage.ErrDamaged}},
		{"log is garbage and alone", func(t *testing.T, dir string) {
			remove(format.StateFileName)(t, dir)
			edit(format.LogFileName, garbage)(t, dir)
		}, []error{storage.ErrForeign}},
		{"log is little garbage", edit(format.LogFileName, func([]byte) []byte { return garbage(nil)[:5000] }), []error{storage.ErrForeign}},
		{"log is a few bytes", edit(format.LogFileName, func(b []byte) []byte { return b[:100] }), []error{storage.ErrDamaged}},
		{"log is one page", edit(format.LogFileName, func(b []byte) []byte { return b[:4096] }), []error{storage.ErrDamaged}},
		{"state is cut in its second page", edit(format.StateFileName, func(b []byte) []byte { return b[:5000] }), []error{storage.ErrDamaged}},
		{"log's meta pages are damaged", edit(format.LogFileName, func(b []byte) []byte {
			b[40]++
			b[4096+40]++
			return b
		}), []error{storage.ErrDamaged}},
		{"a key of the log is wrong", plant(format.LogFileName, format.BucketLog, []byte("zzz")), []error{storage.ErrDamaged}},
		{"a key of the epochs is wrong", plant(format.LogFileName, format.BucketEpochs, []byte("zzz")), []error{storage.ErrDamaged}},
		{"a key of the checkpoints is wrong", plant(format.StateFileName, format.BucketCheckpoints, []byte("zzz")), []error{storage.ErrDamaged}},
		{"a checkpoint is damaged", plant(format.StateFileName, format.BucketCheckpoints, format.AppendPartitionKey(nil, 1)), []error{storage.ErrDamaged}},
		{"a conflict is damaged", plant(format.StateFileName, format.BucketConflicts, []byte("zzz")), []error{storage.ErrDamaged}},
		{"projected is damaged", plant(format.StateFileName, format.BucketHeader, format.KeyProjected), []error{storage.ErrDamaged}},
		{"log lacks a bucket", removeBucket(format.LogFileName, format.BucketEpochs), []error{storage.ErrDamaged}},
		{"log is cut", edit(format.LogFileName, func(b []byte) []byte { return b[:3*4096] }), []error{storage.ErrDamaged}},
		{"state is cut", edit(format.StateFileName, func(b []byte) []byte { return b[:3*4096] }), []error{storage.ErrDamaged}},
		{"log lacks its last page", edit(format.LogFileName, cutLastPage), []error{storage.ErrDamaged}},
		{"state lacks its last page", edit(format.StateFileName, cutLastPage), []error{storage.ErrDamaged}},
		{"log is zeros", edit(format.LogFileName, func(b []byte) []byte { return make([]byte, len(b)) }), []error{storage.ErrForeign}},
		{"log has no pages", edit(format.LogFileName, func(b []byte) []byte { clear(b[2*4096:]); return b }), []error{storage.ErrDamaged}},
		{"state has no pages", edit(format.StateFileName, func(b []byte) []byte { clear(b[2*4096:]); return b }), []error{storage.ErrDamaged}},
		{"log is a directory", directory(format.LogFileName), []error{storage.ErrForeign}},
		{"state is a directory", directory(format.StateFileName), []error{storage.ErrForeign}},
		{"log is newer", setHeader(format.LogFileName, format.RoleLog, newer), []error{storage.ErrFormat}},
		{"state is newer", setHeader(format.StateFileName, format.RoleState, newer), []error{storage.ErrFormat}},
		{"state of another store", setHeader(format.StateFileName, format.RoleState, func(h *format.Header, _ []byte) []byte {
			h.ID[3]++
			return h.Encode()
		}), []error{storage.ErrForeign}},
		{"state in the log's place", func(t *testing.T, dir string) {
			data, err := os.ReadFile(filepath.Join(dir, format.StateFileName))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, format.LogFileName), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}, []error{storage.ErrForeign}},
		{"log's header is damaged", setHeader(format.LogFileName, format.RoleLog, func(_ *format.Header, value []byte) []byte {
			value[len(value)-1]++
			return value
		}), []error{storage.ErrDamaged}},
		{"another application", setHeader(format.LogFileName, format.RoleLog, func(h *format.Header, _ []byte) []byte {
			h.Descriptor.Application = "another"
			return h.Encode()
		}), []error{messages.ErrDescriptor}},
		{"a bbolt file of somebody else", func(t *testing.T, dir string) {
			remove(format.LogFileName)(t, dir)
			db, err := bbolt.Open(filepath.Join(dir, format.LogFileName), 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}, []error{storage.ErrForeign}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, d := someStore(t)
			c.spoil(t, dir)
			before := filesOf(t, dir)
			for _, readOnly := range []bool{false, true} {
				s, err := Open(t.Context(), dir, d, Options{ReadOnly: readOnly})
				if err == nil {
					closeStore(t, s)
				}
				if !slices.ContainsFunc(c.want, func(want error) bool { return errors.Is(err, want) }) {
					t.Fatalf("read-only %v: got %v, want %v", readOnly, err, c.want)
				}
				if !errors.Is(err, messages.ErrDescriptor) && !strings.Contains(err.Error(), dir) {
					t.Fatalf("read-only %v: got %v, want the path in it", readOnly, err)
				}
				if after := filesOf(t, dir); !reflect.DeepEqual(after, before) {
					t.Fatal("the files were changed")
				}
			}
		})
	}
}

func TestOpenLocked(t *testing.T) {
	dir, d := someStore(t)
	open(t, dir, d, Options{})
	before := filesOf(t, dir)
	for _, readOnly := range []bool{false, true} {
		if _, err := Open(t.Context(), dir, d, Options{LockTimeout: 1, ReadOnly: readOnly}); !errors.Is(err, storage.ErrLocked) ||
			!strings.Contains(err.Error(), "in use by this process: "+dir) {
			t.Fatalf("got %v", err)
		}
	}
	if !reflect.DeepEqual(before, filesOf(t, dir)) {
		t.Fatal("the files were changed")
	}
}

func TestOpenExisting(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	if _, err := OpenExisting(t.Context(), dir, Options{}); !errors.Is(err, storage.ErrNotFound) {
		t.Fatalf("got %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("got %v", err)
	}
	dir, d := someStore(t)
	s, err := OpenExisting(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, s)
	if !reflect.DeepEqual(s.Descriptor(), d.Normalized()) {
		t.Fatalf("got %+v", s.Descriptor())
	}
}

func TestOpenChecksArguments(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(t.Context(), dir, messages.Descriptor{}, Options{}); !errors.Is(err, messages.ErrDescriptor) {
		t.Fatalf("got %v", err)
	}
	if _, err := Open(t.Context(), dir, testDescriptor(1, 0), Options{TailEvents: -1}); !errors.Is(err, messages.ErrSettings) || !strings.Contains(err.Error(), "TailEvents") {
		t.Fatalf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, dir, testDescriptor(1, 0), Options{}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if len(filesOf(t, dir)) != 0 {
		t.Fatal("files were made")
	}
}

// Read-only changes no byte, whatever the tail holds, and refuses every write.
func TestReadOnly(t *testing.T) {
	dir, d := someStore(t)
	before := filesOf(t, dir)
	s := open(t, dir, d, Options{ReadOnly: true, TailEvents: 1})
	if _, err := s.TakeEpoch(t.Context(), 0); !errors.Is(err, ErrReadOnly) {
		t.Fatalf("got %v", err)
	}
	if err := s.Append(t.Context(), storage.Batch{}); !errors.Is(err, ErrReadOnly) {
		t.Fatalf("got %v", err)
	}
	if err := s.Flush(t.Context(), storage.Flush{}); !errors.Is(err, ErrReadOnly) {
		t.Fatalf("got %v", err)
	}
	if got := collectEvents(t, s.PLog(t.Context(), 1, 0)); len(got) != 15 {
		t.Fatalf("got %d events", len(got))
	}
	tail, err := s.Tail(t.Context(), 1, 11, 100)
	if err != nil || len(tail) != 5 {
		t.Fatalf("got %v, %v", tail, err)
	}
	second := open(t, dir, d, Options{ReadOnly: true})
	if got := collectEvents(t, second.Log(t.Context(), 0)); len(got) != 30 {
		t.Fatalf("got %d events", len(got))
	}
	closeStore(t, second)
	closeStore(t, s)
	if err := os.Remove(filepath.Join(dir, format.StateFileName)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir, d, Options{ReadOnly: true}); !errors.Is(err, storage.ErrNotFound) {
		t.Fatalf("without state.db: got %v", err)
	}
	delete(before, format.StateFileName)
	if !reflect.DeepEqual(before, filesOf(t, dir)) {
		t.Fatal("the files were changed")
	}
}

// A descriptor may add; both headers take it over, and nothing may be taken away.
func TestDescriptorExtension(t *testing.T) {
	dir, d := someStore(t)
	more := d.Normalized()
	more.Kinds = append(more.Kinds, messages.Kind{ID: 9, Name: "new kind"})
	more.Kinds[0].Sequences = append(more.Kinds[0].Sequences, messages.Sequence{ID: 77, Name: "more", Initial: 5})
	s := open(t, dir, more, Options{ReadOnly: true})
	closeStore(t, s)
	s = open(t, dir, d, Options{}) // the read-only open has added nothing
	closeStore(t, s)
	s = open(t, dir, more, Options{})
	w := takeOver(t, s, 0)
	e := w.event(0)
	e.Numbers = append(e.Numbers, messages.SequenceNumber{Seq: 77, Number: 5})
	if err := w.try(e); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	before := filesOf(t, dir)
	if _, err := Open(t.Context(), dir, d, Options{}); !errors.Is(err, messages.ErrDescriptor) {
		t.Fatalf("got %v", err)
	}
	if !reflect.DeepEqual(before, filesOf(t, dir)) {
		t.Fatal("the files were changed")
	}
	s, err := OpenExisting(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, s)
	if got := s.Descriptor(); !reflect.DeepEqual(got, more.Normalized()) {
		t.Fatalf("got %+v", got)
	}
	for f, r := range map[*boltfile.File]format.Role{s.log.File: format.RoleLog, s.state: format.RoleState} {
		h, err := f.ReadHeader(r)
		if err != nil || !reflect.DeepEqual(h.Descriptor, more.Normalized()) {
			t.Fatalf("%s: got %+v, %v", f.Name, h, err)
		}
	}
}

// Deleted, state.db is rebuilt to what it was, in one piece or in many.
func TestRebuild(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(3, messages.TrustNone)
	s := open(t, dir, d, Options{})
	var writers []*writer
	for id := range messages.PartitionID(3) {
		w := takeOver(t, s, id)
		w.appendMany(2000+1000*int(id), messages.WSID(id), messages.WSID(id)+3, messages.WSID(id)+30)
		w.append(messages.WSID(id))
		e := w.event(messages.WSID(id))
		e.Records = append(e.Records,
			messages.Record{ID: messages.RecordID{Seq: testSeq, Number: 1000}, Data: []byte("updated")},
			messages.Record{ID: messages.RecordID{Seq: testSeq, Number: 7}, New: true, Data: []byte("singleton")})
		if err := w.try(e); err != nil {
			t.Fatal(err)
		}
		writers = append(writers, w)
	}
	for _, w := range writers {
		w.flush()
	}
	want := contents(t, s)
	closeStore(t, s)
	if err := os.Remove(filepath.Join(dir, format.StateFileName)); err != nil {
		t.Fatal(err)
	}
	var last Progress
	s = open(t, dir, d, Options{Progress: func(p Progress) { last = p }})
	if got := contents(t, s); !reflect.DeepEqual(got, want) {
		t.Fatal("the rebuilt state differs")
	}
	if st := s.Stats(); st.Rebuilt != 9006 || st.TailEvents != 0 || last.Done != 9006 || last.Total != 9006 || last.Phase != PhaseRebuild {
		t.Fatalf("got %+v, %+v", st, last)
	}
	takeOver(t, s, 1).append(1)
}

// A tail beyond the limit is projected by Open.
func TestOpenProjectsLongTail(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(2, messages.TrustRecords)
	s := open(t, dir, d, Options{})
	w := takeOver(t, s, 0)
	w.appendMany(5000, 2, 4, 6)
	closeStore(t, s)
	s = open(t, dir, d, Options{TailEvents: 5000})
	if st := s.Stats(); st.Rebuilt != 0 || st.TailEvents != 5000 {
		t.Fatalf("got %+v", st)
	}
	closeStore(t, s)
	s = open(t, dir, d, Options{TailEvents: 4999})
	if st := s.Stats(); st.Rebuilt != 5000 || st.TailEvents != 0 {
		t.Fatalf("got %+v", st)
	}
	if reg, err := s.Register(t.Context(), 0); err != nil || reg.Checkpoint != 5001 {
		t.Fatalf("got %+v, %v", reg, err)
	}
	takeOver(t, s, 0).append(2)
}

// A partition that has been idle for long does not make opening scan what others
// have written since.
func TestIdlePartitionCostsNothing(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(3, messages.TrustNone)
	s := open(t, dir, d, Options{})
	idle := takeOver(t, s, 0)
	idle.append(0, 3)
	idle.flush()
	w := takeOver(t, s, 1)
	for range 5 {
		w.appendMany(2000, 1, 4)
		w.flush()
	}
	w.append(1, 4, 1)
	closeStore(t, s)
	s = open(t, dir, d, Options{})
	if st := s.Stats(); st.Scanned != 3 || st.TailEvents != 3 || st.Events != 10_005 {
		t.Fatalf("got %+v", st)
	}
	reg, err := s.Register(t.Context(), 0)
	if err != nil || reg.Last != 2 || reg.LastRegisteredAt != 2 || reg.Checkpoint != 3 {
		t.Fatalf("got %+v, %v", reg, err)
	}
	takeOver(t, s, 0).append(0)
	takeOver(t, s, 2).append(2)
}

// A crash while the two files are made leaves something that opens.
func TestCrashWhileCreating(t *testing.T) {
	d := testDescriptor(1, messages.TrustNone)
	t.Run("only log.db", func(t *testing.T) {
		dir := t.TempDir()
		closeStore(t, open(t, dir, d, Options{}))
		if err := os.Remove(filepath.Join(dir, format.StateFileName)); err != nil {
			t.Fatal(err)
		}
		takeOver(t, open(t, dir, d, Options{}), 0).append(1)
	})
	t.Run("only leftovers", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "log.db.new-1"), []byte("torn"), 0o600); err != nil {
			t.Fatal(err)
		}
		takeOver(t, open(t, dir, d, Options{}), 0).append(1)
	})
	t.Run("empty files", func(t *testing.T) {
		dir := t.TempDir()
		for _, name := range []string{format.LogFileName, format.StateFileName} {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		takeOver(t, open(t, dir, d, Options{}), 0).append(1)
	})
}

// A log that ends before its projections has lost events.
func TestLogOlderThanState(t *testing.T) {
	dir, d := someStore(t)
	old := filesOf(t, dir)[format.LogFileName]
	s := open(t, dir, d, Options{})
	w := takeOver(t, s, 0)
	w.append(0, 0)
	w.flush()
	closeStore(t, s)
	if err := os.WriteFile(filepath.Join(dir, format.LogFileName), []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir, d, Options{}); !errors.Is(err, storage.ErrDamaged) {
		t.Fatalf("got %v", err)
	}
}

// A file without its header that has other buckets of ours is damaged, not foreign: a bit of the
// bucket's name may be another one.
func TestHeaderThatIsGone(t *testing.T) {
	d := testDescriptor(1, messages.TrustNone)
	for _, name := range []string{format.LogFileName, format.StateFileName} {
		dir := t.TempDir()
		closeStore(t, open(t, dir, d, smallMap))
		inFile(name, func(t *testing.T, f *boltfile.File) {
			expect.NoError(t, f.Update(func(tx *bbolt.Tx) error { return tx.DeleteBucket(format.BucketHeader) }))
		})(t, dir)
		_, err := Open(t.Context(), dir, d, smallMap)
		expect.ErrorIs(t, err, storage.ErrDamaged, name)
	}
}
