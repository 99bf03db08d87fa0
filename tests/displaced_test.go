package tests

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
)

// TestDisplacedIsTold moves the directory of a store that is in use, and another one to its name: the status of every
// partition says so, and the log, once, and so again when it is back. The application works on.
func TestDisplacedIsTold(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	told := func(what string) int {
		return logs.Filter(func(e observer.LoggedEntry) bool { return strings.Contains(e.Message, what) }).Len()
	}
	s := newSite(t, 2, often)
	s = s.at(filepath.Join(s.dir, "store"))
	s.options.Logger = zap.New(core)
	d := s.run(t)
	next := messages.Number(0)
	// goOn lets both partitions flush, until all or none of them say that the store is displaced.
	goOn := func(displaced bool) {
		t.Helper()
		for range 3 {
			next++
			for ws := range messages.WSID(2) {
				d.invoice(t, ws, next)
			}
			s.await(t, "everything is flushed", func() bool {
				a, b := d.register(t, 0), d.register(t, 1)
				return a.Checkpoint > a.Last && b.Checkpoint > b.Last
			})
		}
		s.await(t, "the status says where the store is", func() bool {
			for _, status := range d.app.Status() {
				if (status.Displaced != nil) != displaced {
					return false
				}
			}
			return true
		})
	}
	goOn(false)
	check(t, os.Rename(s.dir, s.dir+".away"))
	goOn(true)
	check(t, os.Mkdir(s.dir, 0o700))
	goOn(true)
	wantError(t, d.app.Status()[1].Displaced, storage.ErrDisplaced)
	check(t, syscall.Rename(s.dir+".away", s.dir)) // at once: nobody sees nothing under the name
	goOn(false)
	goOn(false)
	if once, again := told("not under its name any more"), told("under its name again"); once != 2 || again != 1 {
		// Two changes: there is nothing under the name, and then another directory.
		t.Errorf("told %d times that the store is displaced, and %d times that it is not, want 2 and 1", once, again)
	}
	d.stop(t)
	s.look(t, nil)
}

// TestForeignWALIsInTheWay: what lies in the place of log.wal when the first event is written is somebody else's. It
// stays, the caller is told, no number is used up, and when it is taken away all goes on.
func TestForeignWALIsInTheWay(t *testing.T) {
	s := newSite(t, 1, partition.Settings{})
	d := s.run(t)
	theirs := "the log.wal of another store"
	check(t, os.WriteFile(s.path("log.wal"), []byte(theirs), 0o600))
	for range 3 {
		_, err := commit(limit(t), d.app, 1, seqInvoice)
		wantError(t, err, storage.ErrForeign)
		_, err = must(d.app.SequencerOf(1))(t).Append(limit(t), partition.AppendTo{Workspace: 1, Kind: kindShop, Wait: true},
			partition.Draft{Wanted: []partition.Wanted{{Seq: seqInvoice}}})
		wantError(t, err, storage.ErrForeign)
	}
	if got := must(os.ReadFile(s.path("log.wal")))(t); string(got) != theirs {
		t.Fatalf("log.wal was changed to %q", got)
	}
	check(t, os.Remove(s.path("log.wal")))
	d.invoice(t, 1, 1)
	d.stop(t)
	s.look(t, nil)
}
