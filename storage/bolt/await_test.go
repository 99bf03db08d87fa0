package bolt

import (
	"context"
	"errors"
	"io"
	"reflect"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/faulty"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/storagetest"
)

// waiting is a wait under way.
type waiting struct {
	t      *testing.T
	cancel context.CancelFunc
	ended  chan error
}

// startWaiting returns when the call has looked and found nothing.
func startWaiting(t *testing.T, call func(context.Context) error) waiting {
	t.Helper()
	parent, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	ctx := storagetest.NewLookout(parent)
	w := waiting{t: t, cancel: cancel, ended: make(chan error, 1)}
	go func() { w.ended <- call(ctx) }()
	select {
	case <-ctx.Waits():
	case err := <-w.ended:
		t.Fatalf("got %v, want it to wait", err)
	}
	return w
}

func (s *Store) waitPLog(t *testing.T, p messages.PartitionID, o messages.PLogOffset) waiting {
	t.Helper()
	return startWaiting(t, func(ctx context.Context) error { return s.AwaitPLog(ctx, p, o) })
}

func (s *Store) waitWLog(t *testing.T, ws messages.WSID, o messages.WLogOffset) waiting {
	t.Helper()
	return startWaiting(t, func(ctx context.Context) error { return s.AwaitWLog(ctx, ws, o) })
}

func (s *Store) waitAny(t *testing.T, seen uint64) waiting {
	t.Helper()
	return startWaiting(t, func(ctx context.Context) error {
		_, err := s.AwaitAny(ctx, seen)
		return err
	})
}

// end returns how the wait has ended.
func (w waiting) end() error {
	w.t.Helper()
	select {
	case err := <-w.ended:
		return err
	case <-time.After(30 * time.Second):
		w.t.Fatal("it waits for ever")
		return nil
	}
}

// bells returns how many topics of the board somebody waits for.
func (s *Store) bells() int { return reflect.ValueOf(&s.board).Elem().FieldByName("bells").Len() }

// A partition that fails says so to those who wait for its log, and to nobody else. What
// is in its log is told as before.
func TestFailedPartitionEndsWaits(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(2, messages.TrustNone), Options{})
	w, other := takeOver(t, s, 0), takeOver(t, s, 1)
	w.append(2)
	w.flush()
	e := w.event(2)
	if err := w.try(e); err != nil {
		t.Fatal(err)
	}
	plant(t, s, storage.PlacePLog, &e)
	failing := []waiting{s.waitPLog(t, 0, 3), s.waitWLog(t, 2, 3), s.waitWLog(t, 4, 1)}
	healthy := []waiting{s.waitPLog(t, 1, 1), s.waitWLog(t, 1, 1), s.waitAny(t, 2)}
	if err := s.Flush(t.Context(), w.pending()); !conflictAt(err, storage.PlacePLog) {
		t.Fatalf("flush: got %v", err)
	}
	for i, f := range failing {
		if err := f.end(); !conflictAt(err, storage.PlacePLog) {
			t.Fatalf("wait %d: got %v", i, err)
		}
	}
	for _, err := range []error{
		s.AwaitPLog(t.Context(), 0, 1), s.AwaitPLog(t.Context(), 0, 2), s.AwaitWLog(t.Context(), 2, 1), s.AwaitWLog(t.Context(), 2, 2),
	} {
		if err != nil {
			t.Fatalf("what is there: got %v", err)
		}
	}
	if err := s.AwaitPLog(t.Context(), 0, 3); !conflictAt(err, storage.PlacePLog) {
		t.Fatalf("after the failure: got %v", err)
	}
	other.append(1)
	for i, h := range healthy {
		if err := h.end(); err != nil {
			t.Fatalf("wait %d of others: got %v", i, err)
		}
	}
	if n := s.bells(); n != 0 {
		t.Fatalf("%d bells are left", n)
	}
}

// A partition that has failed when the store is opened does not let anybody wait.
func TestFailedAtOpenEndsWaits(t *testing.T) {
	dir, d, s := interleaved(t, 6)
	damageLog(t, s, 3)
	closeStore(t, s)
	s = open(t, dir, d, Options{})
	failed := 0
	for p := range messages.PartitionID(d.Partitions) {
		r, err := s.Register(t.Context(), p)
		if !errors.Is(err, storage.ErrDamaged) {
			continue
		}
		failed++
		if got := s.AwaitPLog(t.Context(), p, r.Last+1); !errors.Is(got, storage.ErrDamaged) {
			t.Errorf("partition %d: got %v, want %v", p, got, err)
		}
		if got := s.AwaitWLog(t.Context(), messages.WSID(p), 1000); !errors.Is(got, storage.ErrDamaged) {
			t.Errorf("a workspace of partition %d: got %v, want %v", p, got, err)
		}
	}
	if failed == 0 {
		t.Fatal("no partition has failed")
	}
}

// A store that closes itself, since the outcome of a write is unknown, ends all waits.
func TestUnknownOutcomeEndsWaits(t *testing.T) {
	for name, spoil := range map[string]func(*faulty.Disk, *writer) error{
		"append": func(disk *faulty.Disk, w *writer) error {
			disk.After.Fail(io.ErrUnexpectedEOF)
			return w.try(w.event(2))
		},
		"flush": func(_ *faulty.Disk, w *writer) error {
			faulty.CommitsOf(w.s.state).After.Fail(io.ErrUnexpectedEOF)
			return w.s.Flush(w.t.Context(), w.pending())
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir(), testDescriptor(2, messages.TrustNone), Options{})
			disk, w := diskOf(s), takeOver(t, s, 0)
			w.append(2)
			waits := []waiting{s.waitPLog(t, 0, 2), s.waitWLog(t, 2, 2), s.waitWLog(t, 1, 1), s.waitAny(t, 1)}
			if err := spoil(disk, w); !errors.Is(err, messages.ErrOutcomeUnknown) {
				t.Fatalf("got %v", err)
			}
			for i, w := range waits {
				if err := w.end(); !errors.Is(err, storage.ErrClosed) {
					t.Fatalf("wait %d: got %v", i, err)
				}
			}
			if n := s.bells(); n != 0 {
				t.Fatalf("%d bells are left", n)
			}
		})
	}
}

// A commit that was refused for want of space rings nothing; the next one does.
func TestNoSpaceEndsNoWait(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	waits := []waiting{s.waitPLog(t, 0, 1), s.waitWLog(t, 2, 1), s.waitAny(t, 0)}
	disk := diskOf(s)
	disk.Growth.Fail(errNoSpace)
	if err := w.try(w.event(2)); !errors.Is(err, storage.ErrFull) {
		t.Fatalf("got %v", err)
	}
	for i, wait := range waits {
		select {
		case err := <-wait.ended:
			t.Fatalf("wait %d: got %v", i, err)
		default:
		}
	}
	disk.Growth.Clear()
	w.append(2)
	for i, wait := range waits {
		if err := wait.end(); err != nil {
			t.Fatalf("wait %d: got %v", i, err)
		}
	}
}

// Those who wait are woken when the events can be read, not before: it takes a while until
// many of them can.
func TestLargeAppendEndsWaits(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	for range 8 {
		waits := []waiting{s.waitAny(t, uint64(w.next)-1), s.waitPLog(t, 0, w.next), s.waitWLog(t, 2, w.wlog[2]+1)}
		w.appendMany(1000, 2, 4, 6)
		for i, wait := range waits {
			if err := wait.end(); err != nil {
				t.Fatalf("wait %d: got %v", i, err)
			}
		}
	}
}

// Nothing is left of waits that have ended, whichever way.
func TestNoBellIsLeft(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(2, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	for i := range messages.WSID(50) {
		gone := s.waitWLog(t, 2*i, 1)
		gone.cancel()
		if err := gone.end(); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		told := []waiting{s.waitWLog(t, 2*i, 1), s.waitPLog(t, 0, w.next), s.waitAny(t, uint64(w.next)-1)}
		w.append(2 * i)
		for _, wait := range told {
			if err := wait.end(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := s.bells(); n != 0 {
		t.Fatalf("%d bells are left", n)
	}
}

// What the index of the workspaces' logs should have and has not is told of, so that
// reading tells of the damage: nobody waits for an event that is there.
func TestAwaitMeetsDamagedIndex(t *testing.T) {
	for name, spoil := range map[string]func(b *bbolt.Bucket, key []byte) error{
		"value damaged": func(b *bbolt.Bucket, key []byte) error { return b.Put(key, []byte("rubbish")) },
		"key hidden":    func(b *bbolt.Bucket, key []byte) error { return b.Delete(key) },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
			w := takeOver(t, s, 0)
			w.appendMany(100, 2)
			w.append(3)
			w.flush()
			list := format.RecordKey{Workspace: 2, ID: messages.RecordID{Seq: messages.SeqWLogOffset, Number: 1}}
			if err := s.state.Update(func(tx *bbolt.Tx) error {
				return spoil(tx.Bucket(format.BucketIndex), format.AppendIndexKey(nil, list))
			}); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := s.AwaitWLog(ctx, 2, 2); err != nil {
				t.Fatalf("got %v", err)
			}
			for _, err := range s.WLog(ctx, 2, 2) {
				if !errors.Is(err, storage.ErrDamaged) {
					t.Fatalf("read: got %v", err)
				}
			}
			s.waitWLog(t, 2, 101)
		})
	}
}

// A store that is open to be read gets no events: whoever waits for one ends with the store.
func TestAwaitReadOnly(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	s := open(t, dir, d, Options{})
	w := takeOver(t, s, 0)
	w.append(2, 2)
	w.flush()
	w.append(2)
	closeStore(t, s)
	s = open(t, dir, d, Options{ReadOnly: true})
	n, anyErr := s.AwaitAny(t.Context(), 0)
	for _, err := range []error{anyErr, s.AwaitPLog(t.Context(), 0, 3), s.AwaitWLog(t.Context(), 2, 1), s.AwaitWLog(t.Context(), 2, 3)} {
		if err != nil {
			t.Fatalf("what is there: got %v", err)
		}
	}
	if n != 3 {
		t.Fatalf("got %d events, want 3", n)
	}
	waits := []waiting{s.waitPLog(t, 0, 4), s.waitWLog(t, 2, 4), s.waitAny(t, 3)}
	closeStore(t, s)
	for i, wait := range waits {
		if err := wait.end(); !errors.Is(err, storage.ErrClosed) {
			t.Fatalf("wait %d: got %v", i, err)
		}
	}
}

// TestBrokenLogEndsWaits: where the log's next place is taken, nothing more can come.
func TestBrokenLogEndsWaits(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(2, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.append(2)
	waits := []waiting{s.waitPLog(t, 0, 2), s.waitPLog(t, 1, 1), s.waitWLog(t, 2, 2), s.waitWLog(t, 3, 1), s.waitAny(t, 1)}
	put(t, settled(t, s), format.BucketLog, format.AppendLSNKey(nil, 2), foreign)
	if err := w.try(w.event(2)); !conflictAt(err, storage.PlaceLog) {
		t.Fatalf("append: got %v", err)
	}
	for i, wait := range waits {
		if err := wait.end(); !conflictAt(err, storage.PlaceLog) {
			t.Errorf("wait %d: got %v, want the conflict", i, err)
		}
	}
	if err := s.AwaitPLog(t.Context(), 0, 1); err != nil {
		t.Errorf("what is there: got %v", err)
	}
}
