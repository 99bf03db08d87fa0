package bolt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/faulty"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
	"github.com/partita-go/partita/storage/verify"
)

// flip flips bits of a byte of a file.
func flip(t *testing.T, path string, at int) {
	t.Helper()
	b, err := os.ReadFile(path)
	expect.NoError(t, err)
	b[at] ^= 0x10
	expect.NoError(t, os.WriteFile(path, b, 0o600))
}

// found are the faults and what was not looked at, without the directory.
func found(r verify.Report, dir string) (faults, unread []string) {
	for _, f := range r.Faults {
		place, _, _ := strings.Cut(f.String(), ";")
		faults = append(faults, strings.ReplaceAll(place, dir+"/", ""))
	}
	return faults, r.Unread
}

// If several files are damaged each is named and counted, and what could not be looked at is
// told: byte 30 is in a meta page; the sector is of a commit in log.wal that log.db has not.
func TestVerifyNamesEachFile(t *testing.T) {
	const (
		logAt   = "damage: file log.db, meta page 0 at byte 0: "
		stateAt = "damage: file state.db, meta page 0 at byte 0: "
		subsAt  = "damage: file subscriptions.db, meta page 0 at byte 0: "
		walAt   = "damage: file log.wal, byte "
		sector  = 2*wal.BlockLen + wal.SectorLen + 40
	)
	everything := []string{"what stands in log.db", "what stands in log.wal", "what stands in state.db", "what stands in subscriptions.db"}
	for name, c := range map[string]struct {
		log, state, subs, wal bool
		want                  []string
	}{
		"log.db and state.db":           {true, true, false, false, []string{logAt, stateAt}},
		"log.db and log.wal":            {true, false, false, true, []string{logAt}},
		"state.db and log.wal":          {false, true, false, true, []string{stateAt, walAt}},
		"subscriptions.db and log.wal":  {false, false, true, true, []string{subsAt, walAt}},
		"log.wal":                       {false, false, false, true, []string{walAt}},
		"all that can be told of":       {true, true, true, true, []string{logAt, stateAt, subsAt}},
		"state.db and subscriptions.db": {false, true, true, false, []string{stateAt, subsAt}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := leftWithSubscriptions(t)
			for path, spoil := range map[string]bool{format.LogFileName: c.log, format.StateFileName: c.state, format.SubscriptionsFileName: c.subs} {
				if spoil {
					flip(t, filepath.Join(dir, path), 30)
				}
			}
			if c.wal {
				flip(t, walPath(dir), sector)
			}
			r := verified(t, dir, verify.Options{})
			faults, unread := found(r, dir)
			expect.Equal(t, uint64(len(c.want)), r.FaultCount, faults)
			expect.Equal(t, len(c.want), len(faults), faults)
			for i, want := range c.want {
				expect.Equal(t, true, strings.HasPrefix(faults[i], want), faults[i], "want", want)
			}
			expect.Equal(t, everything, unread)
			expect.Equal(t, true, strings.Contains(r.String(), "\nnot looked at: what stands in log.db"), r)
			few := verified(t, dir, verify.Options{MaxFaults: 1})
			expect.Equal(t, 1, len(few.Faults))
			expect.Equal(t, r.FaultCount, few.FaultCount)
		})
	}
}

// leftWithSubscriptions is leftBehind with subscriptions.db.
func leftWithSubscriptions(t *testing.T) (dir string) {
	t.Helper()
	dir, d, _ := leftBehind(t)
	s, err := Open(t.Context(), dir, d, smallMap)
	expect.NoError(t, err)
	expect.NoError(t, s.PutSubscription(t.Context(), storage.Subscription{Name: "all"}))
	commits := faulty.CommitsOf(s.log.File)
	w := takeOver(t, s, 0)
	w.append(1)
	settled(t, s)
	release := commits.Before.HoldAll(t)
	w.append(2, 1, 2)
	crash := crashCopy(t, dir)
	release()
	closeStore(t, s)
	expect.Equal(t, uint64(0), verified(t, crash, verify.Options{}).FaultCount)
	return crash
}

// A file that cannot be looked at does not hide the faults of the others; without a fault it is
// an error.
func TestVerifyCannotLookAtOne(t *testing.T) {
	dir := leftWithSubscriptions(t)
	expect.NoError(t, os.WriteFile(filepath.Join(dir, format.StateFileName), []byte("something else"), 0o600))
	_, err := Verify(t.Context(), dir, verify.Options{})
	expect.ErrorIs(t, err, storage.ErrForeign)
	flip(t, filepath.Join(dir, format.LogFileName), 30)
	r := verified(t, dir, verify.Options{})
	expect.Equal(t, uint64(1), r.FaultCount)
	expect.Equal(t, true, strings.HasPrefix(r.Unread[0], "state.db: "), r.Unread)
}

// A subscriptions.db that was cut to nothing is told, alone and beside another damaged file.
func TestVerifyNamesAnEmptyFile(t *testing.T) {
	dir := leftWithSubscriptions(t)
	path := filepath.Join(dir, format.SubscriptionsFileName)
	expect.NoError(t, os.Truncate(path, 0))
	for _, want := range [][]string{{"damage: file subscriptions.db: "}, {"damage: file log.db, ", "damage: file subscriptions.db: "}} {
		r := verified(t, dir, verify.Options{})
		faults, unread := found(r, dir)
		expect.Equal(t, len(want), len(faults), faults)
		for i := range want {
			expect.Equal(t, true, strings.HasPrefix(faults[i], want[i]), faults[i])
		}
		expect.Equal(t, 4, len(unread), unread)
		flip(t, filepath.Join(dir, format.LogFileName), 30)
	}
}
