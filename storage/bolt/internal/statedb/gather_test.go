package statedb

import (
	"runtime"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
)

// A sequence of days that has kept all of them for a hundred years, and is to keep three: closing the others takes no
// more memory than is counted for them.
func TestGatheringIsCounted(t *testing.T) {
	const years = 100
	f := openState(t)
	day, all := calendar.Rule{Every: calendar.Day}, 0
	raise := func(keep int, days ...calendar.Date) (w *Writer) {
		update(t, f, func(tx *bbolt.Tx) error {
			w = NewWriter(tx, &boltfile.ByteArena{}, nil)
			expect.NoError(t, w.Load(7))
			w.Head.Last, w.Head.LSNs = 1, []messages.LSN{1}
			var numbers []messages.SequenceNumber
			for _, d := range days {
				numbers = append(numbers, messages.SequenceNumber{Seq: 20, Period: d, Number: 1})
			}
			expect.NoError(t, w.RaisePeriods(20, &messages.Restart{Rule: day, Keep: keep}, numbers))
			return w.Store()
		})
		return w
	}
	var days []calendar.Date
	for d := calendar.Date(19500101); d.Year() < 1950+years; d = day.Add(d, 1) {
		days, all = append(days, d), all+1
	}
	expect.Equal(t, 0, raise(0, days...).Gathered)
	// Whoever still keeps all gathers nothing.
	expect.Equal(t, 0, raise(0, days[all-1]).Gathered)

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w := raise(3, days[all-1])
	runtime.ReadMemStats(&after)
	expect.Equal(t, all-headPeriods, int(w.Gathered/gatheredBytes))
	each := float64(after.TotalAlloc-before.TotalAlloc) / float64(all-headPeriods)
	t.Logf("%d periods, %.0f bytes each", all-headPeriods, each)
	if each > gatheredBytes {
		t.Errorf("got %.0f bytes for each of %d periods, want at most the %d that are counted", each, all-headPeriods, gatheredBytes)
	}
	// The next flush has nothing to gather.
	expect.Equal(t, 0, raise(3, days[all-1]).Gathered)
}
