package wal_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
)

// A crash leaves any of the sectors of the last commit as they were. That commit was never
// acknowledged, and all others are there: be what was there before it zeroes, or commits
// that log.db has by now.
func TestWALTornCommit(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	w := newWALWriter(t, smallHalf)
	for i := range 20 {
		before := w.content()
		acknowledged := w.next
		w.commit([]int{300, 4100, 2 * wal.BlockLen}[i%3], 17)
		after, next := w.content(), w.applied+1
		got, err := w.pendingIn(after, next)
		expect.NoError(t, err)
		expect.Equal(t, w.events[next-1:], got, i)
		begin := wal.BlockLen + int64(w.Current)*w.Half + w.Used - wal.Size(w.events[acknowledged-1:])
		sectors := int(wal.Size(w.events[acknowledged-1:]) / wal.SectorLen)
		for range 60 {
			torn := bytes.Clone(after)
			// At least one sector is as it was.
			old := 1 + random.IntN(sectors)
			for _, sector := range random.Perm(sectors)[:old] {
				at := begin + int64(sector)*wal.SectorLen
				copy(torn[at:at+wal.SectorLen], before[at:])
			}
			got, err := w.pendingIn(torn, next)
			expect.NoError(t, err, i, old, sectors)
			expect.Equal(t, w.events[next-1:acknowledged-1], append([][]byte{}, got...), i)
		}
	}
}

// Whichever bit of a head is flipped, or of whichever byte behind it, of what log.db has
// not: it is damage, or nothing is missing.
func TestWALFlippedBits(t *testing.T) {
	t.Parallel()
	w, next := lapped(t)
	sound, want := w.content(), w.events[next-1:]
	r, err := wal.Parse(w.Path(), sound, w.Store, w.Half)
	expect.NoError(t, err)
	found := 0
	for i := range r.Commits {
		c := &r.Commits[i]
		if c.End() <= next {
			continue
		}
		for at := c.Begin; at < c.Behind; at++ {
			for bit := range 8 {
				if at >= c.Begin+wal.WALHeadLen && bit != int(at%8) {
					continue
				}
				sound[at] ^= 1 << bit
				got, err := w.pendingIn(sound, next)
				sound[at] ^= 1 << bit
				if err == nil {
					expect.Equal(t, want, got, at, bit)
					continue
				}
				found++
				expect.ErrorIs(t, err, storage.ErrDamaged)
			}
		}
	}
	if found == 0 {
		t.Fatal("no flip was found")
	}
}

// The head of the last commit is damaged, wherever it stands: it may have been acknowledged.
func TestWALDamagedHead(t *testing.T) {
	w := newWALWriter(t, smallHalf)
	for i := range 12 {
		w.commit([]int{300, 4100}[i%2])
		b := w.content()
		last := w.events[len(w.events)-1:]
		b[wal.BlockLen+int64(w.Current)*w.Half+w.Used-wal.Size(last)+wal.WALHeadLen+3] ^= 1
		_, err := w.pendingIn(b, w.applied+1)
		expect.ErrorIs(t, err, storage.ErrDamaged, i)
	}
}

// A commit that has lost a sector was acknowledged if anything is there of the next one,
// though a crash has cut that short.
func TestWALLostBeforeTorn(t *testing.T) {
	w := newWALWriter(t, 2*smallHalf)
	w.commit(10)
	w.commit(4500)
	w.commit(4500)
	sound := w.content()
	for _, head := range []int64{wal.BlockLen * 4, wal.BlockLen*4 + wal.SectorLen} {
		b := bytes.Clone(sound)
		clear(b[2*wal.BlockLen+wal.SectorLen:][:wal.SectorLen])
		clear(b[head:][:wal.SectorLen])
		_, err := w.pendingIn(b, 1)
		expect.ErrorIs(t, err, storage.ErrDamaged)
	}
}

// A whole sector that is lost is damage, too, unless it is of the last commit.
func TestWALLostSectors(t *testing.T) {
	w, next := lapped(t)
	sound := w.content()
	r, err := wal.Parse(w.Path(), sound, w.Store, w.Half)
	expect.NoError(t, err)
	live := 0
	for i := range r.Commits {
		c := &r.Commits[i]
		if c.End() <= next || c.End() == w.next {
			continue
		}
		live++
		for at := c.Begin; at < c.Behind; at += wal.SectorLen {
			b := bytes.Clone(sound)
			clear(b[at : at+wal.SectorLen])
			_, err := w.pendingIn(b, next)
			expect.ErrorIs(t, err, storage.ErrDamaged, at)
		}
	}
	if live < 2 {
		t.Fatalf("got %d commits, want at least 2", live)
	}
}

// A file that is shorter than it was is damaged, wherever it ends.
func TestWALCutFile(t *testing.T) {
	w, next := lapped(t)
	sound := w.content()
	for length := wal.SectorLen; length < len(sound); length += wal.SectorLen {
		want := storage.ErrDamaged
		if length < wal.BlockLen {
			want = wal.ErrNone
		}
		_, err := w.pendingIn(sound[:length], next)
		expect.ErrorIs(t, err, want, length)
	}
}

// What is damaged of a commit that log.db has is no harm.
func TestWALFlippedStaleBits(t *testing.T) {
	w, next := lapped(t)
	sound := w.content()
	want, err := w.pendingIn(sound, next)
	expect.NoError(t, err)
	r, err := wal.Parse(w.Path(), sound, w.Store, w.Half)
	expect.NoError(t, err)
	flips := 0
	for i := range r.Commits {
		c := &r.Commits[i]
		if c.End() > next {
			continue
		}
		for at := c.Begin + wal.SectorLen; at < c.Behind; at += wal.SectorLen {
			b := bytes.Clone(sound)
			b[at+wal.WALHeadLen] ^= 1
			got, err := w.pendingIn(b, next)
			expect.NoError(t, err, at)
			expect.Equal(t, want, got, at)
			flips++
		}
	}
	if flips == 0 {
		t.Fatal("no commit is left over")
	}
}
