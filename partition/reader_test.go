package partition_test

import (
	"context"
	"math"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// TestPages: pages are the log cut into pieces, and shorter only at its end.
func TestPages(t *testing.T) {
	eachLibrary(t, func(t *testing.T, l *library) {
		l.fill(50, 3, 6, 3)
		plog, wlog := l.read(l.reader.PLog(l.ctx, 0, 0)), l.read(l.reader.WLog(l.ctx, 3, 0))
		equal(t, 50, len(plog))
		equal(t, 33, len(wlog))
		for _, limit := range []int{-1, 0, 1, 7, 33, 50, 1000} {
			size := max(limit, 1)
			for from := range messages.PLogOffset(60) {
				page, err := l.reader.PLogPage(l.ctx, 0, from, limit)
				noError(t, err)
				equal(t, cut(plog, int(max(from, 1)), size), page)
			}
			for from := range messages.WLogOffset(40) {
				page, err := l.reader.WLogPage(l.ctx, 3, from, limit)
				noError(t, err)
				equal(t, cut(wlog, int(max(from, 1)), size), page)
			}
		}
		page, err := l.reader.PLogPage(l.ctx, 0, math.MaxUint64, 5)
		noError(t, err)
		equal(t, 0, len(page))
		page, err = l.reader.WLogPage(l.ctx, 9, 1, 5)
		noError(t, err)
		equal(t, 0, len(page))
		_, err = l.reader.PLogPage(l.ctx, 3, 1, 5)
		isError(t, err, messages.ErrWrongPartition)
		end, err := l.reader.End(l.ctx, 0)
		noError(t, err)
		equal(t, 50, end)
	})
}

// cut returns what a page of a log from an offset on has.
func cut(log []messages.Event, from, limit int) []messages.Event {
	if from > len(log) {
		return nil
	}
	return log[from-1 : min(len(log), from-1+limit)]
}

// TestPageThatFails: half a page is none.
func TestPageThatFails(t *testing.T) {
	l := memoryLibrary(t)
	l.fill(10, 3)
	faulty := l.store.(*storagetest.Faulty)
	for _, op := range []storagetest.Op{storagetest.OpPLog, storagetest.OpWLog} {
		faulty.Plant(storagetest.Fault{Op: op, Do: storagetest.Break(4, errInjected)})
	}
	for limit, want := range map[int]error{4: nil, 5: errInjected} {
		plog, plogErr := l.reader.PLogPage(l.ctx, 0, 1, limit)
		wlog, wlogErr := l.reader.WLogPage(l.ctx, 3, 1, limit)
		isError(t, plogErr, want)
		isError(t, wlogErr, want)
		if want != nil {
			isTrue(t, plog == nil, "got %v, want none", plog)
			isTrue(t, wlog == nil, "got %v, want none", wlog)
		}
	}
}

// TestOneEvent: the one that is asked for, or ErrNoEvent that says which.
func TestOneEvent(t *testing.T) {
	eachLibrary(t, func(t *testing.T, l *library) {
		l.fill(20, 3, 6)
		for offset := messages.PLogOffset(1); offset <= 20; offset++ {
			e, err := l.reader.PartitionEvent(l.ctx, 0, offset)
			noError(t, err)
			equal(t, offset, e.PLogOffset)
		}
		for offset := messages.WLogOffset(1); offset <= 10; offset++ {
			e, err := l.reader.WorkspaceEvent(l.ctx, 6, offset)
			noError(t, err)
			equal(t, offset, e.WLogOffset)
			equal(t, messages.WSID(6), e.Workspace)
		}
		for _, offset := range []uint64{0, 21, math.MaxUint64} {
			_, err := l.reader.PartitionEvent(l.ctx, 0, messages.PLogOffset(offset))
			isError(t, err, partition.ErrNoEvent)
			_, err = l.reader.WorkspaceEvent(l.ctx, 6, messages.WLogOffset(offset))
			isError(t, err, partition.ErrNoEvent)
		}
		_, err := l.reader.WorkspaceEvent(l.ctx, 9, 1)
		equal(t, "no such event: workspace 9, offset 1", err.Error())
		_, err = l.reader.PartitionEvent(l.ctx, 3, 1)
		isError(t, err, messages.ErrWrongPartition)
		ended, cancel := context.WithCancel(l.ctx)
		cancel()
		_, err = l.reader.PartitionEvent(ended, 0, 1)
		isError(t, err, context.Canceled)
	})
}

// TestOneRecord: the row as it stands, or ErrNoRecord.
func TestOneRecord(t *testing.T) {
	eachLibrary(t, func(t *testing.T, l *library) {
		l.fill(20, 3, 6)
		id := func(n messages.Number) messages.RecordID {
			return messages.RecordID{Seq: storagetest.SeqOrder, Number: n}
		}
		l.writers[0].Append(t, storagetest.Spec{Workspace: 3, Update: []messages.RecordID{id(2)}})
		row, err := l.reader.Record(l.ctx, 3, id(2))
		noError(t, err)
		equal(t, storage.Row{ID: id(2), Data: []byte("16/2 by event 21"), PLogOffset: 21}, row)
		for _, absent := range []messages.RecordID{id(0), id(11), id(math.MaxUint64), {Seq: storagetest.SeqInvoice, Number: 2}} {
			_, err := l.reader.Record(l.ctx, 3, absent)
			isError(t, err, partition.ErrNoRecord)
		}
		n := 0
		for row, err := range l.reader.Records(l.ctx, 6, storage.RecordRange{Seq: storagetest.SeqOrder, From: 3}) {
			noError(t, err)
			equal(t, messages.Number(3+n), row.ID.Number)
			n++
		}
		equal(t, 8, n)
	})
}
