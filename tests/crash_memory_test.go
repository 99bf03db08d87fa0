package tests

import (
	"encoding/binary"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

// littleMemory is so little that each transaction of a flush has 16 events, and what else there is of a workspace.
const littleMemory = 256 << 10

// cutOff returns 1 if a flush has ended between its transactions: a checkpoint says how far it came. It returns 0 if none
// has, or there is no state.db to be read.
func (s *site) cutOff(t testing.TB) (cutOff int) {
	t.Helper()
	const file, target = "state.db", 32 // see docs/format.md
	if !hasFile(t, s.dir, file) {
		return 0
	}
	db, err := bbolt.Open(s.path(file), 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return 0 // it is checked elsewhere
	}
	defer func() { check(t, db.Close()) }()
	check(t, db.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("checkpoints"))
		if b == nil {
			return nil
		}
		return b.ForEach(func(_, v []byte) error {
			if len(v) >= target+8 && binary.BigEndian.Uint64(v[target:]) != 0 {
				cutOff = 1
			}
			return nil
		})
	}))
	return cutOff
}
