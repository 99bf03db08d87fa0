package logdb

import (
	"errors"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/replog"
)

// pendingOf returns what is pending behind LSN 10: events of these lengths.
func pendingOf(lengths ...int) (p *pending, values [][]byte) {
	p = &pending{}
	p.restart(11)
	for _, n := range lengths {
		values = append(values, make([]byte, n))
	}
	return p, values
}

// What is pending is counted in bytes: it says when the applier is to hurry.
func TestPendingBytes(t *testing.T) {
	p, values := pendingOf(3, 4, 5)
	before, after := p.push(values[:2])
	expect.Equal(t, []int64{0, 7}, []int64{before, after})
	before, after = p.push(values[2:])
	expect.Equal(t, []int64{7, 12}, []int64{before, after})
	p.tell(taken{values: values[:2]}, nil)
	expect.Equal(t, int64(5), p.bytes)
	p.tell(taken{values: values[:1]}, errors.New("no"))
	expect.Equal(t, int64(5), p.bytes)
	p.tell(taken{values: values[2:]}, nil)
	before, _ = p.push(values)
	expect.Equal(t, int64(0), before)
}

// An attempt takes events until they are as large as it may be, and always one.
func TestPendingTake(t *testing.T) {
	p, values := pendingOf(4, 4, 4)
	p.push(values)
	for most, want := range map[int64]int{1: 1, 4: 1, 5: 2, 8: 2, 9: 3, 100: 3} {
		got := p.take(most)
		expect.Equal(t, 11, got.first)
		expect.Equal(t, want, len(got.values), most)
		expect.Equal(t, want, cap(got.values), most)
	}
}

// The first LSN goes on with what log.db has got.
func TestPendingState(t *testing.T) {
	p, values := pendingOf(1, 2, 3)
	p.skip(2)
	p.push(values)
	begun := p.state()
	expect.Equal(t, 13, begun.next)
	no := errors.New("no")
	p.tell(taken{values: values[:2]}, no)
	<-begun.more
	failed := p.state()
	expect.Equal(t, 13, failed.next)
	expect.Equal(t, true, failed.tries != begun.tries)
	expect.ErrorIs(t, failed.failed, no)
	p.tell(taken{values: values[:2]}, nil)
	<-failed.more
	done := p.state()
	expect.Equal(t, 15, done.next)
	expect.NoError(t, done.failed)
	first, left := p.all()
	expect.Equal(t, 15, first)
	expect.Equal(t, values[2:], left)
}

// The applier hurries when there is enough for a transaction, and else rests.
func TestApplierHurries(t *testing.T) {
	a := newApplier(&Log{})
	defer a.rest.Stop()
	a.added(1, applyBytes-1)
	expect.Equal(t, 0, len(a.wake))
	a.added(applyBytes-1, applyBytes)
	expect.Equal(t, 1, len(a.wake))
	a.added(applyBytes, applyBytes+1)
	expect.Equal(t, 1, len(a.wake))
}

// What was taken of a replicated log comes to log.db by whole entries, and those without events do, too.
func TestPendingEntries(t *testing.T) {
	p, values := pendingOf(4, 4, 4)
	entry := func(head uint64, values ...[]byte) (before, after int64) {
		return p.pushEntry(&Entry{At: replog.Position{Head: head}, Entry: format.Entry{Values: values}})
	}
	before, after := entry(1, values[:2]...)
	expect.Equal(t, []int64{0, 8 + pendingEntryBytes}, []int64{before, after})
	entry(2)
	before, after = entry(3, values[2])
	expect.Equal(t, []int64{8 + 2*pendingEntryBytes, 12 + 3*pendingEntryBytes}, []int64{before, after})

	for most, want := range map[int64][]int{1: {2, 1}, 8 + pendingEntryBytes: {2, 1}, 9 + pendingEntryBytes: {2, 2}, 1 << 20: {3, 3}} {
		got := p.take(most)
		expect.Equal(t, want, []int{len(got.values), len(got.entries)}, most)
	}
	p.tell(p.take(9+pendingEntryBytes), nil)
	first, left := p.all()
	expect.Equal(t, 13, first)
	expect.Equal(t, values[2:], left)
	got := p.take(1)
	expect.Equal(t, 3, got.entries[0].at.Head)
	p.tell(got, nil)
	expect.Equal(t, int64(0), p.bytes)
}

// What waits for room goes on although what takes it has no events.
func TestRoomBehindEpochs(t *testing.T) {
	l := read(t, t.TempDir())
	at := func(n uint64) replog.Position { return replog.Position{Index: n, Head: n, Sum: 1} }
	l.Replicate(func(uint64) {}, func(to replog.Position) replog.Position { return to })
	l.Memory = 1
	l.Start(func(error) {})
	release := l.hold(t)
	take := func(n uint64) error {
		return l.Take(&Entry{At: at(n), Entry: format.Entry{Epochs: []Epoch{{Partition: 0, Epoch: messages.Epoch(n)}}}}, l.Memory)
	}
	expect.NoError(t, take(1))
	taken := make(chan error, 1)
	go func() { taken <- take(2) }()
	release()
	expect.NoError(t, <-taken)
	expect.NoError(t, l.AwaitEntry(t.Context(), 2))
	expect.Equal(t, uint64(2), l.Taken())
}
