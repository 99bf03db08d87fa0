package bolt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/tail"
	"github.com/partita-go/partita/storage/storagetest"
	"github.com/partita-go/partita/storage/verify"
)

var month = calendar.Rule{Every: calendar.Month}

// dailyStore is an application whose receipts restart each day.
func dailyStore(keep int) messages.Descriptor {
	d := storagetest.Descriptor(messages.TrustNone)
	for _, k := range d.Kinds {
		for i := range k.Sequences {
			if s := &k.Sequences[i]; s.ID == storagetest.SeqReceipt {
				s.Restart.Keep = keep
			}
		}
	}
	return d
}

// storedKeys counts what state.db has of the workspaces: entries of the index, and last numbers in heads.
func storedKeys(t *testing.T, s *Store) (n int) {
	t.Helper()
	err := s.state.View(func(tx *bbolt.Tx) error {
		n += tx.Bucket(format.BucketIndex).Inspect().KeyN
		return tx.Bucket(format.BucketWorkspaces).ForEach(func(k, v []byte) error {
			var h format.Head
			err := h.Decode(k, v)
			for i := range h.Sequences {
				n += max(1, len(h.Sequences[i].Periods))
			}
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Of 100 daily sequences that keep two days, 60 days take at most 2.5 times the keys of one. Of 10,000 it is 2.0 too:
// 20,000 keys to 10,000, measured once, since that takes most of a minute.
func TestKeysOfDailySequences(t *testing.T) {
	s := open(t, t.TempDir(), dailyStore(2), Options{})
	p := storagetest.Take(t, s, 0)
	oneDay := 0
	for day := range 60 {
		var specs []storagetest.Spec
		for ws := range messages.WSID(100) {
			at := calendar.Rule{Every: calendar.Day}.Add(storagetest.FirstDay, day)
			specs = append(specs, storagetest.Spec{Workspace: 3 * ws, Give: []messages.SeqID{storagetest.SeqReceipt}, Day: at})
		}
		p.Append(t, specs...)
		p.FlushAll(t)
		if day == 0 {
			oneDay = storedKeys(t, s)
		}
	}
	if got := storedKeys(t, s); oneDay != 100 || 2*got > 5*oneDay {
		t.Errorf("got %d keys after 60 days and %d after one, want at most 2.5 times as many", got, oneDay)
	}
}

// How many periods are kept may change each time a store is opened. What was closed stays closed.
func TestKeepChanges(t *testing.T) {
	dir := t.TempDir()
	day := storagetest.FirstDay
	for i, c := range []struct {
		keep, days  int
		closedBelow calendar.Date
		older       bool
	}{
		{0, 30, 0, true}, {3, 1, 20260426, false}, {20, 30, 20260509, false}, {0, 20, 20260509, true},
		{2, 2, 20260618, false}, {0, 1, 20260618, false},
	} {
		s := open(t, dir, dailyStore(c.keep), Options{})
		p := storagetest.Take(t, s, 0)
		for range c.days {
			p.Append(t, storagetest.Spec{Workspace: 3, Give: []messages.SeqID{storagetest.SeqReceipt}, Day: day})
			day = calendar.Rule{Every: calendar.Day}.Add(day, 1)
		}
		p.FlushAll(t)
		n, err := s.Numbers(t.Context(), 3)
		if got := closedBelow(t, s); err != nil || got != c.closedBelow || (len(n.Older) > 0) != c.older {
			t.Errorf("step %d: got %+v, error %v, want closed below %v, older %v", i, n, err, c.closedBelow, c.older)
		}
		closeStore(t, s)
		if r := verified(t, dir, verify.Options{}); r.Err() != nil {
			t.Errorf("step %d: %s", i, r)
		}
	}
}

// The log does not say what was closed. So if more is kept when state.db is made anew, periods are open again. Their last
// numbers are those of the log.
func TestKeepIsRaisedBeforeARebuild(t *testing.T) {
	for keep, want := range map[int]calendar.Date{2: storagetest.FirstDay + 1, 0: 0} {
		dir := t.TempDir()
		s := open(t, dir, dailyStore(2), Options{})
		p := storagetest.Take(t, s, 0)
		for day := range calendar.Date(3) {
			p.Append(t, storagetest.Spec{Workspace: 3, Give: []messages.SeqID{storagetest.SeqReceipt}, Day: storagetest.FirstDay + day})
		}
		p.FlushAll(t)
		closeStore(t, s)
		s = open(t, dir, dailyStore(keep), Options{})
		p = storagetest.Take(t, s, 0)
		p.Append(t, storagetest.Spec{Workspace: 3})
		p.FlushAll(t)
		expect.Equal(t, storagetest.FirstDay+1, closedBelow(t, s))
		closeStore(t, s)
		expect.NoError(t, os.Remove(filepath.Join(dir, format.StateFileName)))
		s = open(t, dir, dailyStore(keep), Options{})
		expect.Equal(t, want, closedBelow(t, s))
		n, err := s.Numbers(t.Context(), 3)
		expect.NoError(t, err)
		first := messages.SequenceNumber{Seq: storagetest.SeqReceipt, Period: storagetest.FirstDay, Number: 1}
		expect.Equal(t, keep == 0, slices.Contains(n.Numbers, first))
		closeStore(t, s)
		checkSound(t, dir)
	}
}

// closedBelow is the first period of workspace 3 that is not closed, zero if none is.
func closedBelow(t *testing.T, s *Store) calendar.Date {
	t.Helper()
	n, err := s.Numbers(t.Context(), 3)
	expect.NoError(t, err)
	if len(n.Closed) == 0 {
		return 0
	}
	return n.Closed[0].Period
}

// Where periods of many workspaces are to be closed that bucket index has, one transaction does not have all of them in
// memory: it ends when it has had as many as it may.
func TestClosingManyPeriodsIsCut(t *testing.T) {
	const workspaces, days = 10, 60
	dir := t.TempDir()
	give := func(s *Store, days ...int) *storagetest.Partition {
		p := storagetest.Take(t, s, 0)
		for _, day := range days {
			at := calendar.Rule{Every: calendar.Day}.Add(storagetest.FirstDay, day)
			var specs []storagetest.Spec
			for ws := range messages.WSID(workspaces) {
				specs = append(specs, storagetest.Spec{Workspace: 3 * ws, Give: []messages.SeqID{storagetest.SeqReceipt}, Day: at})
			}
			p.Append(t, specs...)
		}
		return p
	}
	s := open(t, dir, dailyStore(0), Options{})
	var all []int
	for day := range days {
		all = append(all, day)
	}
	give(s, all...).FlushAll(t)
	closeStore(t, s)
	// A transaction may have 32 KiB, which is less than the periods of a workspace take.
	s = open(t, dir, dailyStore(3), Options{Memory: 1 << 20})
	transactions := failAt(s, 0, nil)
	give(s, days-1).FlushAll(t)
	expect.Equal(t, workspaces, *transactions)
	give(s, days).FlushAll(t)
	expect.Equal(t, workspaces+1, *transactions)
	closeStore(t, s)
	if r := verified(t, dir, verify.Options{}); r.Err() != nil {
		t.Error(r)
	}
}

// newCases returns a store in which a workspace has numbers of 20 months: 12 are in the index.
func newCases(t *testing.T) (dir string, s *Store) {
	t.Helper()
	dir = t.TempDir()
	s = open(t, dir, dailyStore(2), Options{})
	p := storagetest.Take(t, s, 0)
	for i := range 20 {
		p.Append(t, storagetest.Spec{
			Workspace: 3, Give: []messages.SeqID{storagetest.SeqCase, storagetest.SeqReceipt}, Day: month.Add(storagetest.FirstDay, i),
		})
	}
	p.FlushAll(t)
	return dir, s
}

func caseKey(period calendar.Date) []byte {
	return format.AppendIndexKey(nil, format.RecordKey{
		Workspace: 3, ID: messages.RecordID{Seq: storagetest.SeqCase, Number: messages.Number(period)},
	})
}

// The last number of an older period that is damaged, lost, or where none belongs is named by whoever needs it, and by
// verify.
func TestDamageOfPeriods(t *testing.T) {
	const asked = calendar.Date(20260501)
	sealed := func(n uint64) []byte { return format.SealedUint(nil, format.BucketIndex, caseKey(asked), n) }
	wrongHead := func(change func(receipts, cases *format.HeadSequence)) func(*testing.T, *Store) {
		return head(3, func(h *format.Head) { change(h.Find(storagetest.SeqReceipt), h.Find(storagetest.SeqCase)) })
	}
	for _, c := range []struct {
		name string
		do   func(*testing.T, *Store)
		// read says whether who asks for the period is told, want is what verify says.
		read bool
		want string
	}{
		{"damaged", value(format.BucketIndex, caseKey(asked), to([]byte("damaged value"))), true, "workspace 3, sequence 20 in 2026-05-01"},
		{"number 0", value(format.BucketIndex, caseKey(asked), to(sealed(0))), true, "workspace 3, sequence 20 in 2026-05-01"},
		{"another number", value(format.BucketIndex, caseKey(asked), to(sealed(101))), false, "sequence 20 in 2026-05-01: stored number is 101, want 100"},
		{"missing", value(format.BucketIndex, caseKey(asked), to(nil)), false, "sequence 20 in 2026-05-01: no number is stored, want 100"},
		{"under another key", func(t *testing.T, s *Store) {
			v := get(t, s.state, format.BucketIndex, caseKey(asked))
			remove(t, s.state, format.BucketIndex, caseKey(asked))
			put(t, s.state, format.BucketIndex, caseKey(asked+1), v)
		}, true, "sequence 20 in 2026-05-02"},
		{"one too many", func(t *testing.T, s *Store) {
			key := caseKey(20250101)
			value(format.BucketIndex, key, to(format.SealedUint(nil, format.BucketIndex, key, 100)))(t, s)
		}, false, "sequence 20 in 2025-01-01: stored number is 100, no event before the checkpoint has one"},
		{"one that the head has", func(t *testing.T, s *Store) {
			key := caseKey(20271001)
			value(format.BucketIndex, key, to(format.SealedUint(nil, format.BucketIndex, key, 100)))(t, s)
		}, false, "sequence 20 in 2027-10-01"},
		{"the head knows of none", wrongHead(func(_, cases *format.HeadSequence) { cases.Older = false }), false, "sequence 20 in 2026-05-01: no number is stored"},
		{"a number of the head", wrongHead(func(_, cases *format.HeadSequence) { cases.Periods[3].Number++ }), false, "stored number is 101, want 100"},
		{"a period of the head", wrongHead(func(receipts, _ *format.HeadSequence) { receipts.Periods = receipts.Periods[1:] }), false, "sequence 19 in 2027-09-01: no number is stored"},
		{"nothing is closed", wrongHead(func(receipts, _ *format.HeadSequence) { receipts.ClosedBelow = 0 }), false, "sequence 19 in 2026-03-01: no number is stored"},
		{"too much is closed", wrongHead(func(_, cases *format.HeadSequence) {
			cases.ClosedBelow = cases.Periods[0].Period + 1
			cases.Periods = cases.Periods[1:]
		}), false, "want the first day of a period"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, s := newCases(t)
			c.do(t, s)
			_, err := s.Numbers(t.Context(), 3, messages.SequencePeriod{Seq: storagetest.SeqCase, Period: asked})
			if errors.Is(err, storage.ErrDamaged) != c.read || err != nil && !strings.Contains(err.Error(), "bucket index, workspace 3, ") {
				t.Errorf("asked: got %v, want damage: %v", err, c.read)
			}
			closeStore(t, s)
			r := verified(t, dir, verify.Options{})
			found := false
			for _, f := range r.Faults {
				found = found || f.Projection && strings.Contains(f.String(), c.want)
			}
			if !found {
				t.Errorf("got %s\nwant a fault of the projections: %s", r, c.want)
			}
		})
	}
}

// A flush whose memory is bounded takes several transactions for many workspaces with many periods, and verify as many
// passes.
func TestPeriodsInPieces(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, dailyStore(60), Options{Memory: 1 << 16})
	p := storagetest.Take(t, s, 0)
	for day := range 12 {
		var specs []storagetest.Spec
		for ws := range messages.WSID(40) {
			specs = append(specs, storagetest.Spec{
				Workspace: 3 * ws, Give: []messages.SeqID{storagetest.SeqReceipt, storagetest.SeqCase}, Day: month.Add(storagetest.FirstDay, day),
			})
		}
		p.Append(t, specs...)
		p.FlushAll(t)
	}
	closeStore(t, s)
	for _, o := range []verify.Options{{}, {MaxMemory: 20_000}} {
		if r := verified(t, dir, o); r.Err() != nil || r.Numbers != 12*40*3 {
			t.Errorf("%+v: got %s", o, r)
		}
	}
	again := open(t, dir, dailyStore(60), Options{})
	n, err := again.Numbers(t.Context(), 3, messages.SequencePeriod{Seq: storagetest.SeqCase, Period: 20260301})
	if err != nil || fmt.Sprint(n.Older) != "[20]" || len(n.Numbers) != 1+12+8+1 {
		t.Errorf("got %+v, error %v", n, err)
	}
}

// What a transaction may have in memory of periods counts as data of records does.
func TestRangeCountsPeriods(t *testing.T) {
	s := open(t, t.TempDir(), dailyStore(60), Options{})
	r := &flushRequest{from: 1, to: 41, entries: make([]tail.Entry, 40)}
	var events []flushEvent
	for i := range r.entries {
		e := &r.entries[i]
		e.Workspace, e.Kind, e.Numbers = messages.WSID(i), storagetest.KindPerson, uint64(2*i)
		for period := range calendar.Date(2) {
			r.numbers = append(r.numbers, messages.SequenceNumber{Seq: storagetest.SeqReceipt, Period: 20260329 + period, Number: 1})
		}
		events = append(events, flushEvent{r: r, at: uint32(i), ws: e.Workspace})
	}
	// 60 days and 8 months in the head, two more in the index.
	each := int64(60+8)*15 + 2*olderBytes
	for want, bytes := range map[int]int64{1: each, 2: each + 1, 40: 40 * each} {
		o := shares{rangeEvents: 1000, rangeBytes: bytes, periodBytes: s.shares.periodBytes}
		if got := o.nextRange(events); got != want {
			t.Errorf("%d bytes: got %d workspaces, want %d", bytes, got, want)
		}
	}
	plain := shares{rangeEvents: 1000, rangeBytes: 1}
	if got := plain.nextRange(events); got != 40 {
		t.Errorf("where nothing restarts: got %d workspaces, want all", got)
	}
}

// A flush that lists a number that is stored already, or a lower one, lowers no older period.
func TestLowNumberOfAnOlderPeriod(t *testing.T) {
	_, s := newCases(t)
	at := messages.SequencePeriod{Seq: storagetest.SeqCase, Period: 20260501}
	put(t, s.state, format.BucketIndex, caseKey(at.Period), format.SealedUint(nil, format.BucketIndex, caseKey(at.Period), 200))
	p := storagetest.Take(t, s, 0)
	p.Append(t, storagetest.Spec{Workspace: 3, Give: []messages.SeqID{at.Seq}, Day: at.Period})
	if err := s.Flush(t.Context(), p.BuildFlush(p.Last()+1)); err != nil {
		t.Fatal(err)
	}
	n, err := s.Numbers(t.Context(), 3, at)
	want := messages.SequenceNumber{Seq: at.Seq, Period: at.Period, Number: 200}
	if err != nil || !slices.Contains(n.Numbers, want) {
		t.Errorf("got %+v, error %v, want %v", n, err, want)
	}
}

// A sequence that keeps some of its periods, and kept all until now, tells all of them until the next flush closes some:
// who counts must know which those will be.
func TestNumbersBeforePeriodsAreClosed(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, dailyStore(0), Options{})
	p := storagetest.Take(t, s, 0)
	day := func(i int) calendar.Date { return calendar.Rule{Every: calendar.Day}.Add(storagetest.FirstDay, i) }
	for i := range 12 {
		p.Append(t, storagetest.Spec{Workspace: 3, Give: []messages.SeqID{storagetest.SeqReceipt}, Day: day(i)})
	}
	p.FlushAll(t)
	closeStore(t, s)
	s = open(t, dir, dailyStore(9), Options{})
	n, err := s.Numbers(t.Context(), 3)
	expect.NoError(t, err)
	if got := len(n.Of(storagetest.SeqReceipt)); got != 12 || len(n.Older) != 0 {
		t.Errorf("got %d days and older ones of %v, want 12 and none", got, n.Older)
	}
	p = storagetest.Take(t, s, 0)
	p.Append(t, storagetest.Spec{Workspace: 3, Give: []messages.SeqID{storagetest.SeqReceipt}, Day: day(11)})
	p.FlushAll(t)
	n, err = s.Numbers(t.Context(), 3, messages.SequencePeriod{Seq: storagetest.SeqReceipt, Period: day(0)})
	expect.NoError(t, err)
	want := []messages.SequencePeriod{{Seq: storagetest.SeqReceipt, Period: day(3)}}
	if got := len(n.Of(storagetest.SeqReceipt)); got != 9 || !slices.Equal(n.Closed, want) {
		t.Errorf("got %d days, closed %v, want 9 and %v", got, n.Closed, want)
	}
}
