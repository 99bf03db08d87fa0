package tests

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

// littleMemory is so little that each transaction of a flush has 16 events, and what else there is of a workspace.
const littleMemory = 256 << 10

// cutOff returns 1 if a flush has ended between its transactions, 0 if none has, or there is no state.db to be read.
func (s *site) cutOff(t testing.TB) int {
	t.Helper()
	if !hasFile(t, s.dir, stateFile) {
		return 0
	}
	cutOff, err := flushUnderWay(s.path(stateFile))
	if err != nil {
		t.Logf("%s is not readable: %v", stateFile, err) // what that means is checked elsewhere
	}
	if cutOff {
		return 1
	}
	return 0
}

const stateFile = "state.db"

// flushUnderWay reports whether a checkpoint in a state.db says how far a flush of several transactions has come. A file
// that was copied while it was written may be anything.
func flushUnderWay(path string) (underWay bool, err error) {
	const target = 32 // see docs/format.md
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			underWay, err = false, fmt.Errorf("%v", fault)
		}
	}()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return false, err
	}
	defer func() { _ = db.Close() }()
	err = db.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("checkpoints"))
		if b == nil {
			return nil
		}
		return b.ForEach(func(_, v []byte) error {
			underWay = underWay || len(v) >= target+8 && binary.BigEndian.Uint64(v[target:]) != 0
			return nil
		})
	})
	return underWay, err
}

// lookOut makes a blow wait until a flush of the child is seen between its transactions, or has not been for long. It
// returns what ends that.
func (c *crash) lookOut(t *testing.T, b *blow) (stop func()) {
	t.Helper()
	seen, given, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	copied, begun := filepath.Join(scratch(t), stateFile), false
	b.hold = seen
	b.dealt = func() {
		begun = true
		go func() {
			defer close(ended)
			defer close(seen)
			look := time.NewTicker(time.Millisecond)
			defer look.Stop()
			for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
				select {
				case <-given:
					return
				case <-look.C:
				}
				data, err := os.ReadFile(c.path(stateFile))
				if err == nil && os.WriteFile(copied, data, 0o600) == nil {
					if underWay, err := flushUnderWay(copied); underWay && err == nil {
						return
					}
				}
			}
		}()
	}
	return func() {
		if close(given); begun {
			<-ended
		}
		check(t, os.RemoveAll(filepath.Dir(copied)))
	}
}
