package operate

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt"
)

// TestSharedLog: whoever follows the whole log from wherever gets each line once, in their order, as if he were alone;
// what is not kept any more is not guessed.
func TestSharedLog(t *testing.T) {
	const events = 15_000
	dir := newStore(t)
	fill(t, dir, events)
	s, err := bolt.OpenExisting(limit(t), dir, bolt.Options{ReadOnly: true})
	check(t, err)
	defer func() { check(t, s.Close(limit(t))) }()
	var all bytes.Buffer
	d := s.Descriptor()
	for e, err := range s.LogWithLSN(limit(t), 1) {
		check(t, err)
		check(t, writeJSON(&all, &e, d.Printer()))
	}
	lines := strings.SplitAfter(all.String(), "\n")
	end := messages.LSN(len(lines)) // behind the last one, which is empty
	l := &sharedLog{store: s, write: writeJSON}
	for _, tt := range []struct {
		from messages.LSN
		most uint64
	}{{1, math.MaxUint64}, {1, 7}, {4000, 5000}, {10_000, math.MaxUint64}, {end - 1, 1}, {4097, 1}, {4096, 1}} {
		got, at, left := "", tt.from, tt.most
		for left > 0 {
			text, n, known, err := l.next(limit(t), at, left)
			check(t, err)
			if !known {
				t.Fatalf("from %d: %d is not known", tt.from, at)
			}
			if n == 0 {
				break
			}
			got, at, left = got+string(text), at+messages.LSN(n), left-uint64(n)
		}
		to := end - 1
		if uint64(to-tt.from+1) > tt.most {
			to = tt.from + messages.LSN(tt.most) - 1
		}
		if want := strings.Join(lines[tt.from-1:to], ""); got != want {
			t.Errorf("from %d, %d: got %d bytes, want %d", tt.from, tt.most, len(got), len(want))
		}
	}
	if l.bytes > maxSharedBytes || len(l.blocks) < 2 {
		t.Errorf("got %d bytes in %d blocks", l.bytes, len(l.blocks))
	}
	l.blocks = l.blocks[1:]
	if _, n, known, err := l.next(limit(t), 1, 1); known || n != 0 || err != nil {
		t.Errorf("got %d, %v, %v", n, known, err)
	}
	l.keep(&block{first: end + 5, text: []byte("x\n"), ends: []int{2}})
	if len(l.blocks) != 1 || l.bytes != 2 {
		t.Errorf("got %d bytes in %d blocks", l.bytes, len(l.blocks))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, _, err := (&sharedLog{store: s, write: writeText}).next(ctx, 1, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
