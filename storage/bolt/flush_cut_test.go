package bolt

import (
	"archive/zip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/faulty"
	"github.com/partita-go/partita/storage/bolt/internal/files"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/verify"
)

// manyRanges is for flushes of many transactions.
var manyRanges = Options{Memory: 1 << 20, TailEvents: 1 << 20}

// cutStore makes a store of two partitions whose flushes take many transactions, with a part that is flushed already.
func cutStore(t *testing.T) (dir string, s *Store, writers []*writer) {
	t.Helper()
	dir = t.TempDir()
	s = open(t, dir, testDescriptor(2, messages.TrustNone), manyRanges)
	for id := range messages.PartitionID(2) {
		w := takeOver(t, s, id)
		var workspaces []messages.WSID
		for ws := range messages.WSID(20) {
			workspaces = append(workspaces, 2*ws+messages.WSID(id))
		}
		w.appendMany(100, workspaces...)
		w.flush()
		w.appendMany(200, workspaces[5:]...)
		writers = append(writers, w)
	}
	return dir, s, writers
}

// failAt lets a transaction of state.db fail, counted from 1, and returns how many there were.
func failAt(s *Store, n int, err error) (transactions *int) {
	transactions = new(int)
	faulty.CommitsOf(s.state).Before.Set(func() error {
		if *transactions++; *transactions == n {
			return err
		}
		return nil
	})
	return transactions
}

// A flush of many transactions that fails at any of them is finished by the next one, which may go further; until then
// and after that, readers and the numbers are right, and nothing is wrong in the files.
func TestFlushCutOff(t *testing.T) {
	t.Parallel()
	_, s, writers := cutStore(t)
	transactions := failAt(s, 0, nil)
	for _, w := range writers {
		w.flush()
	}
	faulty.CommitsOf(s.state).Before.Set(nil)
	if *transactions < 6 {
		t.Fatalf("got %d transactions, want many", *transactions)
	}
	want := contents(t, s)
	for n := 1; n <= *transactions; n++ {
		t.Run(fmt.Sprint("transaction ", n), func(t *testing.T) {
			dir, s, writers := cutStore(t)
			failAt(s, n, syscall.ENOSPC)
			failed := 0
			for _, w := range writers {
				if err := s.Flush(t.Context(), w.pending()); err != nil {
					expect.ErrorIs(t, err, storage.ErrFull)
					failed++
				} else {
					w.flushed = w.next
					clear(w.changed)
				}
			}
			faulty.CommitsOf(s.state).Before.Set(nil)
			expect.Equal(t, 1, failed)
			crashed := t.TempDir()
			writeFiles(t, crashed, filesOf(t, dir))
			checkSound(t, crashed)
			checkLogs(t, s, writers)
			for _, w := range writers {
				w.append(messages.WSID(w.id)) // the next flush goes further
				w.flush()
			}
			checkLogs(t, s, writers)
			closeStore(t, s)
			checkSound(t, dir)

			s = open(t, crashed, testDescriptor(2, messages.TrustNone), manyRanges)
			for id := range messages.PartitionID(2) {
				takeOver(t, s, id).flush()
			}
			if got := contents(t, s); !reflect.DeepEqual(got, want) {
				t.Error("after a crash: other contents than those of a flush that was not cut off")
			}
			closeStore(t, s)
			checkSound(t, crashed)
		})
	}
}

func checkSound(t *testing.T, dir string) {
	t.Helper()
	r, err := Verify(t.Context(), dir, verify.Options{})
	expect.NoError(t, err)
	expect.NoError(t, r.Err())
}

// checkLogs makes sure that readers find all that was appended.
func checkLogs(t *testing.T, s *Store, writers []*writer) {
	t.Helper()
	for _, w := range writers {
		expect.Equal(t, int(w.next-1), len(collectEvents(t, s.PLog(t.Context(), w.id, 0))))
		for ws, n := range w.wlog {
			expect.Equal(t, int(n), len(collectEvents(t, s.WLog(t.Context(), ws, 0))))
			expect.Equal(t, int(n), len(collectRows(t, s, ws, storage.RecordRange{Seq: testSeq})))
		}
	}
}

// If nobody knows whether a flush that was cut off was finished, the store closes, as it does after any other write.
func TestCutOffFlushFinishedUnknown(t *testing.T) {
	_, s, writers := cutStore(t)
	w := writers[0]
	failAt(s, 2, syscall.ENOSPC)
	expect.ErrorIs(t, s.Flush(t.Context(), w.pending()), storage.ErrFull)
	faulty.CommitsOf(s.state).Before.Set(nil)
	faulty.CommitsOf(s.state).After.Set(func() error { return io.ErrUnexpectedEOF })
	expect.ErrorIs(t, s.Flush(t.Context(), w.pending()), messages.ErrOutcomeUnknown)
	<-s.closing // it may be told before
	expect.ErrorIs(t, w.try(w.event(0)), storage.ErrClosed)
}

// What is met of foreign keys before a flush is cut off blocks the workspace for good, though the rest of the flush does
// not come there again.
func TestFlushCutOffAfterAConflict(t *testing.T) {
	dir, s, writers := cutStore(t)
	w := writers[0]
	plant(t, s, storage.PlaceWLog, &messages.Event{Workspace: 10, WLogOffset: w.wlog[10] + 1})
	failAt(s, 3, syscall.ENOSPC)
	expect.ErrorIs(t, s.Flush(t.Context(), w.pending()), storage.ErrFull)
	if err := w.try(w.event(10)); !conflictAt(err, storage.PlaceWLog) {
		t.Errorf("got %v, want a conflict", err)
	}
	faulty.CommitsOf(s.state).Before.Set(nil)
	closeStore(t, s)
	s = open(t, dir, testDescriptor(2, messages.TrustNone), manyRanges)
	w.s = s
	reg, err := s.TakeEpoch(t.Context(), 0)
	expect.NoError(t, err)
	w.epoch = reg.Epoch
	if err := w.try(w.event(10)); !conflictAt(err, storage.PlaceWLog) {
		t.Errorf("opened again: got %v, want a conflict", err)
	}
	key := format.ConflictKeyOf(&storage.ConflictError{Place: storage.PlaceWLog, Workspace: 10}).Append(nil)
	if get(t, s.state, format.BucketConflicts, key) == nil {
		t.Error("the conflict is not stored: it would be forgotten where the head is the log's again")
	}
	w.append(12)
}

// A log that lacks events of a flush that was cut off is too short: the workspaces that were written have them.
func TestCutOffFlushOfALongerLog(t *testing.T) {
	dir, s, writers := cutStore(t)
	w := writers[0]
	older := filesOf(t, dir)
	w.appendMany(40, 0, 2, 4)
	failAt(s, 3, syscall.ENOSPC)
	expect.ErrorIs(t, s.Flush(t.Context(), w.pending()), storage.ErrFull)
	faulty.CommitsOf(s.state).Before.Set(nil)
	older[format.StateFileName] = filesOf(t, dir)[format.StateFileName]
	shorter := t.TempDir()
	writeFiles(t, shorter, older)
	_, err := OpenExisting(t.Context(), shorter, manyRanges)
	expect.ErrorIs(t, err, storage.ErrDamaged)
}

// A head that is damaged stops the flush of its partition there, and no other one.
func TestFlushMeetsDamagedHead(t *testing.T) {
	dir, s, writers := cutStore(t)
	key := format.AppendWorkspaceKey(nil, 20)
	sound := get(t, s.state, format.BucketWorkspaces, key)
	put(t, s.state, format.BucketWorkspaces, key, []byte("rubbish"))
	_, outcomes := flushTogether(t, s, []*flushRequest{writers[0].flushRequest(), writers[1].flushRequest()})
	expect.ErrorIs(t, outcomes[0], storage.ErrDamaged)
	expect.NoError(t, outcomes[1])
	expect.ErrorIs(t, s.Flush(t.Context(), writers[0].pending()), storage.ErrDamaged, "again")
	writers[1].flushed = writers[1].next
	clear(writers[1].changed)
	writers[1].append(1)
	writers[1].flush()
	put(t, s.state, format.BucketWorkspaces, key, sound)
	writers[0].flush()
	checkLogs(t, s, writers)
	closeStore(t, s)
	checkSound(t, dir)
}

// The witness never falls behind what a flush that was cut off has written, though nobody can finish that flush.
func TestWitnessOfCutOffFlushStays(t *testing.T) {
	_, s, writers := cutStore(t)
	failAt(s, 3, syscall.ENOSPC)
	expect.ErrorIs(t, s.Flush(t.Context(), writers[1].pending()), storage.ErrFull)
	faulty.CommitsOf(s.state).Before.Set(nil)
	want := witnessOf(t, s)
	s.partitions[1].fail(storage.ErrDamaged)
	writers[0].flush()
	expect.Equal(t, want, witnessOf(t, s))
}

// A checkpoint that is damaged while the store is in use is written anew by a flush, also by one of many transactions.
func TestFlushMeetsDamagedCheckpoint(t *testing.T) {
	dir, s, writers := cutStore(t)
	key := format.AppendPartitionKey(nil, 0)
	put(t, s.state, format.BucketCheckpoints, key, []byte("rubbish"))
	writers[0].flush()
	writers[1].flush()
	closeStore(t, s)
	checkSound(t, dir)
}

// Behind damage there is nothing to be written for a flush that is alone.
func TestFlushEndsAtDamage(t *testing.T) {
	_, s, writers := cutStore(t)
	put(t, s.state, format.BucketWorkspaces, format.AppendWorkspaceKey(nil, 10), []byte("rubbish"))
	transactions := failAt(s, 0, nil)
	expect.ErrorIs(t, s.Flush(t.Context(), writers[0].pending()), storage.ErrDamaged)
	expect.Equal(t, 1, *transactions)
}

// Only the next flush may expect the checkpoint at which the one began that was finished without its caller.
func TestFinishedIsForgotten(t *testing.T) {
	_, s, writers := cutStore(t)
	w := writers[0]
	old := w.flushed
	failAt(s, 3, syscall.ENOSPC)
	expect.ErrorIs(t, s.Flush(t.Context(), w.pending()), storage.ErrFull)
	faulty.CommitsOf(s.state).Before.Set(nil)
	w.append(0)
	w.flush()
	w.append(0)
	f := w.pending()
	f.Expected = old
	expect.ErrorIs(t, s.Flush(t.Context(), f), storage.ErrCheckpoint)
	w.flush()
}

// What bbolt panics at in state.db is not said of log.db.
func TestPanicOfStateIsNotTheLogs(t *testing.T) {
	_, s, writers := cutStore(t)
	p := &projection{s: s, group: []*flushRequest{writers[0].flushRequest()}, flushTables: &s.tables}
	r := p.group[0]
	r.from, r.to = r.partition.checkpoint, r.partition.last+1
	r.takeEntries(&s.tables)
	p.collect()
	err := s.state.Update(func(tx *bbolt.Tx) error {
		expect.NoError(t, tx.DeleteBucket(format.BucketWorkspaces)) // a nil bucket: whoever uses it panics
		_, err := p.apply(tx, p.events)
		return err
	})
	expect.ErrorIs(t, err, storage.ErrDamaged)
	expect.Equal(t, true, strings.Contains(err.Error(), format.StateFileName), err)
	expect.Equal(t, false, strings.Contains(err.Error(), format.LogFileName), err)
}

// format3 is a store of an earlier version, with a state.db of format 3.
func format3(t *testing.T) (dir string) {
	t.Helper()
	return unzipped(t, "format3")
}

// unzipped is a store that an earlier version has written.
func unzipped(t *testing.T, name string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	z, err := zip.OpenReader(filepath.Join("testdata", name, "store.zip"))
	expect.NoError(t, err)
	defer func() { _ = z.Close() }()
	for _, f := range z.File {
		r, err := f.Open()
		expect.NoError(t, err)
		data, err := io.ReadAll(r)
		expect.NoError(t, err)
		expect.NoError(t, os.WriteFile(filepath.Join(dir, f.Name), data, 0o600))
	}
	return dir
}

// A state.db of format 3 is made anew from the log, but not by those who must not write.
func TestFormat3IsRebuilt(t *testing.T) {
	dir := format3(t)
	before := filesOf(t, dir)
	_, err := OpenExisting(t.Context(), dir, Options{ReadOnly: true})
	expect.ErrorIs(t, err, storage.ErrFormat)
	_, err = Verify(t.Context(), dir, verify.Options{})
	expect.ErrorIs(t, err, storage.ErrFormat)
	expect.Equal(t, true, reflect.DeepEqual(before, filesOf(t, dir)), "nothing is changed")
	var last Progress
	s := open(t, dir, testDescriptor(2, messages.TrustNone), Options{Progress: func(p Progress) { last = p }})
	expect.Equal(t, Progress{Phase: PhaseRebuild, Done: 9, Total: 9}, last)
	w := takeOver(t, s, 0)
	expect.Equal(t, 4, len(collectRows(t, s, 2, storage.RecordRange{Seq: testSeq})))
	n, err := s.Numbers(t.Context(), 2)
	expect.NoError(t, err)
	expect.Equal(t, messages.Number(1003), n.Numbers[2].Number)
	w.append(2, 4)
	w.flush()
	closeStore(t, s)
	checkSound(t, dir)
}

// A state.db of format 3 knows how long its log was: a log that has lost its end is not opened, and the file stays.
func TestFormat3KnowsALogThatIsShorter(t *testing.T) {
	dir := format3(t)
	log := openPlain(t, dir, format.RoleLog)
	expect.NoError(t, log.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(format.BucketLog)
		for lsn := messages.LSN(6); lsn <= 9; lsn++ {
			if err := b.Delete(format.AppendLSNKey(nil, lsn)); err != nil {
				return err
			}
		}
		return b.SetSequence(5)
	}))
	expect.NoError(t, log.Close())
	before := filesOf(t, dir)
	_, err := OpenExisting(t.Context(), dir, Options{})
	expect.ErrorIs(t, err, files.ErrLostEnd)
	expect.Equal(t, true, reflect.DeepEqual(before, filesOf(t, dir)), "nothing is changed")
}
