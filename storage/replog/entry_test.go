package replog_test

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"

	"github.com/partita-go/partita/storage/replog"
)

const shard replog.Shard = 3

func take(t *testing.T, p *replog.Position, index uint64, entry []byte, want replog.Verdict) string {
	t.Helper()
	body, got, err := p.Take(shard, index, entry)
	if err != nil || got != want {
		t.Fatalf("entry %d: got verdict %d, %v, want %d", index, got, err, want)
	}
	return string(body)
}

func TestEntriesStandBehindEachOther(t *testing.T) {
	var p replog.Position
	first := p.Seal(shard, []byte("a"))
	rival := p.Seal(shard, []byte("b"))
	if got := take(t, &p, 4, first, replog.Accepted); got != "a" {
		t.Fatalf("got body %q", got)
	}
	after := p
	take(t, &p, 7, rival, replog.Void)
	if p != after {
		t.Fatalf("a void entry has moved the position from %v to %v", after, p)
	}
	take(t, &p, 9, p.Seal(shard, nil), replog.Accepted)
	if p.Head != 2 || p.Index != 9 {
		t.Fatalf("got %v", p)
	}
	take(t, &p, 4, first, replog.Seen)
	take(t, &p, 12, rival, replog.Void)
}

func TestReplicaThatLacksAnEntryStops(t *testing.T) {
	var p replog.Position
	first := p.Seal(shard, []byte("a"))
	take(t, &p, 1, first, replog.Accepted)
	second := p.Seal(shard, []byte("b"))

	var skipped replog.Position
	if _, _, err := skipped.Take(shard, 2, second); !errors.Is(err, replog.ErrDiverged) {
		t.Fatalf("an entry is missing: got %v", err)
	}
	var other replog.Position
	take(t, &other, 1, other.Seal(shard, []byte("c")), replog.Accepted)
	if _, _, err := other.Take(shard, 2, second); !errors.Is(err, replog.ErrDiverged) {
		t.Fatalf("another entry stands before: got %v", err)
	}
}

func TestDamagedEntry(t *testing.T) {
	var begin replog.Position
	entry := begin.Seal(shard, []byte("body"))
	for bit := range 8 * len(entry) {
		entry[bit/8] ^= 1 << (bit % 8)
		p := begin
		if _, _, err := p.Take(shard, 1, entry); !errors.Is(err, replog.ErrDiverged) || p != begin {
			t.Fatalf("bit %d: got %v, position %v", bit, err, p)
		}
		entry[bit/8] ^= 1 << (bit % 8)
	}
	for n := range entry {
		p := begin
		if _, _, err := p.Take(shard, 1, entry[:n]); !errors.Is(err, replog.ErrDiverged) {
			t.Fatalf("%d bytes: got %v", n, err)
		}
	}
	p := begin
	if _, _, err := p.Take(shard+1, 1, entry); !errors.Is(err, replog.ErrDiverged) {
		t.Fatalf("another shard: got %v", err)
	}
}

// TestEntryOfANewerVersion: a program that does not know an entry stops, and does not take its replica for one that differs.
func TestEntryOfANewerVersion(t *testing.T) {
	var begin replog.Position
	entry := begin.Seal(shard, []byte("body"))
	reversion := func(version byte) []byte {
		content := entry[:len(entry)-4]
		content[0] = version
		return binary.BigEndian.AppendUint32(content, crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli)))
	}
	p := begin
	if _, _, err := p.Take(shard, 1, reversion(2)); !errors.Is(err, replog.ErrNewer) || errors.Is(err, replog.ErrDiverged) || p != begin {
		t.Errorf("a newer version: got %v, position %v, want ErrNewer", err, p)
	}
	if _, _, err := p.Take(shard, 1, reversion(0)); !errors.Is(err, replog.ErrDiverged) || p != begin {
		t.Errorf("version 0: got %v, position %v, want ErrDiverged", err, p)
	}
}
