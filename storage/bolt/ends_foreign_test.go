package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/statedb"
)

// A foreign entry ahead in a workspace's log is not taken for its end.
func TestEndsBeforeAForeignWLogEntry(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	put(t, s.state, format.BucketWLog, format.AppendWLogKey(nil, 2, 4), []byte("foreign!"))
	w.append(2)
	e := w.event(2)
	e.WLogOffset = 5
	if err := w.try(e); !errors.Is(err, storage.ErrOutOfOrder) {
		t.Errorf("offset 5 after 1: got %v, want out of order", err)
	}
}

// A batch that is refused, since it lies behind the end of the log, teaches nothing
// about what lies before it.
func TestEndsOfABatchBehindTheEnd(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	put(t, s.state, format.BucketPLog, format.AppendPLogKey(nil, 0, 4), []byte("foreign!"))
	e := w.event(2)
	e.PLogOffset = 10
	if err := w.try(e); !errors.Is(err, storage.ErrOutOfOrder) {
		t.Fatalf("offset 10 of an empty log: got %v, want out of order", err)
	}
	w.append(2, 2, 2)
	if err := w.try(w.event(2)); !conflictAt(err, storage.PlacePLog) {
		t.Errorf("got %v, want a conflict", err)
	}
}

// TestEndBeforeAForeignKey: a key that only begins like those of a sequence hides none of them.
func TestEndBeforeAForeignKey(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	prefix := []byte("a prefix, ")
	key := func(n uint64) []byte { return binary.BigEndian.AppendUint64(bytes.Clone(prefix), n) }
	for name, c := range map[string]struct {
		keys [][]byte
		want messages.Number
	}{
		"nothing":             {nil, 0},
		"others":              {[][]byte{[]byte("a"), []byte("b")}, 0},
		"the last":            {[][]byte{key(3), key(70), []byte("b")}, 70},
		"the last there is":   {[][]byte{key(3), key(math.MaxUint64)}, math.MaxUint64},
		"behind it a longer":  {[][]byte{key(3), append(key(70), 0)}, 3},
		"behind it a shorter": {[][]byte{key(3), append(bytes.Clone(prefix), 1)}, 3},
		"a foreign one alone": {[][]byte{append(key(70), 0)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tx, err := s.state.DB.Begin(true)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback() }()
			b, err := tx.CreateBucket([]byte("ends"))
			for _, k := range c.keys {
				err = errors.Join(err, b.Put(k, []byte{1}))
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := statedb.EndOf(b.Cursor(), prefix); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

// Who takes a partition over is told of a foreign entry at the end of its log, although nobody
// who appends looks there any more.
func TestTakeEpochBeforeAForeignPLogEntry(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.append(2)
	if !s.partitions[0].ends.plogFree {
		t.Fatal("those who append look there")
	}
	put(t, s.state, format.BucketPLog, format.AppendPLogKey(nil, 0, 2), []byte("foreign!"))
	if _, err := s.TakeEpoch(t.Context(), 0); !conflictAt(err, storage.PlacePLog) {
		t.Errorf("got %v, want a conflict", err)
	}
}
