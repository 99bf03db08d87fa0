package bolt

import (
	"bytes"
	"encoding/binary"
	"io"
	"path/filepath"
	"testing"

	"github.com/partita-go/partita/storage/bolt/internal/expect"
)

// largestFrame returns how large the largest frame of a seed is.
func largestFrame(seed []byte) (largest uint32) {
	const magicLen, headLen, sumLen = 17, 5, 4
	for rest := seed[magicLen:]; len(rest) > 0; {
		n := binary.BigEndian.Uint32(rest[1:])
		largest = max(largest, n)
		rest = rest[headLen+n+sumLen:]
	}
	return largest
}

// Much is appended while the last pages go to a slow reader. It is not read at once, and no frame has all of it.
func TestSeedToASlowReader(t *testing.T) {
	const body, chunk = 3 << 20, 8 << 20
	r, w := subscribingThree(t)
	d, lost := w.s.Descriptor(), r.nodes[2]
	r.close(t, lost)
	var phases []string
	seed := seedOf(t, w.s, func(phase string) {
		phases = append(phases, phase)
		if phase != "copy subscriptions.db" {
			return
		}
		for range 8 {
			e := w.event(1)
			e.Body = make([]byte, body)
			expect.NoError(t, w.try(e))
		}
	})
	if last := phases[len(phases)-1]; last != "copy log.db" {
		t.Errorf("got %q, want the events that came late", phases)
	}
	if got := largestFrame(seed); got > chunk+2*body {
		t.Errorf("got a frame of %d bytes", got)
	}
	lost.dir = filepath.Join(t.TempDir(), "seeded")
	_, err := ReadSeed(t.Context(), bytes.NewReader(seed), lost.dir, CopyOptions{})
	expect.NoError(t, err)
	r.open(t, lost, d)
	r.same(t, w.s, 14)
	r.sameSubscriptions(t, w.s)
}

// A seed ends, with an error, when more comes to the store each time than what was read.
func TestSeedThatIsOvertaken(t *testing.T) {
	const body = 3 << 20
	_, w := subscribingThree(t)
	rounds := 0
	err := w.s.WriteSeed(t.Context(), io.Discard, CopyOptions{Progress: func(p CopyProgress) {
		if p.Phase != "copy log.db" || p.Done != p.Total || rounds > 20 {
			return
		}
		rounds++
		for range 3 {
			e := w.event(1)
			e.Body = make([]byte, body)
			expect.NoError(t, w.try(e))
		}
	}})
	expect.ErrorIs(t, err, ErrOvertaken)
	if rounds > 10 {
		t.Errorf("it has given up after %d rounds", rounds)
	}
}
