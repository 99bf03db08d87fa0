package boltfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// A bbolt file begins with two meta pages. Commits write them in turn, and the
// newer one that is valid says where everything is. If the newer one is damaged,
// bbolt takes the older one, and nothing tells: the last commit is gone, and of
// what the older one refers to, a commit that a crash cut short may have
// overwritten a part. So both must be valid, in each file.
//
// A crash makes none invalid: all that counts lies in the first 512 bytes of the
// page, and a sector is written wholly or not at all.
//
//	 0        16      20        24          28                72         80
//	+--------+-------+---------+-----------+-----------------+----------+
//	| page   | magic | version | page size | what bbolt      | checksum |
//	| header | 4     | 4       | 4         | refers to 44    | 8        |
//	+--------+-------+---------+-----------+-----------------+----------+
//
// Integers are in the machine's byte order. The checksum is FNV-64a of the bytes
// from 16 to 72. bbolt reads nothing else of the page.
const (
	MetaPages      = 2
	MetaMagicAt    = 16
	MetaVersionAt  = 20
	MetaPageSizeAt = 24
	MetaRootAt     = 32
	MetaFreelistAt = 48
	MetaTxAt       = 64
	MetaChecksumAt = 72
	MetaEnd        = 80

	MetaMagic   = 0xED0CDAED
	MetaVersion = 2
)

// CheckMeta makes sure that both meta pages are valid. The file is locked, so that
// nobody is writing them.
func (f *File) CheckMeta(r format.Role) error {
	pageSize := f.DB.Info().PageSize
	for page := range MetaPages {
		var meta [MetaEnd]byte
		at := int64(page) * int64(pageSize)
		if _, err := f.Handle.ReadAt(meta[:], at); err != nil {
			return fmt.Errorf("read meta page %d of %s: %w", page, f.Name, err)
		}
		if err := ValidMeta(meta[:], pageSize); err != nil {
			return &storage.DamagedError{
				Where: fmt.Sprintf("file %s, meta page %d at byte %d", f.Name, page, at),
				Cause: fmt.Errorf("%w; %s", err, r.MetaAdvice()),
			}
		}
	}
	return nil
}

// vouch writes the newer meta page as it is once more before the first commit, and syncs the
// file. If the sync of a meta page has failed, in a process before, the system shows a commit
// that the disk has not: the next one would overwrite pages of the one that the disk has, and a
// loss of power would leave a file that is neither.
func (f *File) vouch(tx *bbolt.Tx) error {
	if f.Vouched {
		return nil
	}
	if err := f.WriteMeta(uint64(tx.ID() - 1)); err != nil {
		return err
	}
	if err := f.Handle.Sync(); err != nil {
		return fmt.Errorf("%s: sync the meta page: %w", f.Name, err)
	}
	f.Vouched = true
	return nil
}

// WriteMeta writes the meta page of the last commit as it is.
func (f *File) WriteMeta(last uint64) error {
	newer, page := last%MetaPages, make([]byte, f.DB.Info().PageSize)
	read := func() (uint64, error) {
		_, err := f.Handle.ReadAt(page, int64(newer)*int64(len(page)))
		return binary.NativeEndian.Uint64(page[MetaTxAt:]), err
	}
	got, err := read()
	if err == nil && got != last {
		newer = 1 - newer // a copy that bbolt has made
		got, err = read()
	}
	if err != nil {
		return fmt.Errorf("%s: read meta page %d: %w", f.Name, newer, err)
	}
	if got != last {
		return fmt.Errorf("%s: meta page %d: %w: got commit %d, want %d", f.Name, newer, format.ErrMissing, got, last)
	}
	at := int64(newer) * int64(len(page))
	if _, err := f.Handle.WriteAt(page, at); err != nil {
		return fmt.Errorf("%s: write meta page %d: %w", f.Name, newer, err)
	}
	return nil
}

// roots returns the pages to which the meta page of a transaction refers.
func (f *File) roots(tx *bbolt.Tx) (root, freelist uint64, err error) {
	pageSize := f.DB.Info().PageSize
	for page := range MetaPages {
		var meta [MetaEnd]byte
		if _, err := f.Handle.ReadAt(meta[:], int64(page)*int64(pageSize)); err != nil {
			return 0, 0, err
		}
		if ValidMeta(meta[:], pageSize) == nil && binary.NativeEndian.Uint64(meta[MetaTxAt:]) == uint64(tx.ID()) {
			return binary.NativeEndian.Uint64(meta[MetaRootAt:]), binary.NativeEndian.Uint64(meta[MetaFreelistAt:]), nil
		}
	}
	return 0, 0, f.damaged(errors.New("no meta page is of the last commit"))
}

// ValidMeta returns what is wrong with a meta page.
func ValidMeta(meta []byte, pageSize int) error {
	for _, field := range []struct {
		name     string
		at, want uint32
	}{
		{"magic", MetaMagicAt, MetaMagic},
		{"version", MetaVersionAt, MetaVersion},
		{"page size", MetaPageSizeAt, uint32(pageSize)},
	} {
		if got := binary.NativeEndian.Uint32(meta[field.at:]); got != field.want {
			return fmt.Errorf("%w: %s: got %#x, want %#x", format.ErrLayout, field.name, got, field.want)
		}
	}
	sum := fnv.New64a()
	_, _ = sum.Write(meta[MetaMagicAt:MetaChecksumAt])
	if got, want := sum.Sum64(), binary.NativeEndian.Uint64(meta[MetaChecksumAt:]); got != want {
		return fmt.Errorf("%w: got %#x, want %#x", format.ErrChecksum, got, want)
	}
	return nil
}

// unrecognised explains why bbolt does not know a file as its own: one that begins
// as a bbolt file does is damaged, any other is foreign.
func (f *File) unrecognised(d *Directory, name string, cause error) error {
	if beginsWithMeta(d, name) {
		return f.damaged(cause)
	}
	return fmt.Errorf("%w: %s: %w", storage.ErrForeign, d.Join(name), cause)
}

func beginsWithMeta(d *Directory, name string) bool {
	handle, err := d.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer func() { _ = handle.Close() }() // it was only read
	var start [MetaVersionAt]byte
	_, err = io.ReadFull(handle, start[:])
	return err == nil && binary.NativeEndian.Uint32(start[MetaMagicAt:]) == MetaMagic
}
