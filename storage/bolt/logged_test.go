package bolt

import (
	"context"
	"iter"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
)

// loggedReader is a store, or what is left of one.
type loggedReader interface {
	LogWithLSN(ctx context.Context, from messages.LSN) iter.Seq2[LoggedEvent, error]
	PLogWithLSN(ctx context.Context, id messages.PartitionID, from messages.PLogOffset) iter.Seq2[LoggedEvent, error]
	WLogWithLSN(ctx context.Context, ws messages.WSID, from messages.WLogOffset) iter.Seq2[LoggedEvent, error]
}

// TestLSNs: an event has one LSN whoever reads it, from the projections, from the tail or from
// log.db alone, and LSNs are 1, 2, 3 ...
func TestLSNs(t *testing.T) {
	dir, s := verifiable(t)
	if log, plog := len(collectEvents(t, s.Log(t.Context(), 1))), len(collectEvents(t, s.PLog(t.Context(), 0, 1))); plog == 0 || plog == log {
		t.Fatalf("got %d of %d events in partition 0: want some of them", plog, log)
	}
	isPlaced(t, s)
	closeStore(t, s)
	loseState(t, dir)
	l, err := OpenLog(t.Context(), dir)
	expect.NoError(t, err)
	isPlaced(t, l)
	expect.NoError(t, l.Close())
}

func isPlaced(t *testing.T, r loggedReader) {
	t.Helper()
	var want []messages.LSN
	plogs, wlogs := make(map[messages.PartitionID][]messages.LSN), make(map[messages.WSID][]messages.LSN)
	for e, err := range r.LogWithLSN(t.Context(), 1) {
		expect.NoError(t, err)
		want = append(want, messages.LSN(len(want)+1))
		expect.Equal(t, want[len(want)-1], e.LSN)
		plogs[e.Partition] = append(plogs[e.Partition], e.LSN)
		wlogs[e.Workspace] = append(wlogs[e.Workspace], e.LSN)
	}
	expect.Equal(t, want[1:], lsns(t, r.LogWithLSN(t.Context(), 2)))
	for id, want := range plogs {
		expect.Equal(t, want, lsns(t, r.PLogWithLSN(t.Context(), id, 1)))
		expect.Equal(t, want[1:], lsns(t, r.PLogWithLSN(t.Context(), id, 2)))
	}
	for ws, want := range wlogs {
		expect.Equal(t, want, lsns(t, r.WLogWithLSN(t.Context(), ws, 1)))
		expect.Equal(t, want[1:], lsns(t, r.WLogWithLSN(t.Context(), ws, 2)))
	}
}

func lsns(t *testing.T, events iter.Seq2[LoggedEvent, error]) []messages.LSN {
	t.Helper()
	list := []messages.LSN{}
	for e, err := range events {
		expect.NoError(t, err)
		list = append(list, e.LSN)
	}
	return list
}
