package bolt

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
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
	walHeaderLen  = 55
	walLengthAt   = 43
	walRole       = 'W'
	walSectorLen  = 512
	walHeadLen    = 16
	walDataLen    = walSectorLen - walHeadLen
	walIndexAt    = 8
	walCRCAt      = 12
	walCommitLen  = 8
	walEventLen   = 4
	walBlockLen   = 4096
	walPerBlock   = walBlockLen / walSectorLen
	walIDLen      = 16
	walCoveredLen = 8 + walCRCAt
)

// walID is drawn at random for each log.wal, so that what an older one has left behind is
// never taken for its own.
type walID [walIDLen]byte

func (id walID) String() string { return hex.EncodeToString(id[:]) }

func newWALID() (id walID, err error) {
	_, err = rand.Read(id[:])
	return id, err
}

// encodeWALHeader returns the first block.
func encodeWALHeader(store storeID, id walID, length int64) []byte {
	b := append(make([]byte, 0, walBlockLen), magic...)
	b = binary.BigEndian.AppendUint16(b, walFormat)
	b = append(append(append(b, walRole), store[:]...), id[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(length))
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	return b[:walBlockLen]
}

// decodeWALHeader is safe on any bytes. It returns [storage.ErrForeign] if the file is not a
// log.wal of the store, [storage.ErrFormat] if the format is unknown, and the cause of the
// damage otherwise.
func decodeWALHeader(b []byte, store storeID) (id walID, length uint64, err error) {
	if len(b) < walHeaderLen || string(b[:len(magic)]) != magic {
		return id, 0, fmt.Errorf("%w: no header", storage.ErrForeign)
	}
	if got := binary.BigEndian.Uint16(b[8:]); got != walFormat {
		return id, 0, fmt.Errorf("%w: got %d, want %d", storage.ErrFormat, got, walFormat)
	}
	if crc32.Checksum(b[:walHeaderLen-4], castagnoli) != be32(b[walHeaderLen-4:]) {
		return id, 0, errChecksum
	}
	if b[10] != walRole {
		return id, 0, fmt.Errorf("%w: got a %v file, want a write-ahead log", storage.ErrForeign, role(b[10]))
	}
	if got := storeID(b[11:headerFixed]); got != store {
		return id, 0, fmt.Errorf("%w: it is of store %v, want %v", storage.ErrForeign, got, store)
	}
	return walID(b[headerFixed:]), be64(b[walLengthAt:]), nil
}

// walSize returns how many bytes a commit takes in the file: whole blocks.
func walSize(values [][]byte) int64 {
	n := int64(walCommitLen)
	for _, v := range values {
		n += walEventLen + int64(len(v))
	}
	blocks := (n + walDataLen*walPerBlock - 1) / (walDataLen * walPerBlock)
	return blocks * walBlockLen
}

// encodeCommit fills b, which is as long as walSize says, with a commit that will stand
// at an offset of the file.
func encodeCommit(b []byte, id walID, at int64, first messages.LSN, values [][]byte) {
	w := sectorWriter{b: b}
	w.uint32(uint32(len(b) / walSectorLen))
	w.uint32(uint32(len(values)))
	for _, v := range values {
		w.uint32(uint32(len(v)))
		w.write(v)
	}
	w.zeroes()
	for i := range len(b) / walSectorLen {
		s := b[i*walSectorLen : (i+1)*walSectorLen]
		binary.BigEndian.PutUint64(s, uint64(first))
		binary.BigEndian.PutUint32(s[walIndexAt:], uint32(i))
		binary.BigEndian.PutUint32(s[walCRCAt:], sectorCRC(id, at+int64(i)*walSectorLen, s))
	}
}

func sectorCRC(id walID, at int64, s []byte) uint32 {
	var covered [walIDLen + walCoveredLen]byte
	copy(covered[:], id[:])
	binary.BigEndian.PutUint64(covered[walIDLen:], uint64(at))
	copy(covered[walIDLen+8:], s[:walCRCAt])
	return crc32.Update(crc32.Update(0, castagnoli, covered[:]), castagnoli, s[walHeadLen:])
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
	if w.at%walSectorLen == 0 {
		w.at += walHeadLen
	}
	return w.b[w.at : (w.at/walSectorLen+1)*walSectorLen]
}

func (w *sectorWriter) uint32(n uint32) {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], n)
	w.write(b[:])
}

// zeroes fills what is left.
func (w *sectorWriter) zeroes() { clear(w.b[w.at:]) }

// decodeCommit returns the events of a commit, whose data the caller has put together. It
// is safe on any bytes.
func decodeCommit(data []byte) ([][]byte, bool) {
	if len(data) < walCommitLen {
		return nil, false
	}
	n, data := uint64(be32(data[4:])), data[walCommitLen:]
	if n > uint64(len(data)/walEventLen) {
		return nil, false
	}
	values := make([][]byte, 0, n)
	for range n {
		if len(data) < walEventLen {
			return nil, false
		}
		length := uint64(be32(data))
		if data = data[walEventLen:]; length > uint64(len(data)) {
			return nil, false
		}
		values = append(values, data[:length:length])
		data = data[length:]
	}
	return values, true
}
