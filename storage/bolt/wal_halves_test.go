package bolt

import (
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
)

// Commits go round in the halves while the applier follows; now and then one is larger than
// a half. Whenever a crash comes, all that was acknowledged is there.
func TestWALHalvesGoRound(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	s := open(t, dir, d, smallMap)
	s.log.WAL.Half = 8 * wal.BlockLen
	w := takeOver(t, s, 0)
	halves := make(map[int]int)
	for i := range 120 {
		e := w.event(messages.WSID(i % 3))
		e.Body = make([]byte, i*97%9000)
		if i%40 == 30 {
			e.Body = make([]byte, s.log.WAL.Half)
		}
		expect.NoError(t, w.try(e))
		if i%40 == 30 {
			first, _ := s.log.Pending()
			expect.Equal(t, messages.LSN(i+2), first, "it is in log.db")
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
