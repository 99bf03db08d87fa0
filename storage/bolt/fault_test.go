package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/faulty"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// A sync that fails leaves the outcome unknown: nothing is acknowledged, the store
// closes itself, and opened anew it shows the write wholly or not at all.
func TestUnknownOutcomeClosesTheStore(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(2, messages.TrustNone)
	s := open(t, dir, d, Options{})
	disk := diskOf(s)
	w := takeOver(t, s, 0)
	w.append(2)
	disk.After.Fail(io.ErrUnexpectedEOF)
	if err := w.try(w.event(2)); !errors.Is(err, messages.ErrOutcomeUnknown) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("got %v", err)
	}
	<-s.closing
	if err := w.try(w.event(2)); !errors.Is(err, storage.ErrClosed) {
		t.Fatalf("append: got %v", err)
	}
	if err := s.Flush(t.Context(), w.pending()); !errors.Is(err, storage.ErrClosed) {
		t.Fatalf("flush: got %v", err)
	}
	for _, err := range s.PLog(t.Context(), 0, 0) {
		if !errors.Is(err, storage.ErrClosed) {
			t.Fatalf("read: got %v", err)
		}
	}
	closeStore(t, s)
	s = open(t, dir, d, Options{})
	w = takeOver(t, s, 0)
	if w.next != 2 { // it was closed in order, and nobody was told
		t.Fatalf("got next offset %d", w.next)
	}
	w.append(2)
}

func TestUnknownOutcomeOfFlush(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	s := open(t, dir, d, Options{})
	w := takeOver(t, s, 0)
	w.append(1, 2)
	faulty.CommitsOf(s.state).After.Fail(io.ErrUnexpectedEOF)
	if err := s.Flush(t.Context(), w.pending()); !errors.Is(err, messages.ErrOutcomeUnknown) {
		t.Fatalf("got %v", err)
	}
	<-s.closing
	if err := w.try(w.event(1)); !errors.Is(err, storage.ErrClosed) {
		t.Fatalf("append: got %v", err)
	}
	closeStore(t, s)
	s = open(t, dir, d, Options{})
	w = takeOver(t, s, 0)
	w.append(1)
	w.flush()
}

// A commit that wrote nothing for want of space is refused, and leaves nothing.
func TestNoSpaceIsRefused(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	s := open(t, dir, d, Options{})
	disk, logs, states := diskOf(s), faulty.CommitsOf(s.log.File), faulty.CommitsOf(s.state)
	w := takeOver(t, s, 0)
	w.append(1)
	full := []*faulty.Point{&disk.Growth, &logs.Before, &states.Before}
	for _, p := range full {
		p.Fail(errNoSpace)
	}
	for range 3 {
		if err := w.try(w.outgrowing(1)); !errors.Is(err, storage.ErrFull) {
			t.Fatalf("append: got %v", err)
		}
		if err := s.Flush(t.Context(), w.pending()); !errors.Is(err, storage.ErrFull) {
			t.Fatalf("flush: got %v", err)
		}
		if _, err := s.TakeEpoch(t.Context(), 0); !errors.Is(err, storage.ErrFull) {
			t.Fatalf("TakeEpoch: got %v", err)
		}
	}
	if reg, err := s.Register(t.Context(), 0); err != nil || reg.Last != 1 || reg.Checkpoint != 1 || reg.Epoch != w.epoch {
		t.Fatalf("got %+v, %v", reg, err)
	}
	for _, p := range full {
		p.Clear()
	}
	w.append(1)
	w.flush()
	closeStore(t, s)
	s = open(t, dir, d, Options{})
	if got := collectEvents(t, s.PLog(t.Context(), 0, 0)); len(got) != 2 {
		t.Fatalf("got %d events", len(got))
	}
}

// The same with bbolt's own limit: pages are allocated and rolled back.
func TestMaxSize(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	s := open(t, dir, d, Options{MaxSize: 1 << 20, StateMaxSize: 1 << 19})
	w := takeOver(t, s, 0)
	var err error
	for err == nil {
		e := w.event(1)
		e.Body = make([]byte, 10_000)
		err = w.try(e)
	}
	if !errors.Is(err, storage.ErrFull) {
		t.Fatalf("append: got %v", err)
	}
	last := w.next - 1
	if last < 20 {
		t.Fatalf("only %d events fit", last)
	}
	e := w.event(1)
	e.Body = nil
	if err := w.try(e); err != nil && !errors.Is(err, storage.ErrFull) {
		t.Fatalf("small append: got %v", err)
	}
	// Pages freed by earlier commits still take something small.
	err = s.Flush(t.Context(), w.pending())
	if err != nil {
		t.Fatal(err)
	}
	w.flushed = w.next
	clear(w.changed)
	want := collectEvents(t, s.PLog(t.Context(), 0, 0))
	closeStore(t, s)
	s = open(t, dir, d, Options{})
	got := collectEvents(t, s.PLog(t.Context(), 0, 0))
	if len(got) != len(want) || messages.PLogOffset(len(got)) != w.next-1 {
		t.Fatalf("got %d events, want %d", len(got), len(want))
	}
	w = takeOver(t, s, 0)
	w.append(1)
	w.flush()
}

func TestStateMaxSize(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	s := open(t, dir, d, Options{StateMaxSize: 1 << 18})
	w := takeOver(t, s, 0)
	var err error
	for err == nil {
		for range 20 {
			e := w.event(1)
			e.Records[0].Data = make([]byte, 1000)
			if err := w.try(e); err != nil {
				t.Fatal(err)
			}
		}
		if err = s.Flush(t.Context(), w.pending()); err == nil {
			w.flushed = w.next
			clear(w.changed)
		}
	}
	if !errors.Is(err, storage.ErrFull) {
		t.Fatalf("flush: got %v", err)
	}
	if reg, err := s.Register(t.Context(), 0); err != nil || reg.Checkpoint != w.flushed {
		t.Fatalf("got %+v, %v", reg, err)
	}
	w.append(1)
	if got := collectRows(t, s, 1, storage.RecordRange{Seq: testSeq}); len(got) != int(w.next-1) {
		t.Fatalf("got %d rows, want %d", len(got), w.next-1)
	}
	closeStore(t, s)
	s = open(t, dir, d, Options{})
	w = takeOver(t, s, 0)
	w.flush()
	if got := collectRows(t, s, 1, storage.RecordRange{Seq: testSeq}); len(got) != int(w.next-1) {
		t.Fatalf("got %d rows, want %d", len(got), w.next-1)
	}
}

// A panic in bbolt is damage, and never leaves a lock behind.
func TestPanicIsDamage(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	if err := s.log.File.View(func(*bbolt.Tx) error { panic("broken page") }); !errors.Is(err, storage.ErrDamaged) {
		t.Fatalf("view: got %v", err)
	}
	if err := s.log.File.Update(func(*bbolt.Tx) error { panic("broken page") }); !errors.Is(err, storage.ErrDamaged) {
		t.Fatalf("update: got %v", err)
	}
	w.append(1)
}

// A poisoned file is never entered again; the store still closes, and can be opened
// again by the same process.
func TestPoisonedFileCloses(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	s := open(t, dir, d, Options{})
	w := takeOver(t, s, 0)
	w.append(1)
	tx, err := s.log.File.DB.Begin(true) // its locks are never released
	if err != nil {
		t.Fatal(err)
	}
	_ = tx
	s.log.File.Poison(errors.New("a panic in the middle"))
	if err := w.try(w.event(1)); !errors.Is(err, storage.ErrDamaged) {
		t.Fatalf("append: got %v", err)
	}
	closeStore(t, s)
	open(t, dir, d, Options{})
}

// A call whose context ends while its request waits has done nothing; one whose
// request was taken does not know.
func TestContextEnds(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(2, messages.TrustNone), Options{})
	w, other := takeOver(t, s, 0), takeOver(t, s, 1)
	entered, proceed := diskOf(s).Before.Hold()
	ctx, cancel := context.WithCancel(t.Context())
	taken, waiting := make(chan error), make(chan error)
	go func() {
		taken <- s.Append(ctx, storage.Batch{Partition: 0, Epoch: w.epoch, Events: []messages.Event{w.event(2)}})
	}()
	<-entered
	go func() {
		waiting <- s.Append(ctx, storage.Batch{Partition: 1, Epoch: other.epoch, Events: []messages.Event{other.event(1)}})
	}()
	for len(s.writes) == 0 {
		runtime.Gosched()
	}
	cancel()
	if err := <-taken; !errors.Is(err, messages.ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
		t.Fatalf("taken: got %v", err)
	}
	if err := <-waiting; errors.Is(err, messages.ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
		t.Fatalf("waiting: got %v", err)
	}
	if err := s.Append(ctx, storage.Batch{Partition: 0, Epoch: w.epoch}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	close(proceed)
	reg, err := s.TakeEpoch(t.Context(), 0)
	if err != nil || reg.Last != 1 {
		t.Fatalf("got %+v, %v", reg, err)
	}
	if reg, err := s.TakeEpoch(t.Context(), 1); err != nil || reg.Last != 0 {
		t.Fatalf("got %+v, %v", reg, err)
	}
}

// Close finishes what was handed over, ends with its context, and is harmless when
// repeated.
func TestClose(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	entered, proceed := diskOf(s).Before.Hold()
	done := make(chan error)
	go func() { done <- w.try(w.event(1)) }()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if _, err := s.Register(t.Context(), 0); !errors.Is(err, storage.ErrClosed) {
		t.Fatalf("got %v", err)
	}
	close(proceed)
	if err := <-done; err != nil {
		t.Fatalf("what was handed over: got %v", err)
	}
	closeStore(t, s)
	closeStore(t, s)
}

// A new epoch waits for the flush of an older one, and refuses those behind it.
func TestTakeEpochWaitsForFlush(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.append(1, 2)
	entered, proceed := faulty.CommitsOf(s.state).Before.Hold()
	flushed := make(chan error)
	go func() { flushed <- s.Flush(t.Context(), w.pending()) }()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	taken := make(chan error)
	go func() {
		_, err := s.TakeEpoch(ctx, 0)
		taken <- err
	}()
	for reg := w.epoch; reg == w.epoch; {
		r, err := s.Register(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		reg = r.Epoch
	}
	select {
	case err := <-taken:
		t.Fatalf("TakeEpoch returned during a flush: %v", err)
	default:
	}
	cancel()
	if err := <-taken; !errors.Is(err, messages.ErrOutcomeUnknown) {
		t.Fatalf("got %v", err)
	}
	close(proceed)
	if err := <-flushed; err != nil {
		t.Fatal(err)
	}
	reg, err := s.TakeEpoch(t.Context(), 0)
	if err != nil || reg.Checkpoint != 3 || reg.Epoch != 3 {
		t.Fatalf("got %+v, %v", reg, err)
	}
	if err := s.Flush(t.Context(), w.pending()); !errors.Is(err, messages.ErrFenced) {
		t.Fatalf("got %v", err)
	}
}

// A file that is cut while it is open faults when it is read. That is damage too,
// and the store still closes.
func TestFileCutWhileOpen(t *testing.T) {
	for _, size := range []int64{0, 2 * 4096} {
		for _, cut := range []string{format.LogFileName, format.StateFileName} {
			t.Run(fmt.Sprintf("%s to %d", cut, size), func(t *testing.T) {
				dir := t.TempDir()
				s := open(t, dir, testDescriptor(1, messages.TrustNone), Options{})
				w := takeOver(t, s, 0)
				w.append(1, 1)
				w.flush()
				w.append(1)
				if err := os.Truncate(filepath.Join(dir, cut), size); err != nil {
					t.Fatal(err)
				}
				forgetEnds(s)
				var last error
				for _, err := range s.PLog(t.Context(), 0, 0) {
					last = err
				}
				if !errors.Is(last, storage.ErrDamaged) {
					t.Fatalf("read: got %v", last)
				}
				if err := w.try(w.event(1)); !errors.Is(err, storage.ErrDamaged) && !errors.Is(err, messages.ErrOutcomeUnknown) {
					t.Fatalf("append: got %v", err)
				}
				closeStore(t, s)
			})
		}
	}
}

// A lack of space that is reported after the meta page was written is unknown.
func TestNoSpaceTooLateIsUnknown(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	diskOf(s).After.Fail(syscall.ENOSPC)
	if err := w.try(w.event(1)); !errors.Is(err, messages.ErrOutcomeUnknown) {
		t.Fatalf("got %v", err)
	}
}
