package wal

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// Reader reads a log.wal that a crash has left.
type Reader struct {
	path string
	ID   ID
	Half int64
	B    []byte
	// Commits are the whole ones, in order; Cut are those of which sectors are not there.
	Commits, Cut []Commit
	// Reached is the highest LSN that a sector begins a commit with.
	Reached messages.LSN
	// covered, values and data serve for each sector, and each commit, again.
	covered sectorCovered
	values  [][]byte
	data    []byte
}

// Commit is a commit that stands in the file.
type Commit struct {
	First messages.LSN
	// Events is how many it has, none if it is not whole.
	Events int
	// Begin and Behind are where it begins and ends.
	Begin, Behind int64
	// damage is set if a sector of it is neither as it was written nor as it was before.
	damage error
}

// End is the LSN after its last one.
func (c *Commit) End() messages.LSN { return c.First + messages.LSN(c.Events) }

// Read finds the commits in a log.wal: all that log.db has not, and of the others those
// that have not been overwritten. A commit that a crash has cut short was never
// acknowledged. The file is stale from then on.
func (w *Writer) Read() (*Reader, error) {
	// It may be empty, and what is no file is not opened.
	if _, err := w.Directory.Present(format.WALFileName); err != nil {
		return nil, err
	}
	var err error
	if w.Stale, err = w.Directory.OpenFile(format.WALFileName, os.O_RDONLY, 0); err != nil {
		w.Stale = nil
		if errors.Is(err, fs.ErrNotExist) {
			return nil, ErrNone
		}
		return nil, err
	}
	b, err := ReadAtMost(w.Stale, w.Path(), Most(w.Half))
	if err != nil {
		return nil, err
	}
	return Parse(w.Path(), b, w.Store, w.Half)
}

// ReadAtMost reads a file that has no more than so many bytes.
func ReadAtMost(f fs.File, path string, most int64) (b []byte, err error) {
	var buffer bytes.Buffer
	if info, err := f.Stat(); err == nil {
		// Growing to tens of MiB by and by takes longer than reading them.
		buffer.Grow(int(min(info.Size(), most)) + bytes.MinRead)
	}
	_, err = buffer.ReadFrom(io.LimitReader(f, most+1))
	if b = buffer.Bytes(); err == nil && int64(len(b)) > most {
		err = &storage.DamagedError{Where: "file " + path, Cause: fmt.Errorf("%w: more than %d bytes", errTooLong, most)}
	}
	return b, err
}

// Parse finds the commits in the bytes of a log.wal. It is safe on any bytes.
func Parse(path string, b []byte, store format.StoreID, half int64) (r *Reader, err error) {
	if first := b[:min(len(b), SectorLen)]; bytes.Equal(first, NoSector[:len(first)]) {
		if isZero(b) {
			return nil, ErrNone
		}
		return nil, (&Reader{path: path}).damaged(0, errZeroHeader)
	}
	if len(b) < SectorLen {
		// It was being made, unless somebody else has.
		if n := min(len(b), len(format.Magic)); string(b[:n]) != format.Magic[:n] {
			return nil, fmt.Errorf("%s: %w: no header", path, storage.ErrForeign)
		}
		return nil, ErrNone
	}
	r = &Reader{path: path, Half: half, B: b}
	var length uint64
	if r.ID, length, err = DecodeHeader(b, store); err != nil {
		if errors.Is(err, storage.ErrForeign) || errors.Is(err, storage.ErrFormat) {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return nil, r.damaged(0, err)
	}
	if len(b) < BlockLen {
		return nil, ErrNone // it was being made: its first block is durable before anybody uses it
	}
	if uint64(len(b)) < length {
		return nil, r.damaged(int64(len(b)), fmt.Errorf("%w: got %d bytes, want %d", format.ErrTruncated, len(b), length))
	}
	r.Scan()
	slices.SortFunc(r.Commits, func(a, b Commit) int { return cmp.Compare(a.First, b.First) })
	return r, nil
}

// Scan finds all commits: each one begins a block.
func (r *Reader) Scan() {
	for at := int64(BlockLen); at < int64(len(r.B)); at += SectorLen {
		s, there, err := r.sector(at)
		if err != nil || !there {
			continue
		}
		r.Reached = max(r.Reached, s.serial)
		if s.index != 0 || at%BlockLen != 0 {
			continue
		}
		c := r.commit(at, s)
		if c.Events == 0 {
			r.Cut = append(r.Cut, c)
			continue
		}
		r.Commits = append(r.Commits, c)
		at = c.Behind - SectorLen // it has no other one inside
	}
}

// commit looks at the commit that begins with a sector.
func (r *Reader) commit(at int64, head sector) Commit {
	sectors := int64(format.Uint32(head.data))
	c := Commit{First: head.serial, Begin: at, Behind: at + sectors*SectorLen}
	whole := sectors > 0
	for i := int64(1); i < sectors && whole; i++ {
		s, there, err := r.sector(at + i*SectorLen)
		if err != nil {
			c.damage = err
		}
		whole = there && s.serial == head.serial && int64(s.index) == i
	}
	if !whole {
		return c
	}
	var ok bool
	if r.values, r.data, ok = r.decode(&c, r.values[:0], r.data[:0]); !ok || len(r.values) == 0 {
		c.damage = r.damaged(c.Behind, format.ErrLayout)
		return c
	}
	c.Events = len(r.values)
	return c
}

// Values appends the events of one of the Commits to values. They lie in data, which it extends.
func (r *Reader) Values(c *Commit, values [][]byte, data []byte) ([][]byte, []byte) {
	values, data, _ = r.decode(c, values, data) // that of a whole commit is right
	return values, data
}

// decode is Values of a commit whose sectors are there, and may be anything.
func (r *Reader) decode(c *Commit, values [][]byte, data []byte) ([][]byte, []byte, bool) {
	begin := len(data)
	data = slices.Grow(data, int((c.Behind-c.Begin)/SectorLen*DataLen))
	for at := c.Begin; at < c.Behind; at += SectorLen {
		data = append(data, r.B[at+WALHeadLen:at+SectorLen]...)
	}
	values, ok := DecodeCommit(values, data[begin:])
	return values, data, ok
}

// Check makes sure that the commits follow each other from the LSN behind log.db on, and
// that nothing is there of one that was begun after one that is not whole: it was begun when
// that was durable.
func (r *Reader) Check(next messages.LSN) error {
	behind := int64(BlockLen)
	for i := range r.Commits {
		c := &r.Commits[i]
		if c.First > next {
			return r.damaged(0, fmt.Errorf("%w: LSN %d, and LSN %d is there", format.ErrMissing, next, c.First))
		}
		if c.End() >= next {
			next, behind = c.End(), c.Behind
		}
	}
	if r.Reached > next {
		return r.damaged(0, fmt.Errorf("%w: LSN %d, and LSN %d is there", format.ErrMissing, next, r.Reached))
	}
	for i := range r.Cut {
		if c := &r.Cut[i]; c.First == next && c.damage != nil {
			return c.damage
		}
	}
	// Where the next one would begin.
	for _, at := range []int64{behind, BlockLen, BlockLen + r.Half} {
		if _, _, err := r.sector(at); err != nil {
			return err
		}
	}
	return nil
}

// NoSector is a sector that was never written.
var NoSector [SectorLen]byte

// sector reads a sector. One that is neither as it was written nor as it was before is
// damaged.
func (r *Reader) sector(at int64) (s sector, there bool, err error) {
	if at+SectorLen > int64(len(r.B)) {
		return s, false, nil
	}
	b := r.B[at : at+SectorLen]
	if bytes.Equal(b, NoSector[:]) {
		return s, false, nil
	}
	if r.covered.crc(r.ID, at, b) != format.Uint32(b[WALCRCAt:]) {
		return s, false, r.damaged(at, format.ErrChecksum)
	}
	return sector{serial: messages.LSN(format.Uint64(b)), index: format.Uint32(b[walIndexAt:]), data: b[WALHeadLen:]}, true, nil
}

func (r *Reader) damaged(at int64, cause error) *storage.DamagedError {
	return &storage.DamagedError{Where: fmt.Sprintf("file %s, byte %d", r.path, at), Cause: cause}
}

// sector is what stands in a sector.
type sector struct {
	serial messages.LSN
	index  uint32
	data   []byte
}
