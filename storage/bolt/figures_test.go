package bolt

import (
	"slices"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
)

func figures(t testing.TB, s *Store) storage.Figures {
	t.Helper()
	f, err := s.Figures(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestFiguresAreWhatWasDone: commits, flushes and what is between the two.
func TestFiguresAreWhatWasDone(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	before := figures(t, s)
	expect.Equal(t, messages.Timestamp(0), before.Oldest)
	w.append(1)
	first := w.at
	w.append(2, 2)
	f := figures(t, s)
	expect.Equal(t, messages.LSN(3), f.Events)
	expect.Equal(t, 3, f.UnflushedEvents)
	expect.Equal(t, first, f.Oldest)
	expect.Equal(t, 3, f.CommitTime.Count-before.CommitTime.Count)
	expect.Equal(t, 3, f.CommitEvents.Sum-before.CommitEvents.Sum)
	if f.CommitBytes.Sum <= before.CommitBytes.Sum || f.CommitTime.Sum <= before.CommitTime.Sum {
		t.Errorf("got %+v after %+v, want more", f, before)
	}
	w.flush()
	f = figures(t, s)
	expect.Equal(t, 0, f.UnflushedEvents)
	expect.Equal(t, messages.Timestamp(0), f.Oldest)
	expect.Equal(t, 1, f.FlushTime.Count)
	expect.Equal(t, 3, f.FlushEvents.Sum)
	var names []string
	for _, file := range f.Files {
		names = append(names, file.Name)
		if file.Size == 0 || file.Name != "log.wal" && file.Pages == 0 {
			t.Errorf("got %+v", file)
		}
	}
	if want := []string{"log.db", "state.db", "log.wal"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}

// TestFiguresOldestFollowsTheCheckpoint: what is flushed is not the oldest of what is not.
func TestFiguresOldestFollowsTheCheckpoint(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(2, messages.TrustNone), Options{})
	w, other := takeOver(t, s, 0), takeOver(t, s, 1)
	w.append(2)
	w.flush()
	other.append(3)
	other.flush()
	w.append(2)
	expect.Equal(t, w.at, figures(t, s).Oldest)
}
