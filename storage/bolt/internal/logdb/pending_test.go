package logdb

import (
	"errors"
	"testing"
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
	equal(t, []int64{0, 7}, []int64{before, after})
	before, after = p.push(values[2:])
	equal(t, []int64{7, 12}, []int64{before, after})
	p.tell(2, nil)
	equal(t, int64(5), p.bytes)
	p.tell(1, errors.New("no"))
	equal(t, int64(5), p.bytes)
	p.tell(1, nil)
	before, _ = p.push(values)
	equal(t, int64(0), before)
}

// An attempt takes events until they are as large as it may be, and always one.
func TestPendingTake(t *testing.T) {
	p, values := pendingOf(4, 4, 4)
	p.push(values)
	for most, want := range map[int64]int{1: 1, 4: 1, 5: 2, 8: 2, 9: 3, 100: 3} {
		first, got := p.take(most)
		equal(t, 11, first)
		equal(t, want, len(got), most)
		equal(t, want, cap(got), most)
	}
}

// The first LSN goes on with what log.db has got.
func TestPendingState(t *testing.T) {
	p, values := pendingOf(1, 2, 3)
	p.skip(2)
	p.push(values)
	begun := p.state()
	equal(t, 13, begun.next)
	no := errors.New("no")
	p.tell(2, no)
	<-begun.more
	failed := p.state()
	equal(t, 13, failed.next)
	equal(t, true, failed.tries != begun.tries)
	errorIs(t, failed.failed, no)
	p.tell(2, nil)
	<-failed.more
	done := p.state()
	equal(t, 15, done.next)
	noError(t, done.failed)
	first, left := p.all()
	equal(t, 15, first)
	equal(t, values[2:], left)
}

// The applier hurries when there is enough for a transaction, and else rests.
func TestApplierHurries(t *testing.T) {
	a := newApplier(&Log{})
	defer a.rest.Stop()
	a.added(1, applyBytes-1)
	equal(t, 0, len(a.wake))
	a.added(applyBytes-1, applyBytes)
	equal(t, 1, len(a.wake))
	a.added(applyBytes, applyBytes+1)
	equal(t, 1, len(a.wake))
}
