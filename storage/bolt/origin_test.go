package bolt

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/verify"
)

// Two copies of a store go on by themselves. The state.db of one is not taken for the
// other's: it says of numbers that are given that they are free, or the other way round.
func TestStateOfAnotherCopy(t *testing.T) {
	base, d := t.TempDir(), testDescriptor(2, messages.TrustNone)
	dir := func(name string) string { return filepath.Join(base, name) }
	state := func(name string) []byte {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(dir(name), stateFileName))
		noError(t, err)
		return data
	}
	s := open(t, dir("source"), d, Options{})
	w := takeOver(t, s, 0)
	w.append(2)
	w.flush()
	older := state("source")
	w.append(2)
	w.flush()
	closeStore(t, s)
	for name, ws := range map[string]messages.WSID{"a": 2, "b": 4} {
		_, err := Compact(t.Context(), dir("source"), dir(name), CopyOptions{})
		noError(t, err)
		s := open(t, dir(name), d, Options{})
		w := takeOver(t, s, 0)
		w.append(ws)
		w.append(ws)
		w.flush()
		closeStore(t, s)
	}
	put := func(data []byte) {
		noError(t, os.WriteFile(filepath.Join(dir("b"), stateFileName), data, 0o600))
	}
	refused := func(what string) {
		t.Helper()
		for _, o := range []Options{{}, {ReadOnly: true}} {
			_, err := OpenExisting(t.Context(), dir("b"), o)
			errorIs(t, err, storage.ErrDamaged, what)
			errorIs(t, err, errOtherLog, what)
		}
		r := verified(t, dir("b"), verify.Options{})
		if len(r.Faults) != 1 || !r.Faults[0].Projection || !strings.Contains(r.Faults[0].Where, stateFileName) || r.Events != 4 {
			t.Errorf("%s: got %v, want that the file is wrong, and that the log is not", what, r)
		}
	}
	// Both have their events in the same places, at the same time.
	put(state("a"))
	refused("by the witness")
	// A program that wrote no witness has another clock at least.
	edit := func(name string, do func(tx *bbolt.Tx) error) {
		t.Helper()
		f := openPlain(t, dir(name), roleState)
		noError(t, errors.Join(f.update(do), f.close()))
	}
	put(state("a"))
	edit("b", func(tx *bbolt.Tx) error {
		key := appendPartitionKey(nil, 0)
		b := tx.Bucket(bucketCheckpoints)
		c, err := decodeCheckpoint(key, b.Get(key))
		c.at++
		return errors.Join(err, b.Put(key, c.encode(key)), tx.Bucket(bucketHeader).Delete(keyWitness))
	})
	refused("by the time")
	// An older one is this log's, and so is one that is made of it.
	put(older)
	closeStore(t, open(t, dir("b"), d, Options{}))
	put(nil)
	s = open(t, dir("b"), d, Options{})
	n, err := s.Numbers(t.Context(), 4)
	noError(t, err)
	if n.Numbers[0].Number != 2 {
		t.Errorf("got %v, want what the log of b says", n)
	}
	closeStore(t, s)
}

// A foreign entry under the last key that there is: nobody goes on behind it for ever.
func TestLogEndsAtTheLastKey(t *testing.T) {
	dir, s := verifiable(t)
	d := s.Descriptor()
	noError(t, s.log.update(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketLog).Put(appendLSNKey(nil, math.MaxUint64), []byte("foreign"))
	}))
	closeStore(t, s)
	for _, o := range []Options{{ReadOnly: true}, {}} {
		_, err := OpenExisting(t.Context(), dir, o)
		errorIs(t, err, storage.ErrDamaged)
	}
	_, err := Open(t.Context(), dir, d, Options{})
	errorIs(t, err, storage.ErrDamaged)
	if r := verified(t, dir, verify.Options{}); r.FaultCount != 1 {
		t.Errorf("got %v, want one fault", r)
	}
	for name, do := range map[string]func(context.Context, string, string, CopyOptions) (Copied, error){"restore": Restore, "compact": Compact} {
		_, err := do(t.Context(), dir, filepath.Join(t.TempDir(), "copy"), CopyOptions{})
		errorIs(t, err, storage.ErrDamaged, name)
	}
}
