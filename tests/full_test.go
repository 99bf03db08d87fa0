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
	d := s.run(t)
	given := make(map[messages.WSID]messages.Number)
	for ws := messages.WSID(0); ; ws++ {
		tx, err := commitRecord(limit(t), d.app, ws%500)
		switch {
		case err == nil:
			given[ws%500] = tx.Numbers()[0].Number
			continue
		case !errors.Is(err, messages.ErrBusy):
			t.Fatal(err)
		case d.app.Status()[0].State != messages.StateAlarming:
			continue // flushing is only behind
		}
		break
	}
	wantError(t, d.app.Status()[0].Err, storage.ErrFull)
	wantError(t, d.parts.Close(limit(t)), partition.ErrNotClean)
	verifyStore(t, d.store)
	check(t, d.store.Close(limit(t)))
	s.bolt = bolt.Options{}
	d = s.run(t)
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

// TestFullFileSystem fills a real file system. What a commit means that fails there
// is known only sometimes: refused, or unknown and the store closed. What was
// acknowledged is there either way, and everything goes on when there is room.
func TestFullFileSystem(t *testing.T) {
	s := newSite(t, 1, partition.Settings{})
	mount := s.dir
	small(t, mount)
	s.dir = filepath.Join(mount, "store")
	// Room that is given back later.
	ballast := filepath.Join(mount, "ballast")
	check(t, os.WriteFile(ballast, make([]byte, 2<<20), 0o600))
	d := s.run(t)
	acknowledged := messages.Number(0)
	var full error
	for full == nil {
		tx := d.open(t, 7)
		number := must(tx.Next(limit(t), seqInvoice))(t)
		if full = tx.Commit(limit(t), make([]byte, 3000)); full == nil {
			acknowledged = number
		}
	}
	if !errors.Is(full, storage.ErrFull) && !errors.Is(full, messages.ErrOutcomeUnknown) && !errors.Is(full, storage.ErrClosed) {
		t.Errorf("got %v on a full file system", full)
	}
	t.Logf("%d events fitted, then: %v", acknowledged, full)
	d.crash(t)
	check(t, os.Remove(ballast))
	d = s.run(t)
	got := d.commit(t, 7, seqInvoice).Numbers()[0].Number
	if got != acknowledged+1 && (got != acknowledged+2 || !errors.Is(full, messages.ErrOutcomeUnknown)) {
		t.Errorf("got number %d after %d was acknowledged", got, acknowledged)
	}
	d.stop(t)
}

// small mounts a file system of 4 MiB, if the machine lets us.
func small(t *testing.T, dir string) {
	t.Helper()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=4m", "partita", dir).CombinedOutput(); err != nil {
		t.Skipf("no small file system can be mounted here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
}
