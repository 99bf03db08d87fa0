package bolt

import (
	"errors"
	"sync"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// TestInspectWhileWritten: commits that overtake an inspection are no damage.
func TestInspectWhileWritten(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, 0), Options{})
	stop := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := s.TakeEpoch(t.Context(), 0); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 20000 {
		if _, err := s.log.File.Inspect(format.RoleLog); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	writing.Wait()
}

// TestAskedWhileClosing: whoever asks a store about itself while it is being closed is told so.
func TestAskedWhileClosing(t *testing.T) {
	for name, ask := range map[string]func(*Store) error{
		"Inspect": func(s *Store) error { _, err := s.Inspect(t.Context()); return err },
		"Figures": func(s *Store) error { _, err := s.Figures(t.Context()); return err },
	} {
		for range 20 {
			s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
			var asking sync.WaitGroup
			begun := make(chan struct{})
			asking.Go(func() {
				err := ask(s)
				for close(begun); err == nil; {
					err = ask(s)
				}
				if !errors.Is(err, storage.ErrClosed) {
					t.Errorf("%s: got %v, want ErrClosed", name, err)
				}
			})
			<-begun
			closeStore(t, s)
			asking.Wait()
		}
	}
}

// TestInspectWhileGrowing: the file is mapped anew meanwhile.
func TestInspectWhileGrowing(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{MmapSize: 1})
	w := takeOver(t, s, 0)
	inspected := make(chan error)
	stop := make(chan struct{})
	go func() {
		for {
			_, err := s.Inspect(t.Context())
			select {
			case <-stop:
				inspected <- err
				return
			default:
			}
			if err != nil {
				t.Error(err)
			}
		}
	}()
	for range 20 {
		e := w.event(2)
		e.Body = make([]byte, 1<<20)
		if err := w.try(e); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	if err := <-inspected; err != nil {
		t.Error(err)
	}
}
