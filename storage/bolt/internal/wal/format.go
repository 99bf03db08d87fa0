package wal

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// log.wal begins with a block that says what it is, and else zeroes:
//
//	 0        8         10     11         27        43       51      55
//	+--------+---------+------+----------+---------+--------+-------+
//	| magic  | format  | role | store id | id      | length | CRC   |
//	| 8      | 2       | 'W'  | 16       | 16      | 8      | 4     |
//	+--------+---------+------+----------+---------+--------+-------+
//
// The file has at least this length.
//
// The rest is cut into sectors, which a disk writes wholly or not at all. Each one says
// which commit it is of, so that after a crash it is known of every sector whether it was
// written, is from before, or is damaged: a commit that lacks sectors was never
// acknowledged, and one with damaged sectors may have been.
//
//	 0             8         12      16
//	+-------------+---------+-------+----------------------------------+
//	| first LSN   | index   | CRC   | data 496                         |
//	| 8           | 4       | 4     |                                  |
//	+-------------+---------+-------+----------------------------------+
//
//	commit = sectors 4, events 4, { length 4, event }, zeroes
//
// Integers are big endian. The data of a commit's sectors, by their index from 0 on, make
// the commit. The CRC-32C covers the id of the log.wal (16), the sector's offset in the
// file (8), and the sector but for the CRC. A sector of zeroes was never written.
const (
	HeaderLen     = 55
	walLengthAt   = 43
	walRole       = 'W'
	SectorLen     = 512
	WALHeadLen    = 16
	DataLen       = SectorLen - WALHeadLen
	walIndexAt    = 8
	WALCRCAt      = 12
	WALCommitLen  = 8
	WALEventLen   = 4
	BlockLen      = 4096
	WALPerBlock   = BlockLen / SectorLen
	IDLen         = 16
	walCoveredLen = 8 + WALCRCAt
)

// ID is drawn at random for each log.wal, so that what an older one has left behind is
// never taken for its own.
type ID [IDLen]byte

func (id ID) String() string { return hex.EncodeToString(id[:]) }

// NewID returns the id of a new log.wal.
func NewID() (id ID, err error) {
	_, err = rand.Read(id[:])
	return id, err
}

// EncodeHeader returns the first block.
func EncodeHeader(store format.StoreID, id ID, length int64) []byte {
	b := append(make([]byte, 0, BlockLen), format.Magic...)
	b = binary.BigEndian.AppendUint16(b, format.WALFormat)
	b = append(append(append(b, walRole), store[:]...), id[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(length))
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, format.Castagnoli))
	return b[:BlockLen]
}

// DecodeHeader is safe on any bytes. It returns [storage.ErrForeign] if the file is not a
// log.wal of the store, [storage.ErrFormat] if the format is unknown, and the cause of the
// damage otherwise.
func DecodeHeader(b []byte, store format.StoreID) (id ID, length uint64, err error) {
	if len(b) < HeaderLen || string(b[:len(format.Magic)]) != format.Magic {
		return id, 0, fmt.Errorf("%w: no header", storage.ErrForeign)
	}
	if got := binary.BigEndian.Uint16(b[8:]); got != format.WALFormat {
		return id, 0, fmt.Errorf("%w: got %d, want %d", storage.ErrFormat, got, format.WALFormat)
	}
	if crc32.Checksum(b[:HeaderLen-4], format.Castagnoli) != format.Uint32(b[HeaderLen-4:]) {
		return id, 0, format.ErrChecksum
	}
	if b[10] != walRole {
		return id, 0, fmt.Errorf("%w: got a %v file, want a write-ahead log", storage.ErrForeign, format.Role(b[10]))
	}
	if got := format.StoreID(b[11:format.HeaderFixed]); got != store {
		return id, 0, fmt.Errorf("%w: it is of store %v, want %v", storage.ErrForeign, got, store)
	}
	return ID(b[format.HeaderFixed:]), format.Uint64(b[walLengthAt:]), nil
}

// Size returns how many bytes a commit takes in the file: whole blocks.
func Size(values [][]byte) int64 {
	n := int64(WALCommitLen)
	for _, v := range values {
		n += WALEventLen + int64(len(v))
	}
	blocks := (n + DataLen*WALPerBlock - 1) / (DataLen * WALPerBlock)
	return blocks * BlockLen
}

// EncodeCommit fills b, which is as long as Size says, with a commit that will stand
// at an offset of the file.
func EncodeCommit(b []byte, id ID, at int64, first messages.LSN, values [][]byte) {
	w := sectorWriter{b: b}
	w.uint32(uint32(len(b) / SectorLen))
	w.uint32(uint32(len(values)))
	for _, v := range values {
		w.uint32(uint32(len(v)))
		w.write(v)
	}
	w.zeroes()
	var covered sectorCovered
	for i := range len(b) / SectorLen {
		s := b[i*SectorLen : (i+1)*SectorLen]
		binary.BigEndian.PutUint64(s, uint64(first))
		binary.BigEndian.PutUint32(s[walIndexAt:], uint32(i))
		binary.BigEndian.PutUint32(s[WALCRCAt:], covered.crc(id, at+int64(i)*SectorLen, s))
	}
}

// sectorCovered is what a checksum covers before a sector's data. It serves for all sectors of a commit, since it
// cannot lie on the stack.
type sectorCovered [IDLen + walCoveredLen]byte

func (c *sectorCovered) crc(id ID, at int64, s []byte) uint32 {
	copy(c[:], id[:])
	binary.BigEndian.PutUint64(c[IDLen:], uint64(at))
	copy(c[IDLen+8:], s[:WALCRCAt])
	return crc32.Update(crc32.Update(0, format.Castagnoli, c[:]), format.Castagnoli, s[WALHeadLen:])
}

// sectorWriter writes data into sectors and leaves their heads out.
type sectorWriter struct {
	b  []byte
	at int
}

func (w *sectorWriter) write(p []byte) {
	for len(p) > 0 {
		n := copy(w.room(), p)
		w.at += n
		p = p[n:]
	}
}

// room returns what is left of the sector at hand.
func (w *sectorWriter) room() []byte {
	if w.at%SectorLen == 0 {
		w.at += WALHeadLen
	}
	return w.b[w.at : (w.at/SectorLen+1)*SectorLen]
}

func (w *sectorWriter) uint32(n uint32) {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], n)
	w.write(b[:])
}

// zeroes fills what is left.
func (w *sectorWriter) zeroes() { clear(w.b[w.at:]) }

// DecodeCommit appends the events of a commit, whose data the caller has put together, to values. It is safe on any bytes.
func DecodeCommit(values [][]byte, data []byte) ([][]byte, bool) {
	if len(data) < WALCommitLen {
		return values, false
	}
	n, data := uint64(format.Uint32(data[4:])), data[WALCommitLen:]
	if n > uint64(len(data)/WALEventLen) {
		return values, false
	}
	values = slices.Grow(values, int(n))
	for range n {
		if len(data) < WALEventLen {
			return values, false
		}
		length := uint64(format.Uint32(data))
		if data = data[WALEventLen:]; length > uint64(len(data)) {
			return values, false
		}
		values = append(values, data[:length:length])
		data = data[length:]
	}
	return values, true
}
