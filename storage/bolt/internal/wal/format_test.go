package wal_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
)

// What was encoded is decoded, wherever the values cross sectors and blocks, and only where
// it was written.
func TestWALRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(wal.DataLen-20, wal.DataLen+20), rapid.IntRange(0, 3*wal.BlockLen))
		var values [][]byte
		for i, n := range rapid.SliceOfN(length, 1, 12).Draw(t, "lengths") {
			values = append(values, bytes.Repeat([]byte{byte(i + 1)}, n))
		}
		id, first := wal.ID{1: rapid.Byte().Draw(t, "id")}, messages.LSN(rapid.Uint64Min(1).Draw(t, "first"))
		at := wal.BlockLen * rapid.Int64Range(1, 8).Draw(t, "block")
		size := wal.Size(values)
		b := bytes.Repeat([]byte{0xEE}, int(at+size))
		wal.EncodeCommit(b[at:], id, at, first, values)
		r := &wal.Reader{ID: id, Half: wal.Half, B: b}
		r.Scan()
		expect.Equal(t, 1, len(r.Commits))
		expect.Equal(t, 0, len(r.Cut))
		expect.Equal(t, wal.Commit{First: first, Events: len(values), Begin: at, Behind: at + size}, r.Commits[0])
		got, _ := r.Values(&r.Commits[0], nil, nil)
		expect.Equal(t, values, got)
		expect.Equal(t, first, r.Reached)
		for _, other := range []*wal.Reader{
			{ID: wal.ID{1: id[1] + 1}, Half: wal.Half, B: b},
			{ID: id, Half: wal.Half, B: append(make([]byte, wal.BlockLen), b...)},
		} {
			other.Scan()
			expect.Equal(t, 0, len(other.Commits))
			expect.Equal(t, 0, other.Reached)
		}
	})
}

// A commit's blocks end in zeroes, whatever the buffer had.
func TestWALCommitEndsInZeroes(t *testing.T) {
	b := bytes.Repeat([]byte{0xEE}, wal.BlockLen)
	value := []byte{1, 2, 3}
	wal.EncodeCommit(b, wal.ID{}, wal.BlockLen, 1, [][]byte{value})
	used := wal.WALCommitLen + wal.WALEventLen + len(value)
	for ; len(b) > 0; b, used = b[wal.SectorLen:], 0 {
		expect.Equal(t, make([]byte, wal.DataLen-used), b[wal.WALHeadLen+used:wal.SectorLen])
	}
}

// A commit takes no more blocks than its events need.
func TestWALSize(t *testing.T) {
	const room = wal.WALPerBlock*wal.DataLen - wal.WALCommitLen - wal.WALEventLen
	for length, want := range map[int]int64{0: 1, 1: 1, room: 1, room + 1: 2, room + wal.WALPerBlock*wal.DataLen: 2, room + wal.WALPerBlock*wal.DataLen + 1: 3} {
		expect.Equal(t, want*wal.BlockLen, wal.Size([][]byte{make([]byte, length)}), length)
	}
}

// The events of a commit may end with its data, and none ends behind it.
func TestWALDecodeCommit(t *testing.T) {
	for _, want := range [][][]byte{{[]byte("ab"), {}}, {{}, []byte("ab")}} {
		data := binary.BigEndian.AppendUint32(make([]byte, 4), uint32(len(want)))
		for _, v := range want {
			data = append(binary.BigEndian.AppendUint32(data, uint32(len(v))), v...)
		}
		got, ok := wal.DecodeCommit(nil, data)
		expect.Equal(t, true, ok)
		expect.Equal(t, want, got)
		for n := range data {
			_, ok := wal.DecodeCommit(nil, data[:n])
			expect.Equal(t, false, ok, n)
		}
	}
}

// A checksum is what docs/format.md says: it outlives the program that wrote it.
func TestWALSectorCRC(t *testing.T) {
	id, at, s := wal.ID{1, 8: 2}, int64(0x0102030405060708), make([]byte, wal.SectorLen)
	for i := range s {
		s[i] = byte(i)
	}
	covered := binary.BigEndian.AppendUint64(bytes.Clone(id[:]), uint64(at))
	covered = append(append(covered, s[:12]...), s[16:]...)
	expect.Equal(t, crcOf(covered), wal.SectorCRC(id, at, s))
}

func TestWALHeader(t *testing.T) {
	store, id := format.StoreID{1, 2, 3}, wal.ID{4, 5, 6}
	whole := wal.EncodeHeader(store, id, 4711)
	expect.Equal(t, wal.BlockLen, len(whole))
	got, length, err := wal.DecodeHeader(whole, store)
	expect.NoError(t, err)
	expect.Equal(t, id, got)
	expect.Equal(t, 4711, length)
	for at := range wal.HeaderLen {
		for bit := range 8 {
			b := bytes.Clone(whole)
			b[at] ^= 1 << bit
			_, _, err := wal.DecodeHeader(b, store)
			if err == nil {
				t.Fatalf("byte %d, bit %d: the flip was not found", at, bit)
			}
		}
	}
	resealed := func(change func([]byte)) []byte {
		b := bytes.Clone(whole)
		change(b)
		binary.BigEndian.PutUint32(b[wal.HeaderLen-4:], crcOf(b[:wal.HeaderLen-4]))
		return b
	}
	_, _, err = wal.DecodeHeader(whole, format.StoreID{9})
	expect.ErrorIs(t, err, storage.ErrForeign)
	_, _, err = wal.DecodeHeader(resealed(func(b []byte) { b[10] = byte(format.RoleLog) }), store)
	expect.ErrorIs(t, err, storage.ErrForeign)
	_, _, err = wal.DecodeHeader(resealed(func(b []byte) { b[9]++ }), store)
	expect.ErrorIs(t, err, storage.ErrFormat)
	for n := range wal.HeaderLen {
		_, _, err := wal.DecodeHeader(whole[:n], store)
		expect.ErrorIs(t, err, storage.ErrForeign, n)
	}
}

// FuzzWAL takes any bytes for a log.wal, and flips bits of a sound one: nothing panics, and
// what is read is what was written, or damaged.
func FuzzWAL(f *testing.F) {
	w, next := lapped(f)
	sound := w.content()
	want := w.events[next-1:]
	f.Add([]byte{}, uint32(0), byte(0))
	f.Add(sound[wal.BlockLen:wal.BlockLen+40], uint32(wal.BlockLen+5), byte(1))
	f.Add(bytes.Repeat([]byte{0xFF}, 20), uint32(3*wal.BlockLen), byte(0x80))
	f.Fuzz(func(t *testing.T, raw []byte, at uint32, bits byte) {
		_, _ = w.pendingIn(raw, next)
		// The same behind a sound header.
		_, _ = w.pendingIn(append(bytes.Clone(sound[:wal.BlockLen]), raw...), next)
		resealed := bytes.Clone(sound)
		sector := wal.BlockLen + int64(at)%(2*w.Half)/wal.SectorLen*wal.SectorLen
		b := resealed[sector : sector+wal.SectorLen]
		copy(b, raw)
		binary.BigEndian.PutUint32(b[wal.WALCRCAt:], wal.SectorCRC(w.ID, sector, b))
		_, _ = w.pendingIn(resealed, next)

		flipped := bytes.Clone(sound)
		flipped[int(at)%len(flipped)] ^= bits
		got, err := w.pendingIn(flipped, next)
		if err == nil {
			expect.Equal(t, want, got)
		}
	})
}
