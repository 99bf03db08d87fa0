package bolt

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
)

// walReader reads a log.wal that a crash has left.
type walReader struct {
	path string
	id   walID
	half int64
	b    []byte
	// commits are the whole ones, in order; cut are those of which sectors are not there.
	commits, cut []walCommit
	// reached is the highest LSN that a sector begins a commit with.
	reached messages.LSN
}

// walCommit is a commit that stands in the file.
type walCommit struct {
	first  messages.LSN
	values [][]byte
	// behind is where it ends.
	behind int64
	// damage is set if a sector of it is neither as it was written nor as it was before.
	damage error
}

// end is the LSN after its last one.
func (c *walCommit) end() messages.LSN { return c.first + messages.LSN(len(c.values)) }

// errNoWAL says that there is no log.wal, or none that anybody has begun to use.
var errNoWAL = errors.New("the write-ahead log is missing, or less than its first block")

// errZeroHeader says that something stands behind a header of zeroes: it was not being made.
var errZeroHeader = errors.New("the first sector is of zeroes, and there is something behind it")

// read finds the commits in a log.wal: all that log.db has not, and of the others those
// that have not been overwritten. A commit that a crash has cut short was never
// acknowledged. The file is stale from then on.
func (w *wal) read() (*walReader, error) {
	// It may be empty, and what is no file is not opened.
	if _, err := w.directory.present(walFileName); err != nil {
		return nil, err
	}
	var err error
	if w.stale, err = w.directory.openFile(walFileName, os.O_RDONLY, 0); err != nil {
		w.stale = nil
		if errors.Is(err, fs.ErrNotExist) {
			return nil, errNoWAL
		}
		return nil, err
	}
	b, err := readAtMost(w.stale, w.path(), walMost(w.half))
	if err != nil {
		return nil, err
	}
	return parseWAL(w.path(), b, w.store, w.half)
}

// readAtMost reads a file that has no more than so many bytes.
func readAtMost(f *os.File, path string, most int64) (b []byte, err error) {
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

var errTooLong = errors.New("it is longer than a write-ahead log can be")

// parseWAL finds the commits in the bytes of a log.wal. It is safe on any bytes.
func parseWAL(path string, b []byte, store storeID, half int64) (r *walReader, err error) {
	if first := b[:min(len(b), walSectorLen)]; bytes.Equal(first, noSector[:len(first)]) {
		if isZero(b) {
			return nil, errNoWAL
		}
		return nil, (&walReader{path: path}).damaged(0, errZeroHeader)
	}
	if len(b) < walSectorLen {
		// It was being made, unless somebody else has.
		if n := min(len(b), len(magic)); string(b[:n]) != magic[:n] {
			return nil, fmt.Errorf("%s: %w: no header", path, storage.ErrForeign)
		}
		return nil, errNoWAL
	}
	r = &walReader{path: path, half: half, b: b}
	var length uint64
	if r.id, length, err = decodeWALHeader(b, store); err != nil {
		if errors.Is(err, storage.ErrForeign) || errors.Is(err, storage.ErrFormat) {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return nil, r.damaged(0, err)
	}
	if len(b) < walBlockLen {
		return nil, errNoWAL // it was being made: its first block is durable before anybody uses it
	}
	if uint64(len(b)) < length {
		return nil, r.damaged(int64(len(b)), fmt.Errorf("%w: got %d bytes, want %d", errTruncated, len(b), length))
	}
	r.scan()
	slices.SortFunc(r.commits, func(a, b walCommit) int { return cmp.Compare(a.first, b.first) })
	return r, nil
}

// scan finds all commits: each one begins a block.
func (r *walReader) scan() {
	for at := int64(walBlockLen); at < int64(len(r.b)); at += walSectorLen {
		s, there, err := r.sector(at)
		if err != nil || !there {
			continue
		}
		r.reached = max(r.reached, s.serial)
		if s.index != 0 || at%walBlockLen != 0 {
			continue
		}
		if c := r.commit(at, s); c.values != nil {
			r.commits = append(r.commits, c)
		} else {
			r.cut = append(r.cut, c)
		}
	}
}

// commit reads the commit that begins with a sector. It has no values if it is not whole.
func (r *walReader) commit(at int64, head sector) walCommit {
	sectors := int64(be32(head.data))
	c := walCommit{first: head.serial, behind: at + sectors*walSectorLen}
	var data []byte
	for ; at < c.behind; at += walSectorLen {
		s, there, err := r.sector(at)
		if err != nil {
			c.damage = err
		}
		if !there || s.serial != head.serial || int64(s.index) != int64(len(data)/walDataLen) {
			data = nil
			break
		}
		data = append(data, s.data...)
	}
	if data == nil {
		return c
	}
	values, ok := decodeCommit(data)
	if !ok || len(values) == 0 {
		c.damage = r.damaged(at, errLayout)
		return c
	}
	c.values = values
	return c
}

// check makes sure that the commits follow each other from the LSN behind log.db on, and
// that nothing is there of one that was begun after one that is not whole: it was begun when
// that was durable.
func (r *walReader) check(next messages.LSN) error {
	behind := int64(walBlockLen)
	for i := range r.commits {
		c := &r.commits[i]
		if c.first > next {
			return r.damaged(0, fmt.Errorf("%w: LSN %d, and LSN %d is there", errMissing, next, c.first))
		}
		if c.end() >= next {
			next, behind = c.end(), c.behind
		}
	}
	if r.reached > next {
		return r.damaged(0, fmt.Errorf("%w: LSN %d, and LSN %d is there", errMissing, next, r.reached))
	}
	for i := range r.cut {
		if c := &r.cut[i]; c.first == next && c.damage != nil {
			return c.damage
		}
	}
	// Where the next one would begin.
	for _, at := range []int64{behind, walBlockLen, walBlockLen + r.half} {
		if _, _, err := r.sector(at); err != nil {
			return err
		}
	}
	return nil
}

// noSector is a sector that was never written.
var noSector [walSectorLen]byte

// sector reads a sector. One that is neither as it was written nor as it was before is
// damaged.
func (r *walReader) sector(at int64) (s sector, there bool, err error) {
	if at+walSectorLen > int64(len(r.b)) {
		return s, false, nil
	}
	b := r.b[at : at+walSectorLen]
	if bytes.Equal(b, noSector[:]) {
		return s, false, nil
	}
	if sectorCRC(r.id, at, b) != be32(b[walCRCAt:]) {
		return s, false, r.damaged(at, errChecksum)
	}
	return sector{serial: messages.LSN(be64(b)), index: be32(b[walIndexAt:]), data: b[walHeadLen:]}, true, nil
}

func (r *walReader) damaged(at int64, cause error) *storage.DamagedError {
	return &storage.DamagedError{Where: fmt.Sprintf("file %s, byte %d", r.path, at), Cause: cause}
}

// sector is what stands in a sector.
type sector struct {
	serial messages.LSN
	index  uint32
	data   []byte
}
