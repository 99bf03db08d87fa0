package bolt

import (
	"sync"
	"testing"
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
		if _, err := s.log.inspect(roleLog); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	writing.Wait()
}
