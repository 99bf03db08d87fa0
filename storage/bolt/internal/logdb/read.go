package logdb

import (
	"bytes"
	"time"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// Reader reads the log: log.db and what is pending, as of one moment.
type Reader struct {
	cursor *bbolt.Cursor
	// at is where the cursor stands, 0 if nowhere.
	at messages.LSN
	// values are pending, from first on.
	first  messages.LSN
	values [][]byte
}

// Read runs fn with a reader of the log. Its values are valid inside fn only.
func (l *Log) Read(fn func(*Reader) error) error {
	// In this order: what is not pending any more is in log.db.
	first, values := l.Pending()
	return l.File.View(func(tx *bbolt.Tx) error {
		return fn(&Reader{cursor: tx.Bucket(format.BucketLog).Cursor(), first: first, values: values})
	})
}

// maxSteps is how far an LSN is ahead of the cursor at most to be stepped to. A step takes less than a twentieth of a
// search.
const maxSteps = 16

// Value returns the value of an LSN, nil if it is not there. Ascending LSNs are fastest, also with some left out.
func (r *Reader) Value(lsn messages.LSN) []byte {
	if lsn >= r.first && lsn-r.first < messages.LSN(len(r.values)) {
		return r.values[lsn-r.first]
	}
	var key [format.LSNKeyLen]byte
	format.AppendLSNKey(key[:0], lsn)
	var k, v []byte
	at := r.at
	r.at = 0 // a search that a damaged page ends leaves the cursor anywhere
	if at != 0 && lsn > at && lsn-at <= maxSteps {
		for ; at < lsn; at++ {
			k, v = r.cursor.Next()
		}
	}
	if !bytes.Equal(k, key[:]) { // it is far, or one before it is not there
		k, v = r.cursor.Seek(key[:])
	}
	r.at = lsn
	if !bytes.Equal(k, key[:]) {
		return nil
	}
	return v
}

// Warm brings what stands at some LSNs into memory, many at a time, unless one of them is there already: then the others
// probably are.
func (l *Log) Warm(lsns []messages.LSN) {
	if len(lsns) > 1 {
		l.warm(lsns)
	}
}

func (l *Log) warm(lsns []messages.LSN) {
	touch := func(i int) {
		// An error is told to whoever needs the event.
		_ = l.Read(func(r *Reader) error {
			if v := r.Value(lsns[i]); len(v) > 0 {
				_ = v[0] ^ v[len(v)-1]
			}
			return nil
		})
	}
	begun := time.Now()
	if touch(len(lsns) / 2); boltfile.Cold(begun) {
		boltfile.Warm(len(lsns), touch)
	}
}

// readChunk is how many entries of the log are read in one transaction.
const readChunk = 1024

// Events reads the events with the LSNs given, in this order, which is fastest if it is ascending. Damage ends it with
// a DamagedError that names the LSN. The view is valid inside fn only.
func (l *Log) Events(lsns []messages.LSN, fn func(*format.EventView) error) error {
	if len(lsns) == 0 {
		return nil // the view would take memory
	}
	var view format.EventView
	for len(lsns) > 0 {
		n := min(len(lsns), readChunk)
		err := l.Read(func(r *Reader) error {
			for _, lsn := range lsns[:n] {
				value := r.Value(lsn)
				if value == nil {
					return format.DamagedEvent(lsn, 0, 0, format.ErrMissing)
				}
				if err := view.Decode(lsn, value); err != nil {
					return format.DamagedEvent(lsn, 0, 0, err)
				}
				if err := fn(&view); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		lsns = lsns[n:]
	}
	return nil
}
