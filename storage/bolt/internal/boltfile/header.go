package boltfile

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/verify"
)

// ReadHeader reads and checks a file's header, its meta pages, its buckets and its
// length.
func (f *File) ReadHeader(r format.Role) (format.Header, error) {
	checkMeta := func() error { return f.CheckMeta(r) }
	for _, check := range []func() error{checkMeta, f.truncated, f.checkUpper} {
		if err := check(); err != nil {
			return format.Header{}, err
		}
	}
	return f.Header(r)
}

// Header reads and checks a file's header and looks for its buckets. The file may be in
// use.
func (f *File) Header(r format.Role) (h format.Header, err error) {
	err = f.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket(format.BucketHeader)
		if b == nil {
			return f.noHeader(tx, r)
		}
		h, err = format.DecodeHeader(b.Get(format.KeyHeader))
		switch {
		case errors.Is(err, storage.ErrForeign), errors.Is(err, storage.ErrFormat):
			return fmt.Errorf("%s: %w", f.Name, err)
		case errors.Is(err, calendar.ErrZone):
			return fmt.Errorf("%s: the store is whole, but this machine lacks a time zone of it; update its zone database: %w", f.Name, err)
		case err != nil:
			return &storage.DamagedError{Where: f.PlaceOf(format.BucketHeader, "%s", format.KeyHeader), Cause: err}
		case h.Role != r:
			return fmt.Errorf("%w: %s: got a %v file, want a %v file", storage.ErrForeign, f.Name, h.Role, r)
		}
		if r == format.RoleState && h.Format < format.StateFormat {
			return nil // it is made anew
		}
		for _, name := range r.Buckets() {
			if tx.Bucket(name) == nil {
				return &storage.DamagedError{Where: f.PlaceOf(name, "the bucket"), Cause: format.ErrMissing}
			}
		}
		return nil
	})
	return h, err
}

// noHeader says what a file without a header is: damaged, if it has all our other buckets.
func (f *File) noHeader(tx *bbolt.Tx, r format.Role) error {
	for _, name := range r.Buckets() {
		if !bytes.Equal(name, format.BucketHeader) && tx.Bucket(name) == nil {
			return fmt.Errorf("%w: %s: no header", storage.ErrForeign, f.Name)
		}
	}
	return &storage.DamagedError{Where: f.PlaceOf(format.BucketHeader, "the bucket"), Cause: format.ErrMissing}
}

// CheckHeaderKeys tells what is in the header's bucket that nobody has put there: a key
// that was changed stands for nothing any more.
func (f *File) CheckHeaderKeys(role format.Role, stray func(verify.Fault)) error {
	return f.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(format.BucketHeader).ForEach(func(k, _ []byte) error {
			known := slices.ContainsFunc(role.HeaderKeys(), func(key []byte) bool { return bytes.Equal(key, k) })
			if !known {
				stray(verify.Fault{
					Check: verify.CheckHeader, Where: f.PlaceOf(format.BucketHeader, "key %x", k), Projection: role == format.RoleState,
					Text: "nothing is known of this key; what it was is missing",
				})
			}
			return nil
		})
	})
}

// Ends reports whether bbolt can read a damaged file and end.
func (f *File) Ends() bool { return f.checkUpper() == nil }
