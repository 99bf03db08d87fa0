package logdb

import (
	"errors"
	"testing"

	"github.com/partita-go/partita/storage/bolt/internal/expect"
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
	p.tell(2, nil)
	expect.Equal(t, int64(5), p.bytes)
	p.tell(1, errors.New("no"))
	expect.Equal(t, int64(5), p.bytes)
	p.tell(1, nil)
	before, _ = p.push(values)
	expect.Equal(t, int64(0), before)
}

// An attempt takes events until they are as large as it may be, and always one.
func TestPendingTake(t *testing.T) {
	p, values := pendingOf(4, 4, 4)
	p.push(values)
	for most, want := range map[int64]int{1: 1, 4: 1, 5: 2, 8: 2, 9: 3, 100: 3} {
		first, got := p.take(most)
		expect.Equal(t, 11, first)
		expect.Equal(t, want, len(got), most)
		expect.Equal(t, want, cap(got), most)
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
	p.tell(2, no)
	<-begun.more
	failed := p.state()
	expect.Equal(t, 13, failed.next)
	expect.Equal(t, true, failed.tries != begun.tries)
	expect.ErrorIs(t, failed.failed, no)
	p.tell(2, nil)
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
