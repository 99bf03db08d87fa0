package statedb

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// plogs are the logs of partitions, as a test has appended to them.
type plogs struct {
	t     expect.T
	state *boltfile.File
	lsns  map[messages.PartitionID][]messages.LSN
	last  messages.LSN
}

func newPLogs(t expect.T, state *boltfile.File) *plogs {
	return &plogs{t: t, state: state, lsns: map[messages.PartitionID][]messages.LSN{}}
}

// put appends n events to a partition's log.
func (l *plogs) put(p messages.PartitionID, n int) {
	l.t.Helper()
	first := len(l.lsns[p])
	for range n {
		l.last += 1 + messages.LSN(p)
		l.lsns[p] = append(l.lsns[p], l.last)
	}
	l.at(p, messages.PLogOffset(first+1), l.lsns[p][first:])
}

func (l *plogs) at(p messages.PartitionID, first messages.PLogOffset, lsns []messages.LSN) {
	l.t.Helper()
	update(l.t, l.state, func(tx *bbolt.Tx) error { return PutPLog(tx.Bucket(format.BucketPLog), p, first, lsns) })
}

// check reads a range, and one that is too long.
func (l *plogs) check(p messages.PartitionID, from, to int) {
	l.t.Helper()
	want := l.lsns[p][from-1 : to-1]
	got, err := PLog(l.state, p, messages.PLogOffset(from), messages.PLogOffset(to))
	expect.NoError(l.t, err, p, from, to)
	if !slices.Equal(want, got) {
		l.t.Fatalf("partition %d, %d to %d: got %v, want %v", p, from, to, got, want)
	}
	end := messages.PLogOffset(len(l.lsns[p]) + 1)
	got, err = PLog(l.state, p, messages.PLogOffset(from), end+1)
	l.missing(err, p, end)
	if !slices.Equal(l.lsns[p][from-1:], got) {
		l.t.Fatalf("partition %d, from %d: got %v, want %v", p, from, got, l.lsns[p][from-1:])
	}
}

// missing says that the error names the first event that is not there.
func (l *plogs) missing(err error, p messages.PartitionID, o messages.PLogOffset) {
	l.t.Helper()
	damage, _ := err.(*storage.DamagedError) //nolint:errorlint // nothing is around it
	if damage == nil || damage.Partition != p || damage.PLogOffset != o {
		l.t.Fatalf("got %v, want partition %d, offset %d", err, p, o)
	}
}

func (l *plogs) taken(p messages.PartitionID, from messages.PLogOffset) (o messages.PLogOffset, ok bool) {
	l.t.Helper()
	view(l.t, l.state, func(tx *bbolt.Tx) error {
		o, ok = TakenPLog(tx, p, from)
		return nil
	})
	return o, ok
}

// lists returns how long the lists of a partition are.
func (l *plogs) lists(p messages.PartitionID) (lengths []int) {
	l.t.Helper()
	view(l.t, l.state, func(tx *bbolt.Tx) error {
		return tx.Bucket(format.BucketPLog).ForEach(func(k, v []byte) error {
			if _, ours := plogKeyOf(k, p); !ours {
				return nil
			}
			lsns, err := format.DecodeList(nil, format.BucketPLog, k, v)
			lengths = append(lengths, len(lsns))
			return err
		})
	})
	return lengths
}

func (l *plogs) checkLists(p messages.PartitionID) {
	l.t.Helper()
	var want []int
	for n := len(l.lsns[p]); n > 0; n -= listLen {
		want = append(want, min(n, listLen))
	}
	if got := l.lists(p); !slices.Equal(want, got) {
		l.t.Fatalf("partition %d: got lists of %v, want %v", p, got, want)
	}
}

// Lists are filled up, however long flushes are, and partitions beside each other do not meet.
func TestPLog(t *testing.T) {
	for _, sizes := range [][]int{{1, 1, 1}, {255, 1, 1}, {256, 1}, {257, 255, 1}, {1000, 1000}, {1, 255, 256, 257, 1000, 3}} {
		t.Run(fmt.Sprint(sizes), func(t *testing.T) {
			l := newPLogs(t, openState(t))
			for _, n := range sizes {
				for _, p := range []messages.PartitionID{1, 0, math.MaxUint32} {
					l.put(p, n)
					l.checkLists(p)
				}
			}
			for p, lsns := range l.lsns {
				end := len(lsns) + 1
				for _, from := range []int{1, 2, listLen, listLen + 1, listLen + 2, end - 1, end} {
					for _, to := range []int{from, from + 1, listLen + 1, 2*listLen + 2, end} {
						if from <= to && to <= end {
							l.check(p, from, to)
						}
					}
				}
			}
		})
	}
}

func TestPLogModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		state, closeState := newState(t)
		defer closeState()
		l := newPLogs(rt, state)
		for range rapid.IntRange(1, 12).Draw(rt, "flushes") {
			p := messages.PartitionID(rapid.IntRange(0, 2).Draw(rt, "partition"))
			l.put(p, rapid.OneOf(rapid.IntRange(1, 5), rapid.IntRange(200, 600)).Draw(rt, "events"))
			l.checkLists(p)
			end := len(l.lsns[p]) + 1
			from := rapid.IntRange(1, end).Draw(rt, "from")
			l.check(p, from, rapid.IntRange(from, end).Draw(rt, "to"))
			o, taken := l.taken(p, messages.PLogOffset(from))
			if want := from < end; taken != want || taken && o != messages.PLogOffset(from) {
				rt.Fatalf("%d of %d: got %d, %v, want taken: %v", from, end, o, taken, want)
			}
		}
	})
}

// Behind a gap a list of its own begins: what is in the gap is missing, and what is behind it is there.
func TestPLogGap(t *testing.T) {
	l := newPLogs(t, openState(t))
	l.put(3, 10)
	l.at(3, 15, []messages.LSN{100, 101})
	expect.Equal(t, []int{10, 2}, l.lists(3))
	_, err := PLog(l.state, 3, 9, 16)
	l.missing(err, 3, 11)
	_, err = PLog(l.state, 3, 12, 16)
	l.missing(err, 3, 12)
	got, err := PLog(l.state, 3, 15, 17)
	expect.NoError(t, err)
	expect.Equal(t, []messages.LSN{100, 101}, got)
	_, err = PLog(l.state, 2, 1, 2)
	l.missing(err, 2, 1)
	_, err = PLog(l.state, 4, 1, 2)
	l.missing(err, 4, 1)
	for from, want := range map[messages.PLogOffset]messages.PLogOffset{1: 1, 10: 10, 11: 15, 15: 15, 16: 16} {
		o, ok := l.taken(3, from)
		if !ok || o != want {
			t.Errorf("from %d: got %d, %v, want %d", from, o, ok, want)
		}
	}
	for p, from := range map[messages.PartitionID]messages.PLogOffset{2: 1, 3: 17, 4: 1} {
		if o, ok := l.taken(p, from); ok {
			t.Errorf("partition %d: got %d, want none", p, o)
		}
	}
}

// Of lists that name the same offset twice the second one is not read behind the first.
func TestPLogOverlap(t *testing.T) {
	l := newPLogs(t, openState(t))
	l.put(3, 10)
	l.at(3, 8, []messages.LSN{100, 101, 102, 103, 104})
	got, err := PLog(l.state, 3, 5, 12)
	l.missing(err, 3, 11)
	expect.Equal(t, l.lsns[3][4:], got)
}

// A list that cannot be read takes its place, and what follows begins another one.
func TestPLogDamagedList(t *testing.T) {
	l := newPLogs(t, openState(t))
	l.put(3, 10)
	key := format.AppendPLogKey(nil, 3, 1)
	update(t, l.state, func(tx *bbolt.Tx) error { return tx.Bucket(format.BucketPLog).Put(key, []byte("foreign bytes")) })
	if o, ok := l.taken(3, 1); !ok || o != 1 {
		t.Errorf("got %d, %v, want 1", o, ok)
	}
	l.at(3, 11, []messages.LSN{100})
	got, err := PLog(l.state, 3, 11, 12)
	expect.NoError(t, err)
	expect.Equal(t, []messages.LSN{100}, got)
	_, err = PLog(l.state, 3, 5, 12)
	l.missing(err, 3, 5)
	expect.ErrorIs(t, err, format.ErrChecksum)
}

func TestProjected(t *testing.T) {
	state := openState(t)
	got, err := Projected(state)
	expect.NoError(t, err)
	expect.Equal(t, 1, got)
	put := func(b []byte) {
		update(t, state, func(tx *bbolt.Tx) error { return tx.Bucket(format.BucketHeader).Put(format.KeyProjected, b) })
	}
	put(format.SealedUint(nil, format.BucketHeader, format.KeyProjected, 99))
	got, err = Projected(state)
	expect.NoError(t, err)
	expect.Equal(t, 99, got)
	put([]byte("foreign bytes"))
	_, err = Projected(state)
	expect.ErrorIs(t, err, format.ErrLayout)
}
