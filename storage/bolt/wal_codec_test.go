package bolt

import (
	"bytes"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// What was encoded is decoded, wherever the values cross sectors and blocks, and only where
// it was written.
func TestWALRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(walDataLen-20, walDataLen+20), rapid.IntRange(0, 3*walBlockLen))
		var values [][]byte
		for i, n := range rapid.SliceOfN(length, 1, 12).Draw(t, "lengths") {
			values = append(values, bytes.Repeat([]byte{byte(i + 1)}, n))
		}
		id, first := walID{1: rapid.Byte().Draw(t, "id")}, messages.LSN(rapid.Uint64Min(1).Draw(t, "first"))
		at := walBlockLen * rapid.Int64Range(1, 8).Draw(t, "block")
		size := walSize(values)
		b := bytes.Repeat([]byte{0xEE}, int(at+size))
		encodeCommit(b[at:], id, at, first, values)
		r := &walReader{id: id, half: walHalf, b: b}
		r.scan()
		equal(t, 1, len(r.commits))
		equal(t, 0, len(r.cut))
		equal(t, walCommit{first: first, values: values, behind: at + size}, r.commits[0])
		equal(t, first, r.reached)
		for _, other := range []*walReader{
			{id: walID{1: id[1] + 1}, half: walHalf, b: b},
			{id: id, half: walHalf, b: append(make([]byte, walBlockLen), b...)},
		} {
			other.scan()
			equal(t, 0, len(other.commits))
			equal(t, 0, other.reached)
		}
	})
}

// A commit's blocks end in zeroes, whatever the buffer had.
func TestWALCommitEndsInZeroes(t *testing.T) {
	b := bytes.Repeat([]byte{0xEE}, walBlockLen)
	value := []byte{1, 2, 3}
	encodeCommit(b, walID{}, walBlockLen, 1, [][]byte{value})
	used := walCommitLen + walEventLen + len(value)
	for ; len(b) > 0; b, used = b[walSectorLen:], 0 {
		equal(t, make([]byte, walDataLen-used), b[walHeadLen+used:walSectorLen])
	}
}

// A commit takes no more blocks than its events need.
func TestWALSize(t *testing.T) {
	const room = walPerBlock*walDataLen - walCommitLen - walEventLen
	for length, want := range map[int]int64{0: 1, 1: 1, room: 1, room + 1: 2, room + walPerBlock*walDataLen: 2, room + walPerBlock*walDataLen + 1: 3} {
		equal(t, want*walBlockLen, walSize([][]byte{make([]byte, length)}), length)
	}
}

// The events of a commit may end with its data, and none ends behind it.
func TestWALDecodeCommit(t *testing.T) {
	for _, want := range [][][]byte{{[]byte("ab"), {}}, {{}, []byte("ab")}} {
		data := binary.BigEndian.AppendUint32(make([]byte, 4), uint32(len(want)))
		for _, v := range want {
			data = append(binary.BigEndian.AppendUint32(data, uint32(len(v))), v...)
		}
		got, ok := decodeCommit(data)
		equal(t, true, ok)
		equal(t, want, got)
		for n := range data {
			_, ok := decodeCommit(data[:n])
			equal(t, false, ok, n)
		}
	}
}

// A checksum is what docs/format.md says: it outlives the program that wrote it.
func TestWALSectorCRC(t *testing.T) {
	id, at, s := walID{1, 8: 2}, int64(0x0102030405060708), make([]byte, walSectorLen)
	for i := range s {
		s[i] = byte(i)
	}
	covered := binary.BigEndian.AppendUint64(bytes.Clone(id[:]), uint64(at))
	covered = append(append(covered, s[:12]...), s[16:]...)
	equal(t, crcOf(covered), sectorCRC(id, at, s))
}

func TestWALHeader(t *testing.T) {
	store, id := storeID{1, 2, 3}, walID{4, 5, 6}
	whole := encodeWALHeader(store, id, 4711)
	equal(t, walBlockLen, len(whole))
	got, length, err := decodeWALHeader(whole, store)
	noError(t, err)
	equal(t, id, got)
	equal(t, 4711, length)
	for at := range walHeaderLen {
		for bit := range 8 {
			b := bytes.Clone(whole)
			b[at] ^= 1 << bit
			_, _, err := decodeWALHeader(b, store)
			if err == nil {
				t.Fatalf("byte %d, bit %d: the flip was not found", at, bit)
			}
		}
	}
	resealed := func(change func([]byte)) []byte {
		b := bytes.Clone(whole)
		change(b)
		binary.BigEndian.PutUint32(b[walHeaderLen-4:], crcOf(b[:walHeaderLen-4]))
		return b
	}
	_, _, err = decodeWALHeader(whole, storeID{9})
	errorIs(t, err, storage.ErrForeign)
	_, _, err = decodeWALHeader(resealed(func(b []byte) { b[10] = byte(roleLog) }), store)
	errorIs(t, err, storage.ErrForeign)
	_, _, err = decodeWALHeader(resealed(func(b []byte) { b[9]++ }), store)
	errorIs(t, err, storage.ErrFormat)
	for n := range walHeaderLen {
		_, _, err := decodeWALHeader(whole[:n], store)
		errorIs(t, err, storage.ErrForeign, n)
	}
}

// FuzzWAL takes any bytes for a log.wal, and flips bits of a sound one: nothing panics, and
// what is read is what was written, or damaged.
func FuzzWAL(f *testing.F) {
	w, next := lapped(f)
	sound := w.content()
	want := w.events[next-1:]
	f.Add([]byte{}, uint32(0), byte(0))
	f.Add(sound[walBlockLen:walBlockLen+40], uint32(walBlockLen+5), byte(1))
	f.Add(bytes.Repeat([]byte{0xFF}, 20), uint32(3*walBlockLen), byte(0x80))
	f.Fuzz(func(t *testing.T, raw []byte, at uint32, bits byte) {
		_, _ = w.pendingIn(raw, next)
		// The same behind a sound header.
		_, _ = w.pendingIn(append(bytes.Clone(sound[:walBlockLen]), raw...), next)
		resealed := bytes.Clone(sound)
		sector := walBlockLen + int64(at)%(2*w.half)/walSectorLen*walSectorLen
		b := resealed[sector : sector+walSectorLen]
		copy(b, raw)
		binary.BigEndian.PutUint32(b[walCRCAt:], sectorCRC(w.id, sector, b))
		_, _ = w.pendingIn(resealed, next)

		flipped := bytes.Clone(sound)
		flipped[int(at)%len(flipped)] ^= bits
		got, err := w.pendingIn(flipped, next)
		if err == nil {
			equal(t, want, got)
		}
	})
}
