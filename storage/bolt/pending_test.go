package bolt

import (
	"bytes"
	"errors"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
)

// pendingOf returns what is pending behind LSN 10: events of these lengths.
func pendingOf(lengths ...int) (p *pending, values [][]byte) {
	p = &pending{}
	p.restart(11)
	for _, n := range lengths {
		values = append(values, make([]byte, n))
	}
	return p, values
}

// What is pending is counted in bytes: it says when the applier is to hurry.
func TestPendingBytes(t *testing.T) {
	p, values := pendingOf(3, 4, 5)
	before, after := p.push(values[:2])
	equal(t, []int64{0, 7}, []int64{before, after})
	before, after = p.push(values[2:])
	equal(t, []int64{7, 12}, []int64{before, after})
	p.tell(2, nil)
	equal(t, int64(5), p.bytes)
	p.tell(1, errors.New("no"))
	equal(t, int64(5), p.bytes)
	p.tell(1, nil)
	before, _ = p.push(values)
	equal(t, int64(0), before)
}

// An attempt takes events until they are as large as it may be, and always one.
func TestPendingTake(t *testing.T) {
	p, values := pendingOf(4, 4, 4)
	p.push(values)
	for most, want := range map[int64]int{1: 1, 4: 1, 5: 2, 8: 2, 9: 3, 100: 3} {
		first, got := p.take(most)
		equal(t, 11, first)
		equal(t, want, len(got), most)
		equal(t, want, cap(got), most)
	}
}

// The first LSN goes on with what log.db has got.
func TestPendingState(t *testing.T) {
	p, values := pendingOf(1, 2, 3)
	p.skip(2)
	p.push(values)
	begun := p.state()
	equal(t, 13, begun.next)
	no := errors.New("no")
	p.tell(2, no)
	<-begun.more
	failed := p.state()
	equal(t, 13, failed.next)
	equal(t, true, failed.tries != begun.tries)
	errorIs(t, failed.failed, no)
	p.tell(2, nil)
	<-failed.more
	done := p.state()
	equal(t, 15, done.next)
	noError(t, done.failed)
	first, left := p.all()
	equal(t, 15, first)
	equal(t, values[2:], left)
}

// A log is read in any order, be an event pending or in log.db.
func TestLogReaderInAnyOrder(t *testing.T) {
	s, w, before, _ := openHooked(t, t.TempDir(), 1, 2, 3)
	before.hold(t)
	w.append(1, 2)
	all := make(map[messages.LSN]string)
	noError(t, s.viewLog(func(r *logReader) error {
		noError(t, s.pending.each(func(lsn messages.LSN, v []byte) error { all[lsn] = string(v); return nil }))
		return r.cursor.Bucket().ForEach(func(k, v []byte) error {
			lsn, _ := format.ParseLSN(k)
			all[lsn] = string(v)
			return nil
		})
	}))
	equal(t, 5, len(all))
	noError(t, s.viewLog(func(r *logReader) error {
		for _, lsn := range []messages.LSN{1, 2, 3, 4, 5, 6, 3, 2, 1, 3, 5, 0, 1, 4, 2} {
			equal(t, all[lsn], string(r.value(lsn)), lsn)
		}
		return nil
	}))
}

// The applier hurries when there is enough for a transaction, and else rests.
func TestApplierHurries(t *testing.T) {
	a := newApplier(&Store{})
	defer a.rest.Stop()
	a.added(1, applyBytes-1)
	equal(t, 0, len(a.wake))
	a.added(applyBytes-1, applyBytes)
	equal(t, 1, len(a.wake))
	a.added(applyBytes, applyBytes+1)
	equal(t, 1, len(a.wake))
}

// What both files have is written anew in transactions that are bounded, and nothing but that.
func TestRewriteLogInPieces(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), smallMap)
	takeOver(t, s, 0).append(1)
	sizes := make([]int64, 0, 2)
	settled(t, s).BeforeCommit = func() error { sizes = append(sizes, int64(len(s.wal.Left))); return nil }
	defer func() { s.log.BeforeCommit = nil }()
	half := make([]byte, applyMost/2)
	for i := range 3 {
		s.wal.Left = append(s.wal.Left, wal.Commit{First: messages.LSN(10 + i), Values: [][]byte{half}})
	}
	noError(t, s.rewriteLog())
	equal(t, []int64{3, 1}, sizes)
	noError(t, s.log.View(func(tx *bbolt.Tx) error {
		equal(t, 1, tx.Bucket(format.BucketLog).Stats().KeyN)
		return nil
	}))
}

// All commits are written anew, each with all its events: none of them stays where it was.
func TestRewriteWholeCommits(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	events := w.following(1, 16)
	for i := range events {
		events[i].Body = make([]byte, 20_000) // so that they stand in several pages
	}
	noError(t, w.try(events...))
	values, places := loggedAt(t, settled(t, s))
	equal(t, len(events), len(values))
	for i := 0; i < len(values); i += 8 {
		s.wal.Left = append(s.wal.Left, wal.Commit{First: messages.LSN(i + 1), Values: values[i : i+8]})
	}
	noError(t, s.rewriteLog())
	again, moved := loggedAt(t, s.log)
	equal(t, values, again)
	for i := range places {
		if places[i] == moved[i] {
			t.Errorf("LSN %d was not written anew", i+1)
		}
	}
}

// loggedAt returns what log.db has, and where in the map of the file.
func loggedAt(t *testing.T, log *boltfile.File) (values [][]byte, places []*byte) {
	t.Helper()
	noError(t, log.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(format.BucketLog).ForEach(func(_, v []byte) error {
			values, places = append(values, bytes.Clone(v)), append(places, &v[0])
			return nil
		})
	}))
	return values, places
}
