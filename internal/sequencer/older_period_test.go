package sequencer

import (
	"testing"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// The cache has room for the periods that are kept, and for those that a business date can name besides.
func TestRoomOfPeriods(t *testing.T) {
	for _, c := range []struct{ keep, ahead, want int }{
		{0, 0, newestPeriods}, {0, 5, 6}, {2, 5, 6}, {9, 5, 9}, {1, -1, 1},
	} {
		d := restartDef{Restart: &messages.Restart{Rule: calendar.Rule{Every: calendar.Day}, Keep: c.keep, Ahead: c.ahead}}
		if got := d.room(); got != c.want {
			t.Errorf("%+v: got room for %d", c, got)
		}
	}
}

// keptSince returns a world whose workspace 1 has closed the bills before March, and keeps all since then: those of March
// and April are not loaded unasked. The world's model of the store knows no other rule than the one that it ends with.
func keptSince(t *testing.T) (w *world, finish func()) {
	t.Helper()
	w = newWorld(t, messages.Settings{FlushInterval: never})
	restart := &w.config.Descriptor.Kinds[3].Sequences[1].Restart
	restart.Keep = 1
	w.now = moment(t, "2026-06-15T12:00:00Z")
	w.begin()
	w.settle()
	for _, date := range []calendar.Date{20260131, 20260331, 20260430, 20260531, 20260615} {
		w.done(w.append(w.dated(date, seqBill)))
	}
	w.advance(2 * never)
	restart.Keep = 0
	w.crash()
	w.settle()
	w.done(w.append(w.one(1, kindTill, messages.SeqCRecordID)))
	if closed := w.truth[1].closed[seqBill]; closed != 20260301 {
		t.Fatalf("closed below %v", closed)
	}
	return w, func() {
		restart.Keep = 1
		w.finish()
	}
}

// TestFirstOpenPeriodGoesOn: the first period that is not closed may be one that is not at hand. It does not begin anew.
func TestFirstOpenPeriodGoesOn(t *testing.T) {
	w, finish := keptSince(t)
	w.wants(w.append(w.dated(20260331, seqBill)), "22/2026-03-01/101")
	late := w.append(w.dated(20260228, seqBill))
	w.settle()
	w.mustRefuse(late, messages.ErrBusinessDate)
	finish()
}

// TestUnknownPeriodIsAskedForOnce: however often a request names it.
func TestUnknownPeriodIsAskedForOnce(t *testing.T) {
	w, finish := keptSince(t)
	ws, _ := w.core.cache.Peek(1)
	m := w.dated(20260331, seqBill, seqBill)
	m.Drafts = append(m.Drafts, m.Drafts[0])
	asked := w.core.unknownPeriods(&waiting{append: &m, kind: ws.kind, ws: ws})
	if len(asked) != 1 || asked[0] != (messages.SequencePeriod{Seq: seqBill, Period: 20260301}) {
		t.Errorf("got %v, want March, once", asked)
	}
	finish()
}
