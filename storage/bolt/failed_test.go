package bolt

import (
	"syscall"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/faulty"
)

// Whichever file is lost, the store says why it has closed itself. A replica does, whose log tells nothing after that.
func TestFailedTellsWhy(t *testing.T) {
	for name, lose := range map[string]func(s *Store) *boltfile.File{
		"log.db":           func(s *Store) *boltfile.File { return s.log.File },
		"state.db":         func(s *Store) *boltfile.File { return s.state },
		"subscriptions.db": func(s *Store) *boltfile.File { return s.files.Subscriptions.Load() },
	} {
		t.Run(name, func(t *testing.T) {
			r, w := subscribingThree(t)
			r.sameSubscriptions(t, w.s)
			s := r.nodes[1].store
			expect.NoError(t, s.Failed())
			faulty.CommitsOf(lose(s)).After.Fail(syscall.EIO)
			expect.NoError(t, w.s.MoveSubscription(t.Context(), moveTo("s", 0, 2)))
			w.append(1)
			untilHead(t, s, w.s)
			_ = s.subscriptions.AwaitTaken(t.Context())
			_, _ = s.replica.flush()
			<-s.closing
			expect.ErrorIs(t, s.Failed(), messages.ErrOutcomeUnknown)
			expect.ErrorIs(t, s.Failed(), syscall.EIO)
			closesInTime(t, r.nodes[1])
			expect.NoError(t, w.s.Close(t.Context()))
			expect.NoError(t, w.s.Failed())
		})
	}
}
