package subsdb_test

import (
	"fmt"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
	"github.com/partita-go/partita/storage/bolt/internal/subsdb"
)

// logOf is a log of three events, and those as positions rest on them.
func logOf(t *testing.T) (*logdb.Log, []format.Witness) {
	t.Helper()
	d := expect.Opened(t, boltfile.OpenDirectory, t.TempDir())
	l := logdb.New(newFile(t, d, format.RoleLog), d)
	t.Cleanup(func() { expect.NoError(t, l.Close()) })
	values, rests := make([][]byte, 3), make([]format.Witness, 3)
	for i := range values {
		at := messages.PLogOffset(i + 1)
		e := messages.Event{PLogOffset: at, Workspace: 1, WLogOffset: messages.WLogOffset(at), Body: fmt.Appendf(nil, "body %d", i)}
		values[i] = format.EncodeEvent(&e)
		format.SealEvent(values[i], messages.LSN(at))
		var v format.EventView
		expect.NoError(t, v.Decode(messages.LSN(at), values[i]))
		rests[i] = format.Witness{LSN: v.LSN, CRC: v.CRC}
	}
	expect.NoError(t, l.File.Update(func(tx *bbolt.Tx) error { return logdb.Put(tx, 1, values) }))
	_, err := l.Load(format.StoreID{})
	expect.NoError(t, err)
	return l, rests
}

func restingOn(w format.Witness) []subsdb.Placed {
	return []subsdb.Placed{{Partition: 4, Position: subsdb.Position{Next: 9, Rests: w}}}
}

// A position rests on an event that the log has, or is of another one.
func TestCheckRests(t *testing.T) {
	l, rests := logOf(t)
	other, behind := rests[1], rests[1]
	other.CRC++
	behind.LSN = 5
	for name, c := range map[string]struct {
		w    format.Witness
		end  messages.LSN
		says string
	}{
		"on nothing":             {format.Witness{}, 3, ""},
		"on the first":           {rests[0], 3, ""},
		"on the last":            {rests[2], 3, ""},
		"the end is not told":    {rests[2], 2, ""}, // it can be read, and rested on, before that
		"on another event":       {other, 3, fmt.Sprintf("rests on LSN 2 with CRC %08x, the log has CRC %08x there", other.CRC, rests[1].CRC)},
		"on one behind the log":  {behind, 3, "the log ends at LSN 3"},
		"on one that is missing": {behind, 5, ""}, // it is told by whoever reads the event
	} {
		t.Run(name, func(t *testing.T) {
			err := subsdb.CheckRests(l, append(restingOn(rests[0]), restingOn(c.w)...), c.end)
			if c.says == "" {
				expect.NoError(t, err)
				return
			}
			expect.ErrorIs(t, err, subsdb.ErrOtherPositions)
			expect.ErrorIs(t, err, storage.ErrForeign)
			if !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "partition 4: position 9") {
				t.Errorf("got %v, want it to say %q", err, c.says)
			}
		})
	}
}

// An event that is damaged is told by whoever reads it, not by the position behind it.
func TestCheckRestsOnDamage(t *testing.T) {
	l, rests := logOf(t)
	key := format.AppendLSNKey(nil, 2)
	for _, damaged := range [][]byte{{}, []byte("damaged")} {
		expect.NoError(t, l.File.Update(func(tx *bbolt.Tx) error { return tx.Bucket(format.BucketLog).Put(key, damaged) }))
		expect.NoError(t, subsdb.CheckRests(l, restingOn(rests[1]), 3))
	}
}

// The subscription is named whose position is of another log; other errors are as they are.
func TestOfLog(t *testing.T) {
	b := kept(t)
	b.view(func(tx subsdb.Tx) {
		expect.NoError(t, tx.OfLog("name", nil))
		expect.Equal(t, storage.ErrClosed, tx.OfLog("name", storage.ErrClosed))
		err := tx.OfLog("name", fmt.Errorf("wrapped: %w", subsdb.ErrOtherPositions))
		expect.ErrorIs(t, err, storage.ErrDamaged)
		expect.ErrorIs(t, err, subsdb.ErrOtherPositions)
		expect.Equal(t, true, strings.Contains(err.Error(), `bucket positions, subscription "name"`), err)
	})
}

// A position is decoded as it was encoded, of either format, under its own key alone.
func TestPositionCodec(t *testing.T) {
	key := format.PositionKey("s", 1)
	for _, want := range []subsdb.Position{{Next: 1}, {Next: 1 << 40}, {Next: 7, Rests: format.Witness{LSN: 5, CRC: 6}}} {
		value := want.Encode(key)
		got, err := subsdb.DecodePosition(key, value)
		expect.NoError(t, err)
		expect.Equal(t, want, got)
		_, err = subsdb.DecodePosition(format.PositionKey("s", 2), value)
		expect.ErrorIs(t, err, format.ErrChecksum)
		for i := range value {
			value[i] ^= 1
			if _, err := subsdb.DecodePosition(key, value); err == nil {
				t.Errorf("%+v: byte %d is damaged, and nobody has noticed", want, i)
			}
			value[i] ^= 1
		}
	}
	for _, length := range []int{0, 7, 9, 19, 20, 21} { // 20 is a position that rests on LSN 0
		_, err := subsdb.DecodePosition(key, format.Seal(make([]byte, length), 0, format.BucketPositions, key))
		expect.ErrorIs(t, err, format.ErrLayout, length)
	}
}
