package rows

import (
	"context"
	"sync"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/bench/internal/event"
	"github.com/partita-go/partita/bench/internal/measure"
)

func TestLimitCommitsAllThatWait(t *testing.T) {
	l := limitOf(t, 10)
	if err := l.open(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	defer l.log.db.Close()
	for i := range l.callers[1:] {
		l.queue <- &l.callers[i+1]
	}
	l.commit(&l.callers[0])
	if l.commits != 1 {
		t.Errorf("got %d commits, want 1", l.commits)
	}
	for i := range l.callers {
		if got := <-l.callers[i].answer; got.err != nil || got.number != uint64(i+1) {
			t.Errorf("caller %d: got %+v, want number %d", i, got, i+1)
		}
	}
	if stored, err := l.log.stored(t.Context(), event.ValueSize); err != nil || stored != 10 {
		t.Errorf("got %d stored, %v, want 10", stored, err)
	}
}

func limitOf(t *testing.T, callers int) *limit {
	t.Helper()
	l, ok := newLimit(measure.Settings{Callers: callers, Workspaces: 3}).(*limit)
	if !ok {
		t.Fatal("got no limit")
	}
	return l
}

// doAll lets each caller of a row make some calls.
func doAll(t *testing.T, row measure.Row, callers, calls int) {
	t.Helper()
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for range calls {
				if err := row.Do(t.Context(), caller); err != nil {
					t.Errorf("caller %d: %v", caller, err)
				}
			}
		})
	}
	all.Wait()
}

func TestLimitStoresEachEventOnce(t *testing.T) {
	l := limitOf(t, 8)
	if err := l.Setup(t.Context(), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	doAll(t, l, 8, 25)
	if text, err := l.Check(t.Context(), 0); err != nil || text == "" {
		t.Errorf("check: got %q, %v", text, err)
	}
	if sizes, err := l.Sizes(); err != nil || len(sizes) != 1 || sizes[0].Bytes < 200*event.ValueSize {
		t.Errorf("sizes: got %v, %v", sizes, err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if l.commits == 0 || l.commits > 200 {
		t.Errorf("got %d commits of 200 events", l.commits)
	}
}

func TestLimitDoEndsWithItsContext(t *testing.T) {
	l := limitOf(t, 1) // nobody writes
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Do(ctx, 0); err == nil {
		t.Error("got no error")
	}
}

func TestCheckLogFindsFaults(t *testing.T) {
	for name, damage := range map[string]func(log *bbolt.Bucket) error{
		"lost at the end":   func(log *bbolt.Bucket) error { return log.Delete(logKey(3)) },
		"lost between":      func(log *bbolt.Bucket) error { return log.Delete(logKey(2)) },
		"too many":          func(log *bbolt.Bucket) error { return log.Put(logKey(4), make([]byte, event.ValueSize)) },
		"of the wrong size": func(log *bbolt.Bucket) error { return log.Put(logKey(3), []byte("x")) },
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpdate(measure.Settings{Callers: 1, Workspaces: 3})
			if err := u.Setup(t.Context(), t.TempDir()); err != nil {
				t.Fatal(err)
			}
			defer u.Close(t.Context())
			doAll(t, u, 1, 3)
			if _, err := u.Check(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			row, ok := u.(*update)
			if !ok {
				t.Fatal("got no update")
			}
			err := row.log.db.Update(func(tx *bbolt.Tx) error { return damage(tx.Bucket(bucketLog)) })
			if err != nil {
				t.Fatal(err)
			}
			if text, err := u.Check(t.Context(), 0); err == nil {
				t.Errorf("got %q, want an error", text)
			}
		})
	}
}
