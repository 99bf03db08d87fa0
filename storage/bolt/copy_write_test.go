package bolt

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
)

// A backup is written like any other store, whatever the last commits of its files: bbolt's own copy
// has the newer meta page always in the same place.
func TestCopyIsWritten(t *testing.T) {
	for commits := range 4 {
		base, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
		s := open(t, filepath.Join(base, "store"), d, Options{})
		put := func(s *Store, name string) {
			t.Helper()
			if err := s.PutSubscription(t.Context(), storage.Subscription{Name: name}); err != nil {
				t.Errorf("%d commits: subscription %s: %v", commits, name, err)
			}
		}
		w := takeOver(t, s, 0)
		put(s, "first")
		for i := range commits {
			w.append(1)
			w.flush()
			put(s, fmt.Sprintf("number %d", i))
		}
		for _, copied := range []string{"copy", "extended"} {
			_, err := s.Backup(t.Context(), filepath.Join(base, copied), CopyOptions{})
			expect.NoError(t, err)
		}
		for again := range 2 {
			c := open(t, filepath.Join(base, "copy"), d, Options{})
			w := takeOver(t, c, 0)
			w.append(1)
			if err := c.Flush(t.Context(), w.pending()); err != nil {
				t.Errorf("%d commits, opened %d times: %v", commits, again+1, err)
			}
			put(c, fmt.Sprintf("again %d", again))
			closeStore(t, c)
		}
		d.Kinds = append(d.Kinds, messages.Kind{ID: 9, Name: "another"})
		closeStore(t, open(t, filepath.Join(base, "extended"), d, Options{}))
	}
}
