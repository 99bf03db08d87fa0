package tests

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
)

// foreign is what somebody else has written where partita will want to write.
var foreign = []byte("somebody else's")

// spot is where an event will go, and somebody else has been.
type spot interface {
	// plant puts a foreign value there, in a closed store; kept reports whether it is there.
	plant(testing.TB, *site)
	kept(testing.TB, *site) bool
}

// key is a place in one of a store's files, see docs/format.md.
type key struct {
	file, bucket string
	key          []byte
}

func plogKey(p messages.PartitionID, o messages.PLogOffset) key {
	k := binary.BigEndian.AppendUint32(nil, uint32(p))
	return key{"state.db", "plog", binary.BigEndian.AppendUint64(k, uint64(o))}
}

func logKey(lsn messages.LSN) key {
	return key{"log.db", "log", binary.BigEndian.AppendUint64(nil, uint64(lsn))}
}

func (k key) plant(t testing.TB, s *site) {
	t.Helper()
	s.put(t, k, foreign)
}

func (k key) kept(t testing.TB, s *site) bool {
	t.Helper()
	return bytes.Equal(s.stored(t, k), foreign)
}

// edit changes a file of a closed store, behind partita's back.
func (s *site) edit(t testing.TB, file string, change func(*bbolt.Tx) error) {
	t.Helper()
	db := must(bbolt.Open(s.path(file), 0o600, &bbolt.Options{Timeout: time.Second}))(t)
	defer func() { check(t, db.Close()) }()
	check(t, db.Update(change))
}

// put puts a value at a key of a closed store.
func (s *site) put(t testing.TB, k key, value []byte) {
	t.Helper()
	s.edit(t, k.file, func(tx *bbolt.Tx) error { return tx.Bucket([]byte(k.bucket)).Put(k.key, value) })
}

// stored returns the value at a key of a closed store, nil if there is none.
func (s *site) stored(t testing.TB, k key) []byte {
	t.Helper()
	var value []byte
	s.edit(t, k.file, func(tx *bbolt.Tx) error {
		value = bytes.Clone(tx.Bucket([]byte(k.bucket)).Get(k.key))
		return nil
	})
	return value
}

// flip changes one bit of the value at a key of a closed store.
func (s *site) flip(t testing.TB, k key, random *rand.Rand) {
	t.Helper()
	s.edit(t, k.file, func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(k.bucket))
		value := bytes.Clone(b.Get(k.key))
		value[random.IntN(len(value))] ^= 1 << random.IntN(8)
		return b.Put(k.key, value)
	})
}

// keep checks that a foreign value is still what it was, or is overwritten.
func (s *site) keep(t testing.TB, at spot, kept bool) {
	t.Helper()
	if at.kept(t, s) != kept {
		t.Errorf("%+v: want the foreign value kept: %v", at, kept)
	}
}

// tighten takes the room off the files that bbolt keeps for later, so that they grow
// under the next load.
func (s *site) tighten(t testing.TB) {
	t.Helper()
	for _, name := range storeFiles {
		if !hasFile(t, s.dir, name) {
			continue
		}
		used := int64(0)
		s.edit(t, name, func(tx *bbolt.Tx) error {
			used = tx.Size()
			return nil
		})
		check(t, os.Truncate(s.path(name), used))
	}
}
