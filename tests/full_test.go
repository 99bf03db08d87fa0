package tests

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
)

// fill commits until the store is full, and checks each refusal: the transaction is
// cancelled and nothing is left of it. It returns how many events there are.
func fill(t testing.TB, d *deployment, ws messages.WSID, body []byte) messages.Number {
	t.Helper()
	committed := messages.Number(0)
	for refusals := 0; refusals < 5; {
		tx := d.open(t, ws)
		number := must(tx.Next(limit(t), seqInvoice))(t)
		if number != committed+1 {
			t.Fatalf("got number %d, want %d: a refusal has left something", number, committed+1)
		}
		switch err := tx.Commit(limit(t), body); {
		case err == nil:
			committed++
		case errors.Is(err, storage.ErrFull):
			refusals++
			if r := d.register(t, 0); r.Last != messages.PLogOffset(committed) {
				t.Fatalf("got %d events, want %d: a refusal has left something", r.Last, committed)
			}
		default:
			t.Fatal(err)
		}
	}
	if state := d.app.Status()[0].State; state != messages.StateNormal && state != messages.StateAlarming {
		t.Errorf("got partition %v after ErrFull, want it to go on", state)
	}
	return committed
}

// TestFullLog: when log.db may not grow, appends are refused with nothing left;
// after reopening with more room everything goes on.
func TestFullLog(t *testing.T) {
	s := newSite(t, 1, partition.Settings{})
	s.bolt = bolt.Options{MaxSize: 1 << 20, MmapSize: 1 << 20}
	d := s.run(t)
	n := fill(t, d, 7, make([]byte, 20_000))
	if n == 0 {
		t.Fatal("nothing was committed")
	}
	d.stop(t)
	s.bolt = bolt.Options{}
	d = s.run(t)
	d.invoice(t, 7, n+1)
	d.stop(t)
}

// TestFullState: when state.db may not grow, flushes fail and transactions go on
// until the limit; after reopening with more room everything goes on.
func TestFullState(t *testing.T) {
	s := newSite(t, 1, partition.Settings{
		FlushThreshold: 50, BusyLimit: 300, FlushInterval: time.Millisecond, RetryDelay: time.Millisecond, StopLimit: 50 * time.Millisecond,
	})
	s.bolt = bolt.Options{StateMaxSize: 256 << 10, MmapSize: 256 << 10}
	given := make(map[messages.WSID]messages.Number)
	// A flush that failed may find room the next time, in pages that were in use before.
	for clean := true; clean; {
		d := s.run(t)
		fillState(t, d, given)
		err := d.parts.Close(limit(t))
		if clean = err == nil; !clean {
			wantError(t, err, partition.ErrNotClean)
		}
		check(t, d.store.Close(limit(t)))
	}
	s.look(t, nil)
	s.bolt, s.app.Settings.StopLimit = bolt.Options{}, 0
	d := s.run(t)
	for _, ws := range []messages.WSID{0, 1, messages.WSID(len(given) - 1)} {
		s.await(t, "there is room", func() bool {
			tx, err := commitRecord(limit(t), d.app, ws)
			if err == nil && tx.Numbers()[0].Number != given[ws]+1 {
				t.Errorf("workspace %d: got number %d, want %d", ws, tx.Numbers()[0].Number, given[ws]+1)
			}
			return err == nil
		})
	}
	d.stop(t)
}

// fillState commits until a flush has failed and a transaction is refused for it, and notes the
// last number of each workspace.
func fillState(t testing.TB, d *deployment, given map[messages.WSID]messages.Number) {
	t.Helper()
	for ws := messages.WSID(0); ; ws++ {
		tx, err := commitRecord(limit(t), d.app, ws%500)
		if err == nil {
			given[ws%500] = tx.Numbers()[0].Number
			continue
		}
		wantError(t, err, messages.ErrBusy)
		if s := d.app.Status()[0]; s.State == messages.StateAlarming {
			wantError(t, s.Err, storage.ErrFull)
			return
		}
	}
}

// fileSystems are small ones that are really there.
var fileSystems = map[string]func(t *testing.T, at string){
	"tmpfs": func(t *testing.T, at string) { mount(t, at, "-t", "tmpfs", "-o", "size=12m", "partita") },
	"ext4": func(t *testing.T, at string) {
		image := filepath.Join(scratch(t), "image")
		check(t, os.WriteFile(image, nil, 0o600))
		check(t, os.Truncate(image, 14<<20))
		if out, err := exec.Command("mkfs.ext4", "-q", "-O", "^has_journal", image).CombinedOutput(); err != nil {
			t.Skipf("no file system can be made here: %v: %s", err, out)
		}
		mount(t, at, "-o", "loop", image)
	},
}

// TestFullFileSystem fills a file system with everybody who can write. What a commit means
// that fails there is known only sometimes: refused, or unknown and the store closed. What
// was acknowledged is there either way, and everything goes on when there is room.
func TestFullFileSystem(t *testing.T) {
	for name, prepare := range fileSystems {
		t.Run(name, func(t *testing.T) {
			at := t.TempDir()
			prepare(t, at)
			// Room that is given back later.
			ballast := filepath.Join(at, "ballast")
			check(t, os.WriteFile(ballast, make([]byte, 10<<20), 0o600))
			c := newCrash(t)
			c.dir = filepath.Join(at, "store")
			d := c.run(t)
			load := &child{
				childConfig: c.load(1), journal: &book{ledger: c.ledger}, app: d.app, store: d.store,
				tolerates: tolerated,
			}
			load.Suffers = true
			check(t, load.load(limit(t)))
			d.crash(t)
			if load.pains.Load() == 0 {
				t.Error("it never was full")
			}
			t.Logf("full: on=%s acked=%d refused-or-closed=%d lost=0", name, len(c.acked), load.pains.Load())
			check(t, os.Remove(ballast))
			c.check(t, blow{name: "there is room"}, true)
			verifyFiles(t, c.dir)
		})
	}
}
