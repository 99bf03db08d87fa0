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

// TestInspectWhileClosing: whoever inspects a store that is being closed is told so.
func TestInspectWhileClosing(t *testing.T) {
	for range 20 {
		s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
		var inspecting sync.WaitGroup
		begun := make(chan struct{})
		inspecting.Go(func() {
			for i := 0; ; i++ {
				_, err := s.Inspect(t.Context())
				if i == 0 {
					close(begun)
				}
				if err != nil {
					if !errors.Is(err, storage.ErrClosed) {
						t.Errorf("got %v, want ErrClosed", err)
					}
					return
				}
			}
		})
		<-begun
		closeStore(t, s)
		inspecting.Wait()
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
