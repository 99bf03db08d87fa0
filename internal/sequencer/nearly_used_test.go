package sequencer

import (
	"reflect"
	"testing"
	"time"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// TestNearlyUsedIsLoaded: a workspace's sequence that was used before is noticed with its next event, whatever that is.
func TestNearlyUsedIsLoaded(t *testing.T) {
	w := up(t, messages.Settings{})
	w.seqData[1] = storedOf(kindWide, map[messages.SeqID]messages.Number{messages.SeqWLogOffset: 1, seqNarrow: narrowLargest})
	w.request(messages.Start{Workspace: 1, Kind: kindWide})
	w.truth[1] = w.seqData[1]
	w.settle()
	wantNearlyUsed(w, messages.NearlyUsed{Workspace: 1, Seq: seqNarrow, Name: "last3", Last: 100, Largest: 100})
}

// TestNearlyUsedIsNoticed: when a number is given out, also if the tail of the log has it; and not before the number is
// durable.
func TestNearlyUsedIsNoticed(t *testing.T) {
	w := up(t, messages.Settings{})
	w.event(1, kindWide, seqNarrow, seqNarrow, seqPlain)
	wantNearlyUsed(w)
	o := w.begun(1, kindWide)
	w.given(w.next(o, seqNarrow))
	w.cancel(o)
	wantNearlyUsed(w)
	w.event(1, kindWide, seqNarrow)
	used := messages.NearlyUsed{Workspace: 1, Seq: seqNarrow, Name: "last3", Last: 100, Largest: 100}
	wantNearlyUsed(w, used)
	w.event(1, kindWide, seqPlain)
	wantNearlyUsed(w, used)

	w.restart() // the tail has it, if it is not flushed yet
	w.settle()
	wantNearlyUsed(w)
	w.event(1, kindWide, seqPlain)
	wantNearlyUsed(w, used)
}

// TestNearlyUsedIsBounded: of many sequences the status has the first.
func TestNearlyUsedIsBounded(t *testing.T) {
	w := up(t, messages.Settings{})
	for i := range messages.WSID(messages.MaxNearlyUsed + 3) {
		w.event(1+testPartitions*i, kindWide, seqNarrow, seqNarrow, seqNarrow)
	}
	all := w.core.Status().NearlyUsed
	if len(all) != messages.MaxNearlyUsed || all[0].Workspace != 1 || all[len(all)-1].Workspace != 1+testPartitions*(messages.MaxNearlyUsed-1) {
		t.Errorf("got %+v", all)
	}
}

func wantNearlyUsed(w *world, want ...messages.NearlyUsed) {
	w.t.Helper()
	if got := w.core.Status().NearlyUsed; len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		w.t.Fatalf("got %+v, want %+v", got, want)
	}
}

// rounds is the status of the till's weeks that have no number left.
func rounds(weeks ...calendar.Date) (all []messages.NearlyUsed) {
	for _, week := range weeks {
		all = append(all, messages.NearlyUsed{
			Workspace: 1, Seq: seqRound, Period: week, Name: "round", Last: roundLargest, Largest: roundLargest,
		})
	}
	return all
}

// TestNearlyUsedUntilItIsOver: a period leaves the status when it is over, also if nothing happens then, and is not
// noticed again when its workspace is loaded.
func TestNearlyUsedUntilItIsOver(t *testing.T) {
	w := tillAt(t, "Europe/Zurich", "2026-07-04T12:00:00Z") // a Saturday
	w.config.CacheNumbers = 1
	w.done(w.append(w.one(1, kindTill, seqRound, seqRound, seqRound)))
	wantNearlyUsed(w, rounds(20260629)...)
	w.advance(36*time.Hour - time.Microsecond)
	wantNearlyUsed(w, rounds(20260629)...)
	w.advance(time.Microsecond)
	wantNearlyUsed(w)
	w.evict()
	w.done(w.append(w.one(1, kindTill, seqReceipt)))
	wantNearlyUsed(w)
	w.done(w.append(w.one(1, kindTill, seqRound, seqRound, seqRound)))
	wantNearlyUsed(w, rounds(20260706)...)
	w.finish()
}

// TestNearlyUsedOfTheEarliestEnd: one timer watches all periods, the one that ends first.
func TestNearlyUsedOfTheEarliestEnd(t *testing.T) {
	w := newWorld(t, messages.Settings{FlushInterval: never})
	w.config.Descriptor.Kinds[3].Sequences[0].Largest = 2
	w.now = moment(t, "2026-07-04T12:00:00Z")
	w.begin()
	w.settle()
	w.done(w.append(w.one(1, kindTill, seqRound, seqRound, seqRound)))
	w.advance(9*time.Hour + 59*time.Minute)
	w.done(w.append(w.one(1, kindTill, seqReceipt, seqReceipt)))
	day := messages.NearlyUsed{Workspace: 1, Seq: seqReceipt, Period: 20260704, Name: "receipt", Last: 2, Largest: 2}
	wantNearlyUsed(w, append(rounds(20260629), day)...)
	w.advance(time.Minute)
	wantNearlyUsed(w, rounds(20260629)...)
	w.advance(26 * time.Hour)
	wantNearlyUsed(w)
	w.finish()
}

// TestNearlyUsedByBusinessDate: each period has its own entry, whichever is the newest. One that is over when a number
// of it is given is told of until the next one begins, and one that lies ahead until it is over.
func TestNearlyUsedByBusinessDate(t *testing.T) {
	w := newWorld(t, messages.Settings{FlushInterval: never})
	restart := &w.config.Descriptor.Kinds[3].Sequences[2].Restart
	restart.Keep, restart.Ahead = 4, 2
	w.now = moment(t, "2026-07-04T12:00:00Z")
	w.begin()
	w.settle()
	of := func(week calendar.Date) {
		w.done(w.append(w.dated(week, seqRound, seqRound, seqRound)))
	}
	w.done(w.append(w.dated(20260706, seqRound)))
	wantNearlyUsed(w)
	of(20260629)
	wantNearlyUsed(w, rounds(20260629)...)
	of(20260622)
	of(20260713)
	wantNearlyUsed(w, rounds(20260629, 20260622, 20260713)...)
	w.advance(36 * time.Hour)
	wantNearlyUsed(w, rounds(20260713)...)
	w.advance(14*24*time.Hour - time.Microsecond)
	wantNearlyUsed(w, rounds(20260713)...)
	w.advance(time.Microsecond)
	wantNearlyUsed(w)
	w.finish()
}

// TestNearlyUsedUntilItIsClosed: a period that is over leaves the status when no number of it can be given any more.
func TestNearlyUsedUntilItIsClosed(t *testing.T) {
	w := tillAt(t, "Europe/Zurich", "2026-07-01T12:00:00Z")
	w.done(w.append(w.one(1, kindTill, seqRound)))
	w.advance(7 * 24 * time.Hour)
	w.done(w.append(w.dated(20260629, seqRound, seqRound)))
	wantNearlyUsed(w, rounds(20260629)...)
	w.done(w.append(w.one(1, kindTill, seqRound)))
	wantNearlyUsed(w)
	w.finish()
}

// TestNearlyUsedWhileTheClockIsWrong: nobody knows which periods are over, and nothing fires again and again.
func TestNearlyUsedWhileTheClockIsWrong(t *testing.T) {
	w := tillAt(t, "Europe/Zurich", "2026-07-04T12:00:00Z")
	w.done(w.append(w.one(1, kindTill, seqRound, seqRound, seqRound)))
	w.core.DistrustClock(messages.ErrClock, w.now)
	w.advance(48 * time.Hour)
	wantNearlyUsed(w, rounds(20260629)...)
	w.core.DistrustClock(nil, w.now)
	w.tell(&messages.TimerFired{Timer: messages.TimerClock})
	wantNearlyUsed(w)
	w.finish()
}
