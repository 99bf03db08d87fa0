package bolt

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/faulty"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/subsdb"
	"github.com/partita-go/partita/storage/storagetest"
	"github.com/partita-go/partita/storage/verify"
)

// sourceNames are subscriptions of each source that reads partition 0.
var sourceNames = []string{"all", "p0", "w2"}

// subscribeAll makes one subscription of each source, all at the beginning.
func subscribeAll(t *testing.T, s *Store) {
	t.Helper()
	for i, source := range []storage.SubscriptionSource{{}, {Partition: new(messages.PartitionID(0))}, {Workspace: new(messages.WSID(2))}} {
		expect.NoError(t, s.PutSubscription(t.Context(), storage.Subscription{Name: sourceNames[i], SubscriptionSource: source}))
	}
}

// moveAll moves a subscription of each source to an offset of partition 0, or of workspace 2, all of
// whose events are that workspace's.
func moveAll(t *testing.T, s *Store, next uint64) {
	t.Helper()
	for _, name := range sourceNames {
		expect.NoError(t, s.MoveSubscription(t.Context(), moveTo(name, 0, next)), name)
	}
}

// subscribedCopies are two copies of a store of two partitions that have gone on by themselves, to so many
// events of partition 0, in the same places and at the same times: with the subscriptions of a in b, which
// stood at an offset when a was closed.
func subscribedCopies(t *testing.T, a, b, next uint64) (dir string, d messages.Descriptor) {
	t.Helper()
	base := t.TempDir()
	d = testDescriptor(2, messages.TrustNone)
	s := open(t, filepath.Join(base, "source"), d, Options{})
	w, other := takeOver(t, s, 0), takeOver(t, s, 1)
	w.append(2, 2)
	other.append(1)
	subscribeAll(t, s)
	moveAll(t, s, 2)
	expect.NoError(t, s.MoveSubscription(t.Context(), moveTo("all", 1, 2)))
	closeStore(t, s)
	for name, events := range map[string]uint64{"a": a, "b": b} {
		_, err := Compact(t.Context(), filepath.Join(base, "source"), filepath.Join(base, name), CopyOptions{})
		expect.NoError(t, err)
		s := open(t, filepath.Join(base, name), d, Options{})
		w := takeOver(t, s, 0)
		for uint64(w.next) <= events {
			e := w.event(2)
			e.Body = []byte("of copy " + name)
			expect.NoError(t, w.try(e))
		}
		if name == "a" {
			moveAll(t, s, next)
		}
		closeStore(t, s)
	}
	dir = filepath.Join(base, "b")
	putFile(t, dir, filepath.Join(base, "a"))
	return dir, d
}

// putFile puts the subscriptions.db of a store beside another log.
func putFile(t *testing.T, to, from string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(from, format.SubscriptionsFileName))
	expect.NoError(t, err)
	expect.NoError(t, os.WriteFile(filepath.Join(to, format.SubscriptionsFileName), data, 0o600))
}

// wantOtherLog makes sure that a store cannot be deployed, and that each subscription is an error of whoever
// reads it, which verify finds and names; nothing is changed.
func wantOtherLog(t *testing.T, dir string, d messages.Descriptor, says string) {
	t.Helper()
	before := hashes(t, dir)
	s := open(t, dir, d, Options{})
	_, err := s.Claim("app")
	closeStore(t, s)
	expect.ErrorIs(t, err, storage.ErrForeign)
	expect.ErrorIs(t, err, storage.ErrDamaged)
	if !strings.Contains(err.Error(), `subscriptions.db, bucket positions, subscription "all"`) || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want that it names the subscription and says %s", err, says)
	}
	s = openToRead(t, dir)
	for _, name := range sourceNames {
		got, err := s.Subscription(t.Context(), name)
		expect.ErrorIs(t, err, storage.ErrForeign, name)
		expect.ErrorIs(t, err, storage.ErrDamaged, name)
		expect.Equal(t, name, got.Name)
	}
	closeStore(t, s)
	r := verified(t, dir, verify.Options{})
	if r.FaultCount != 3 {
		t.Errorf("got %v, want a fault of each subscription", r)
	}
	for i, f := range r.Faults {
		if f.Projection || !strings.Contains(f.Where, sourceNames[i]) || !strings.Contains(f.Text, says) {
			t.Errorf("got %v, want that of %s, which says %s", f, sourceNames[i], says)
		}
	}
	expect.Equal(t, before, hashes(t, dir))
}

// claim takes a store as one that is deployed does.
func claim(t *testing.T, s *Store) {
	t.Helper()
	release, err := s.Claim("app")
	expect.NoError(t, err)
	release()
}

// The subscriptions of a copy that has gone on by itself are not this log's, whichever of the two is longer.
func TestSubscriptionsOfAnotherCopy(t *testing.T) {
	for what, ends := range map[string]struct{ a, b uint64 }{"as long": {4, 4}, "shorter": {3, 5}} {
		t.Run(what, func(t *testing.T) {
			dir, d := subscribedCopies(t, ends.a, ends.b, ends.a+1)
			wantOtherLog(t, dir, d, "the log has CRC")
		})
	}
}

// What stands where both logs are the same is of either.
func TestSubscriptionsOfAnotherCopyBeforeTheyParted(t *testing.T) {
	dir, d := subscribedCopies(t, 4, 4, 3)
	s := open(t, dir, d, Options{})
	claim(t, s)
	for _, name := range sourceNames {
		got, err := s.Subscription(t.Context(), name)
		expect.NoError(t, err)
		expect.Equal(t, uint64(3), got.Position(0), name)
	}
	closeStore(t, s)
	expect.NoError(t, verified(t, dir, verify.Options{}).Err())
}

// A position that is ahead of its log stays an error when the log has grown past it.
func TestPositionAheadOfItsLogStaysAnError(t *testing.T) {
	dir, d := subscribedCopies(t, 6, 4, 7)
	wantOtherLog(t, dir, d, "the log ends at LSN 5")
	file := filepath.Join(dir, format.SubscriptionsFileName)
	aside := filepath.Join(t.TempDir(), format.SubscriptionsFileName)
	expect.NoError(t, os.Rename(file, aside))
	s := open(t, dir, d, Options{})
	takeOver(t, s, 0).append(2, 2, 2)
	closeStore(t, s)
	expect.NoError(t, os.Rename(aside, file))
	wantOtherLog(t, dir, d, "the log has CRC")
}

// Whoever looks after the subscriptions rewinds or deletes those that are wrong, one by one: when none is left the
// store can be deployed.
func TestOtherPositionsAreRewoundOrDeleted(t *testing.T) {
	for what, ends := range map[string]struct{ a, b uint64 }{"diverged": {4, 4}, "ahead": {6, 4}} {
		t.Run(what, func(t *testing.T) {
			dir, d := subscribedCopies(t, ends.a, ends.b, ends.a+1)
			s := open(t, dir, d, Options{})
			expect.NoError(t, s.MoveSubscription(t.Context(), moveTo("all", 0, 5)))
			expect.NoError(t, s.DeleteSubscription(t.Context(), "w2"))
			expect.NoError(t, s.MoveSubscription(t.Context(), storage.SubscriptionMove{Name: "p0", Stopped: new("paused")}))
			_, err := s.Subscription(t.Context(), "p0")
			expect.ErrorIs(t, err, storage.ErrForeign, "a pause decides nothing")
			closeStore(t, s)
			s = open(t, dir, d, Options{})
			_, err = s.Claim("app")
			expect.ErrorIs(t, err, storage.ErrForeign)
			expect.NoError(t, s.MoveSubscription(t.Context(), moveTo("p0", 0, 1)))
			claim(t, s)
			closeStore(t, s)
			s = open(t, dir, d, Options{})
			claim(t, s)
			all, err := storagetest.WholeSubscriptions(t.Context(), s)
			expect.NoError(t, err)
			expect.Equal(t, 2, len(all))
			expect.Equal(t, map[messages.PartitionID]uint64{0: 5, 1: 2}, all[0].Next)
			closeStore(t, s)
			expect.NoError(t, verified(t, dir, verify.Options{}).Err())
		})
	}
}

// standsAt returns a position as it is stored.
func standsAt(t *testing.T, s *Store, name string) subsdb.Position {
	t.Helper()
	key := format.PositionKey(name, 0)
	at, err := subsdb.DecodePosition(key, get(t, s.files.Subscriptions.Load(), format.BucketPositions, key))
	expect.NoError(t, err, name)
	return at
}

// wantRests makes sure that positions rest on the event of an LSN.
func wantRests(t *testing.T, s *Store, next uint64, lsn messages.LSN) {
	t.Helper()
	for _, name := range sourceNames {
		at := standsAt(t, s, name)
		if at.Next != next || at.Rests.LSN != lsn || (at.Rests.CRC == 0) != (lsn == 0) {
			t.Errorf("%s: got %+v, want position %d, which rests on LSN %d", name, at, next, lsn)
		}
	}
}

// A position rests on the event before it, be that in the tail, in log.wal alone, or in the projections;
// the beginning of a log rests on nothing. Copies of all kinds keep that.
func TestPositionRests(t *testing.T) {
	dir := t.TempDir()
	d := testDescriptor(2, messages.TrustNone)
	s := open(t, dir, d, smallMap)
	commits := faulty.CommitsOf(s.log.File)
	w, other := takeOver(t, s, 0), takeOver(t, s, 1)
	other.append(1)
	w.append(2, 2, 2, 2)
	subscribeAll(t, s)
	moveAll(t, s, 5)
	wantRests(t, s, 5, 5)
	moveAll(t, s, 1)
	wantRests(t, s, 1, 0)
	w.flush()
	moveAll(t, s, 4)
	wantRests(t, s, 4, 4)
	settled(t, s)
	release := commits.Before.HoldAll(t)
	w.append(2)
	if s.leftInWAL() == 0 {
		t.Error("log.wal has nothing that log.db has not")
	}
	moveAll(t, s, 6)
	wantRests(t, s, 6, 6)
	again := open(t, crashCopy(t, dir), d, Options{})
	wantRests(t, again, 6, 6)
	claim(t, again)
	closeStore(t, again)
	release()
	moveAll(t, s, 4)
	base := t.TempDir()
	_, err := s.Backup(t.Context(), filepath.Join(base, "backup"), CopyOptions{})
	expect.NoError(t, err)
	_, err = Compact(t.Context(), filepath.Join(base, "backup"), filepath.Join(base, "compact"), CopyOptions{})
	expect.NoError(t, err)
	_, err = Restore(t.Context(), filepath.Join(base, "backup"), filepath.Join(base, "restore"), CopyOptions{})
	expect.NoError(t, err)
	for _, name := range []string{"backup", "compact", "restore"} {
		c := open(t, filepath.Join(base, name), d, Options{})
		wantRests(t, c, 4, 4)
		moveAll(t, c, 6)
		wantRests(t, c, 6, 6)
		closeStore(t, c)
	}
}

// leftInWAL returns how many events log.wal has that log.db has not.
func (s *Store) leftInWAL() int {
	_, values := s.log.Pending()
	return len(values)
}

// A restore of the log of one copy with the subscriptions of another is not kept.
func TestRestoreWithSubscriptionsOfAnotherCopy(t *testing.T) {
	dir, _ := subscribedCopies(t, 4, 4, 5)
	to := filepath.Join(t.TempDir(), "restored")
	_, err := Restore(t.Context(), dir, to, CopyOptions{})
	expect.ErrorIs(t, err, storage.ErrForeign)
	if _, err := os.Stat(to); !os.IsNotExist(err) {
		t.Errorf("got %v, want that nothing is there", err)
	}
}

// A position behind an event that is damaged has none to rest on: it can be passed over.
func TestPositionBehindADamagedEvent(t *testing.T) {
	dir := t.TempDir()
	d := testDescriptor(2, messages.TrustNone)
	s := open(t, dir, d, Options{})
	w := takeOver(t, s, 0)
	w.append(2, 2, 2)
	subscribeAll(t, s)
	put(t, settled(t, s), format.BucketLog, format.AppendLSNKey(nil, 2), []byte("damaged"))
	moveAll(t, s, 3)
	wantRests(t, s, 3, 0)
	moveAll(t, s, 4)
	wantRests(t, s, 4, 3)
	put(t, s.log.File, format.BucketLog, format.AppendLSNKey(nil, 3), []byte("damaged"))
	for _, name := range sourceNames {
		_, err := s.Subscription(t.Context(), name)
		expect.NoError(t, err, "it is told by who reads the event")
	}
}

// A file of the first format has positions alone. They are taken as they are; the file is of this format from the
// first change on, and each position rests on its event from its own next move on.
func TestSubscriptionsOfTheFirstFormat(t *testing.T) {
	dir := t.TempDir()
	d := testDescriptor(2, messages.TrustNone)
	s := open(t, dir, d, Options{})
	takeOver(t, s, 0).append(2, 2, 2)
	subscribeAll(t, s)
	moveAll(t, s, 3)
	f := s.files.Subscriptions.Load()
	expect.NoError(t, f.Update(func(tx *bbolt.Tx) error {
		for _, name := range sourceNames {
			c := subsdb.PositionChange(name, subsdb.Placed{Partition: 0, Position: subsdb.Position{Next: 3}})
			if err := tx.Bucket(c.Bucket).Put(c.Key, c.Value); err != nil {
				return err
			}
		}
		return tx.Bucket(format.BucketHeader).Put(format.KeyHeader, ofFirstFormat(tx.Bucket(format.BucketHeader).Get(format.KeyHeader)))
	}))
	closeStore(t, s)
	before := filesOf(t, dir)[format.SubscriptionsFileName]
	expect.NoError(t, verified(t, dir, verify.Options{}).Err())
	s = open(t, dir, d, Options{})
	wantRests(t, s, 3, 0)
	closeStore(t, s)
	expect.Equal(t, before, filesOf(t, dir)[format.SubscriptionsFileName], "nobody has changed anything")
	s = open(t, dir, d, Options{})
	expect.NoError(t, s.MoveSubscription(t.Context(), moveTo("all", 0, 4)))
	h, err := s.files.Subscriptions.Load().Header(format.RoleSubscriptions)
	expect.NoError(t, err)
	expect.Equal(t, uint16(format.SubscriptionsFormat), h.Format)
	expect.Equal(t, messages.LSN(3), standsAt(t, s, "all").Rests.LSN)
	expect.Equal(t, subsdb.Position{Next: 3}, standsAt(t, s, "p0"))
}

// ofFirstFormat returns a header as a program wrote it that knew the first format alone.
func ofFirstFormat(header []byte) []byte {
	end := len(header) - 4
	b := bytes.Clone(header[:end])
	binary.BigEndian.PutUint16(b[8:], 1)
	return binary.BigEndian.AppendUint32(b, crcOf(b))
}
