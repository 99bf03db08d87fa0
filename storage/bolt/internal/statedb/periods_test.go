package statedb

import (
	"bytes"
	"errors"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// daily is how the sequence of these tests restarts.
func daily(keep, ahead int) messages.Restart {
	return messages.Restart{Rule: calendar.Rule{Every: calendar.Day}, Keep: keep, Ahead: ahead}
}

// A head has as many periods of a sequence as are kept, or as may be ahead with the current one.
func TestPeriodBytes(t *testing.T) {
	d := messages.Descriptor{Kinds: []messages.Kind{
		{ID: 1, Sequences: []messages.Sequence{{ID: 16}}},
		{ID: 2, Sequences: []messages.Sequence{
			{ID: 16}, {ID: 17, Restart: daily(0, 30)}, {ID: 18, Restart: daily(3, 5)}, {ID: 19, Restart: daily(4, 0)},
		}},
	}}
	expect.Equal(t, map[messages.WSKind]int64{2: (headPeriods + (5 + 1) + 4) * 15}, PeriodBytes(&d))
	d.Kinds = d.Kinds[:1]
	expect.Equal(t, nil, PeriodBytes(&d))
}

// raiseDays lets an event of a workspace give numbers, of a sequence with a rule.
func raiseDays(t *testing.T, f *boltfile.File, restart messages.Restart, numbers ...format.PeriodNumber) {
	t.Helper()
	update(t, f, func(tx *bbolt.Tx) error {
		w := NewWriter(tx, &boltfile.ByteArena{}, nil)
		expect.NoError(t, w.Load(7))
		w.Head.Last, w.Head.LSNs = 1, []messages.LSN{1}
		var given []messages.SequenceNumber
		for _, n := range numbers {
			given = append(given, messages.SequenceNumber{Seq: 20, Period: n.Period, Number: n.Number})
		}
		expect.NoError(t, w.RaisePeriods(20, &restart, given))
		return w.Store()
	})
}

// headOf reads what the head of the workspace has of the sequence.
func headOf(t *testing.T, tx *bbolt.Tx) *format.HeadSequence {
	t.Helper()
	var h format.Head
	expect.NoError(t, ReadHead(tx, 7, &h))
	return h.Find(20)
}

// The first period that is not closed goes on, the ones before are over.
func TestRaiseBesideClosedPeriods(t *testing.T) {
	f, keep := openState(t), daily(2, 0)
	raiseDays(t, f, keep, format.PeriodNumber{Period: 20260501, Number: 5}, format.PeriodNumber{Period: 20260502, Number: 6},
		format.PeriodNumber{Period: 20260503, Number: 7})
	raiseDays(t, f, keep, format.PeriodNumber{Period: 20260501, Number: 50}, format.PeriodNumber{Period: 20260502, Number: 60})
	view(t, f, func(tx *bbolt.Tx) error {
		s := headOf(t, tx)
		expect.Equal(t, 20260502, s.ClosedBelow)
		expect.Equal(t, []format.PeriodNumber{{Period: 20260502, Number: 60}, {Period: 20260503, Number: 7}}, s.Periods)
		return nil
	})
}

// olderDays makes a state.db whose workspace has two periods in bucket index, the days of 1 and 2 May.
func olderDays(t *testing.T) *boltfile.File {
	t.Helper()
	f := openState(t)
	var days []format.PeriodNumber
	for i := range calendar.Date(headPeriods + 2) {
		days = append(days, format.PeriodNumber{Period: 20260501 + i, Number: messages.Number(100 + i)})
	}
	raiseDays(t, f, daily(0, 0), days...)
	return f
}

// readOlder reads the older periods.
func readOlder(t *testing.T, f *boltfile.File) (periods []calendar.Date, err error) {
	t.Helper()
	view(t, f, func(tx *bbolt.Tx) error {
		err = EachOlder(tx, 7, headOf(t, tx), func(p format.PeriodNumber) error {
			periods = append(periods, p.Period)
			return nil
		})
		return nil
	})
	return periods, err
}

// The number of a period is found in bucket index, in the head, or nowhere.
func TestNumberIn(t *testing.T) {
	f := olderDays(t)
	view(t, f, func(tx *bbolt.Tx) error {
		var h format.Head
		expect.NoError(t, ReadHead(tx, 7, &h))
		for at, want := range map[messages.SequencePeriod]messages.Number{
			{Seq: 20, Period: 20260501}:   100,
			{Seq: 20, Period: 20260502}:   101,
			{Seq: 20, Period: 20260503}:   102,
			{Seq: 20, Period: 20260510}:   109,
			{Seq: 20, Period: 20260430}:   0,
			{Seq: 20, Period: 20260511}:   0,
			{Seq: 21, Period: 20260501}:   0,
			{Seq: messages.SeqWLogOffset}: 1,
		} {
			got, err := NumberIn(tx, 7, &h, at)
			expect.NoError(t, err, at)
			expect.Equal(t, want, got, at)
		}
		return nil
	})
}

// An entry of bucket index that is well sealed, but none of the sequence's older periods, is damage.
func TestOlderPeriodThatIsNone(t *testing.T) {
	for name, at := range map[string]messages.Number{
		"no date":                   0,
		"beyond what a date can be": 1<<32 + 20260501,
		"a period of the head":      20260503,
	} {
		t.Run(name, func(t *testing.T) {
			f := olderDays(t)
			periods, err := readOlder(t, f)
			expect.NoError(t, err)
			expect.Equal(t, []calendar.Date{20260501, 20260502}, periods)
			update(t, f, func(tx *bbolt.Tx) error {
				k := format.AppendIndexKey(nil, format.RecordKey{Workspace: 7, ID: messages.RecordID{Seq: 20, Number: at}})
				return tx.Bucket(format.BucketIndex).Put(k, format.SealedUint(nil, format.BucketIndex, k, 1))
			})
			if _, err := readOlder(t, f); !damaged(err) || !errors.Is(err, format.ErrMisplaced) {
				t.Errorf("got %v, want %v", err, format.ErrMisplaced)
			}
		})
	}
}

// So are entries in the wrong order: each is well sealed by itself.
func TestOlderPeriodsOutOfOrder(t *testing.T) {
	f := olderDays(t)
	entry := func(day calendar.Date, n uint64) []byte {
		k := olderKey(7, messages.SequencePeriod{Seq: 20, Period: day})
		return append(k, format.SealedUint(nil, format.BucketIndex, k, n)...)
	}
	content, first, second := contentOf(t, f), entry(20260501, 100), entry(20260502, 101)
	at, behind := bytes.LastIndex(content, first), bytes.LastIndex(content, second)
	if at < 0 || behind != at+len(first) {
		t.Fatalf("got the entries at %d and %d, want them beside each other", at, behind)
	}
	copy(content[at:], second)
	copy(content[behind:], first)
	f, closeState := copyState(t, content)
	t.Cleanup(closeState)
	if periods, err := readOlder(t, f); !damaged(err) || !errors.Is(err, format.ErrMisplaced) {
		t.Errorf("got %v, error %v, want %v", periods, err, format.ErrMisplaced)
	}
}
