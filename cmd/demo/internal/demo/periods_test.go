package demo

import (
	"reflect"
	"slices"
	"testing"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/cmd/demo/internal/history"
	"github.com/partita-go/partita/messages"
)

// Some authors' dates step back. None of them is in a day that is closed by then.
func TestNoDayIsClosed(t *testing.T) {
	days, closed := make(map[uint64][]calendar.Date), make(map[uint64]calendar.Date)
	back, dropped := 0, 0
	for c, err := range history.Commits() {
		check(t, err)
		author, date := c.Workspace(), c.Date()
		at, found := slices.BinarySearch(days[author], date)
		if at < len(days[author])-1 || !found && at < len(days[author]) {
			back++
		}
		if date < closed[author] {
			t.Errorf("commit %s: its day %v is closed, the first that is not is %v", c.ID, date, closed[author])
		}
		if !found {
			days[author] = slices.Insert(days[author], at, date)
			closed[author] = max(closed[author], perDay.ClosedBelow(days[author]))
		}
		if len(days[author]) > 0 && days[author][0] < closed[author] {
			dropped++
		}
	}
	if back == 0 || dropped == 0 {
		t.Errorf("got %d commits of an earlier day, %d of authors with closed days, want some of each", back, dropped)
	}
}

// An event that is not what it must be is found out.
func TestCompareEvent(t *testing.T) {
	var c history.Commit
	for first, err := range limited(1) {
		check(t, err)
		c = first
	}
	ws := messages.WSID(c.Workspace())
	right := func() *messages.Event {
		return &messages.Event{
			Workspace: ws, WLogOffset: 1, Date: 20110401, Body: encodeCommit(c, 1), Numbers: []messages.SequenceNumber{
				{Seq: messages.SeqCRecordID, Number: messages.InitialCRecordID}, {Seq: seqCommit, Number: 1},
				{Seq: seqDay, Period: 20110401, Number: 1}, {Seq: seqYear, Period: 20110101, Number: 1},
			},
		}
	}
	compare := func(e *messages.Event) error {
		return compareEvent(e, []history.Commit{c}, make(map[messages.WSID]messages.Number), make(periods))
	}
	check(t, compare(right()))
	for name, change := range map[string]func(e *messages.Event){
		"no business date":    func(e *messages.Event) { e.Date = 0 },
		"another date":        func(e *messages.Event) { e.Date++ },
		"another day":         func(e *messages.Event) { e.Numbers[2].Period++ },
		"number of the day":   func(e *messages.Event) { e.Numbers[2].Number++ },
		"another year":        func(e *messages.Event) { e.Numbers[3].Period += 10000 },
		"number of the year":  func(e *messages.Event) { e.Numbers[3].Number++ },
		"no number of a year": func(e *messages.Event) { e.Numbers = e.Numbers[:3] },
		"another commit":      func(e *messages.Event) { e.Body[0] ^= 1 },
		"one too many":        func(e *messages.Event) { e.WLogOffset++ },
	} {
		e := right()
		change(e)
		if compare(e) == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

func TestBusiest(t *testing.T) {
	counted := make(periods)
	for _, c := range []struct {
		author messages.WSID
		date   calendar.Date
		n      int
	}{
		{1, 20201231, 2}, {1, 20210101, 3}, {1, 20210102, 3}, {2, 20210101, 7}, {3, 20191231, 8}, {4, 20200229, 1}, {5, 20200101, 7}, {6, 20200101, 2},
	} {
		for range c.n {
			counted.next(c.author, seqDay, c.date)
			counted.next(c.author, seqYear, firstOfYear(c.date))
		}
	}
	top, all := counted.busiest(commitsDescriptor(1))
	want := []authorResult{
		{"0000000001", 8, 2, 3, "2021/0006", "2021-01-01/3"},
		{"0000000003", 8, 1, 1, "2019/0008", "2019-12-31/8"},
		{"0000000002", 7, 1, 1, "2021/0007", "2021-01-01/7"},
		{"0000000005", 7, 1, 1, "2020/0007", "2020-01-01/7"},
		{"0000000006", 2, 1, 1, "2020/0002", "2020-01-01/2"},
	}
	if !reflect.DeepEqual(top, want) {
		t.Errorf("got %+v, want %+v", top, want)
	}
	if want := (authorResult{"", 33, 7, 8, "2019/0008", "2019-12-31/8"}); all != want {
		t.Errorf("got %+v, want %+v", all, want)
	}
}
