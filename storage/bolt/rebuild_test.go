package bolt

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/tail"
)

// A rebuild takes no more at a time than is said, be it events or what they hold.
func TestRebuildInPieces(t *testing.T) {
	t.Parallel()
	pieces := Options{TailEvents: 4 * scanChunk, Memory: 32 << 20}
	for name, test := range map[string]struct {
		events, records, size int
		transactions          uint64
	}{
		"all at once":   {pieces.TailEvents - 1, 0, 0, 1},
		"many events":   {2*pieces.TailEvents + 1, 0, 0, 3},
		"many records":  {2*scanChunk + 1, int(pieces.shares().tail/pieceOfTail)/(scanChunk*int(tail.RecordBytes)) + 1, 0, 3},
		"large records": {9, 1, int(pieces.shares().tail / pieceOfTail / 4), 3},
	} {
		t.Run(name, func(t *testing.T) {
			dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
			s := open(t, dir, d, Options{})
			w := takeOver(t, s, 0)
			if test.records == 0 {
				w.appendMany(test.events, 0, 1, 2)
			}
			for ws := range messages.WSID(test.events * min(1, test.records)) {
				e := w.event(ws)
				for n := range messages.Number(test.records) {
					e.Records = append(e.Records, messages.Record{ID: messages.RecordID{Seq: testSeq, Number: n + 1}, New: true, Data: make([]byte, test.size)})
				}
				expect.NoError(t, w.try(e))
			}
			closeStore(t, s)
			expect.NoError(t, os.Remove(filepath.Join(dir, format.StateFileName)))
			s = open(t, dir, d, pieces)
			st := s.Stats()
			expect.Equal(t, uint64(test.events), st.Rebuilt)
			expect.Equal(t, test.transactions, st.Flushes)
		})
	}
}

// What a crash has left in the tails of several partitions is not projected in one transaction, if the
// records of some are as many as one takes.
func TestProjectTailsInPieces(t *testing.T) {
	const limit = 64 << 10
	for size, transactions := range map[int]uint64{limit / 5: 1, limit: 4} {
		s := open(t, t.TempDir(), testDescriptor(4, messages.TrustNone), Options{Memory: 4 * limit})
		for id := range messages.PartitionID(4) {
			w := takeOver(t, s, id)
			e := w.event(messages.WSID(id))
			e.Records = []messages.Record{{ID: messages.RecordID{Seq: testSeq, Number: 1}, New: true, Data: make([]byte, size)}}
			expect.NoError(t, w.try(e))
		}
		expect.NoError(t, (&opening{Store: s}).projectTails())
		expect.Equal(t, transactions, s.Stats().Flushes)
		expect.Equal(t, 4, int(s.Stats().Rebuilt))
		expect.Equal(t, int64(0), s.tails.Rows.Load())
	}
}

// A restore does so, too.
func TestRestoreInPieces(t *testing.T) {
	dir, s := verifiable(t)
	takeOver(t, s, 0).appendMany(2*scanChunk, 4)
	closeStore(t, s)
	pieces := func(tailEvents int) (n int) {
		seen := uint64(0)
		o := CopyOptions{TailEvents: tailEvents, SkipVerify: true}
		to := filepath.Join(t.TempDir(), "copy")
		_, err := Restore(t.Context(), dir, to, o)
		expect.NoError(t, err)
		f := openPlain(t, to, format.RoleState)
		expect.NoError(t, f.View(func(tx *bbolt.Tx) error { seen = uint64(tx.ID()); return nil }))
		expect.NoError(t, f.Close())
		return int(seen)
	}
	expect.Equal(t, pieces(0)+2, pieces(scanChunk))
}

// What stays in the tail of a failed partition does not make the pieces smaller.
func TestFailedTailsAreNoPiece(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(2, messages.TrustNone), Options{TailEvents: scanChunk})
	op := &opening{Store: s}
	takeOver(t, s, 0).appendMany(scanChunk, 0)
	takeOver(t, s, 1).append(1)
	expect.Equal(t, true, op.mustProject())
	s.partitions[0].fail(errors.New("damaged"))
	expect.Equal(t, false, op.mustProject())
}
