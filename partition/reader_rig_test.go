package partition_test

import (
	"context"
	"errors"
	"iter"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/storagetest"
)

var errInjected = errors.New("injected")

// failing is a test, of the testing package or of rapid.
type failing interface {
	Helper()
	Fatalf(format string, args ...any)
}

func noError(t failing, err error) {
	t.Helper()
	isError(t, err, nil)
}

// isError fails the test unless the error is what is wanted; nil wants none.
func isError(t failing, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("got error %v, want %v", got, want)
	}
}

func equal[T any](t failing, want, got T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}

func isTrue(t failing, holds bool, format string, args ...any) {
	t.Helper()
	if !holds {
		t.Fatalf(format, args...)
	}
}

// library is a store with its writers, and a reader of it.
type library struct {
	t       *testing.T
	ctx     context.Context
	store   storage.Store
	reader  *partition.Reader
	writers []*storagetest.Partition
}

// eachLibrary runs a test over each store.
func eachLibrary(t *testing.T, test func(t *testing.T, l *library)) {
	d := storagetest.Descriptor(messages.TrustNone)
	t.Run("bolt", func(t *testing.T) {
		// A small map keeps the files small.
		s, err := bolt.Open(t.Context(), filepath.Join(t.TempDir(), "store"), d, bolt.Options{Create: true, MmapSize: 32 << 10})
		noError(t, err)
		test(t, newLibrary(t, s))
	})
	t.Run("memory", func(t *testing.T) { test(t, memoryLibrary(t)) })
}

// memoryLibrary is a library over a store in memory into which faults can be planted.
func memoryLibrary(t *testing.T) *library {
	m, err := storagetest.NewMemory(storagetest.Descriptor(messages.TrustNone))
	noError(t, err)
	return newLibrary(t, storagetest.NewFaulty(m))
}

func newLibrary(t *testing.T, s storage.Store) *library {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	l := &library{t: t, ctx: ctx, store: s, reader: partition.NewReader(s)}
	t.Cleanup(func() {
		noError(t, s.Close(ctx))
		cancel()
	})
	for p := range messages.PartitionID(3) {
		l.writers = append(l.writers, storagetest.Take(t, s, p))
	}
	return l
}

// append writes an event to each workspace given.
func (l *library) append(workspaces ...messages.WSID) {
	l.t.Helper()
	for _, ws := range workspaces {
		l.writers[ws%3].Append(l.t, storagetest.Spec{Workspace: ws, Create: []messages.SeqID{storagetest.SeqOrder}})
	}
}

// fill writes n events, workspace after workspace, and flushes half of them.
func (l *library) fill(n int, workspaces ...messages.WSID) {
	l.t.Helper()
	for i := range n {
		l.append(workspaces[i%len(workspaces)])
		if i == n/2 {
			l.flush()
		}
	}
}

func (l *library) flush() {
	l.t.Helper()
	for _, w := range l.writers {
		w.FlushAll(l.t)
	}
}

// read collects what must be read without an error.
func (l *library) read(events iter.Seq2[messages.Event, error]) (all []messages.Event) {
	l.t.Helper()
	for e, err := range events {
		noError(l.t, err)
		all = append(all, e)
	}
	return all
}

// following is a loop that goes on in the background. Its body hands each event over.
type following struct {
	t      *testing.T
	ctx    *storagetest.Lookout
	cancel context.CancelFunc
	events chan messages.Event
	// ended gets the error that the loop ended with.
	ended chan error
}

// follow runs a loop that ends with the test at the latest.
func (l *library) follow(loop func(ctx context.Context) iter.Seq2[messages.Event, error]) *following {
	l.t.Helper()
	parent, cancel := context.WithCancel(l.ctx)
	f := &following{
		t: l.t, ctx: storagetest.NewLookout(parent), cancel: cancel,
		events: make(chan messages.Event), ended: make(chan error, 1),
	}
	go func() {
		defer close(f.ended)
		for e, err := range loop(f.ctx) {
			if err != nil {
				f.ended <- err
				continue // the sequence itself must stop
			}
			select {
			case f.events <- e:
			case <-parent.Done():
			}
		}
	}()
	l.t.Cleanup(func() {
		cancel()
		for range f.ended {
		}
	})
	return f
}

// take returns the next n events.
func (f *following) take(n int) (all []messages.Event) {
	f.t.Helper()
	for len(all) < n {
		select {
		case e := <-f.events:
			all = append(all, e)
		case err := <-f.ended:
			f.t.Fatalf("it ended with %v after %d of %d events", err, len(all), n)
		case <-f.ctx.Context.Done():
			f.t.Fatalf("waited in vain for event %d of %d", len(all)+1, n)
		}
	}
	return all
}

// waits returns when the loop waits for an event.
func (f *following) waits() {
	f.t.Helper()
	select {
	case <-f.ctx.Waits():
	case e := <-f.events:
		f.t.Fatalf("got %v, want it to wait", e)
	case err := <-f.ended:
		f.t.Fatalf("it ended with %v, want it to wait", err)
	}
}

// ends returns the error that the loop ended with, its last element. Events before it are
// let pass.
func (f *following) ends() error {
	f.t.Helper()
	var errs []error
	for {
		select {
		case <-f.events:
		case err, more := <-f.ended:
			if !more {
				equal(f.t, 1, len(errs))
				return errs[0]
			}
			errs = append(errs, err)
		}
	}
}
