package bolt

import (
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
)

// Commits go round in the halves while the applier follows; now and then one is larger than
// a half. Whenever a crash comes, all that was acknowledged is there.
func TestWALHalvesGoRound(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	s := open(t, dir, d, smallMap)
	s.log.WAL.Half = 2 * smallHalf
	w := takeOver(t, s, 0)
	halves := make(map[int]int)
	for i := range 120 {
		e := w.event(messages.WSID(i % 3))
		e.Body = make([]byte, i*97%9000)
		if i%40 == 30 {
			e.Body = make([]byte, s.log.WAL.Half)
		}
		noError(t, w.try(e))
		if i%40 == 30 {
			first, _ := s.log.Pending()
			equal(t, messages.LSN(i+2), first, "it is in log.db")
			continue
		}
		halves[s.log.WAL.Current]++
		if s.log.WAL.Used > s.log.WAL.Half {
			t.Fatalf("commit %d ends %d bytes into a half of %d", i, s.log.WAL.Used, s.log.WAL.Half)
		}
		if i%9 == 8 {
			crash := quietCopy(t, s, dir)
			opensWith(t, crash, d, collectEvents(t, s.Log(t.Context(), 1)))
		}
	}
	if len(halves) != 2 {
		t.Fatalf("got commits by halves %v, want both", halves)
	}
}

// A place is given again when log.db has what stands there, and not before.
func TestWALPlace(t *testing.T) {
	type state struct {
		current, used int
		last          [2]messages.LSN
	}
	for name, c := range map[string]struct {
		before          state
		size            int64
		applied, end    messages.LSN
		need            messages.LSN
		current, behind int
	}{
		"the first one":                       {state{}, 1, 0, 0, 0, 0, 0},
		"behind the one before":               {state{0, 2, [2]messages.LSN{9, 0}}, 2, 5, 9, 0, 0, 2},
		"into the other half":                 {state{0, 3, [2]messages.LSN{9, 0}}, 2, 5, 9, 0, 1, 0},
		"the other half is not in log.db yet": {state{1, 3, [2]messages.LSN{9, 12}}, 2, 8, 12, 9, 1, 3},
		"the other half is":                   {state{1, 3, [2]messages.LSN{9, 12}}, 2, 9, 12, 0, 0, 0},
		"log.db has everything":               {state{1, 1, [2]messages.LSN{9, 12}}, 2, 12, 12, 0, 0, 0},
		"log.db has more than log.wal":        {state{1, 1, [2]messages.LSN{9, 12}}, 2, 15, 15, 0, 0, 0},
		"it fills the half":                   {state{0, 2, [2]messages.LSN{9, 0}}, 2, 5, 9, 0, 0, 2},
		"all but the last one is in log.db":   {state{0, 3, [2]messages.LSN{9, 0}}, 1, 8, 9, 0, 0, 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := wal.Writer{Half: 4, Current: c.before.current, Used: int64(c.before.used), Last: c.before.last}
			equal(t, c.need, w.Place(c.size, c.applied, c.end))
			equal(t, c.current, w.Current)
			equal(t, int64(c.behind), w.Used)
		})
	}
}
