// Package days is a model of a sequence that begins anew each day, in the time zones of a workspace. It shares no rule
// with the code that is tested: its zones never set their clocks forward or back.
package days

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// Zones are those that workspaces move to.
var Zones = []string{"UTC", "Asia/Tokyo", "Etc/GMT+11", "Etc/GMT-14"}

// offsets are what they are ahead of UTC.
var offsets = map[string]time.Duration{
	"UTC": 0, "Asia/Tokyo": 9 * time.Hour, "Etc/GMT+11": -11 * time.Hour, "Etc/GMT-14": 14 * time.Hour,
}

// Log is what a workspace's log says of the sequence, whose own zone is UTC.
type Log struct {
	// Last are the last numbers.
	Last map[calendar.Date]messages.Number
	// Closed is the first day that is not closed, zero if none is.
	Closed calendar.Date
	// Changes are the workspace's zones.
	Changes []Change

	def *messages.Sequence
}

// Change is when a workspace got a zone.
type Change struct {
	Set    time.Time
	offset time.Duration
}

// New returns a log without events.
func New(def *messages.Sequence) *Log {
	return &Log{Last: make(map[calendar.Date]messages.Number), def: def}
}

// Next returns the n-th day after one.
func Next(d calendar.Date, n int) calendar.Date { return calendar.DateOf(d.Time().AddDate(0, 0, n)) }

// At is the day of a time: a zone counts from the end of the day on in which it was set, and does not go back.
func (l *Log) At(at time.Time) calendar.Date {
	offset, least := time.Duration(0), calendar.Date(0)
	day := func(t time.Time) calendar.Date { return max(calendar.DateOf(t.Add(offset)), least) }
	for i := 0; i < len(l.Changes); {
		next := Next(day(l.Changes[i].Set), 1)
		end := next.Time().Add(-offset)
		for i++; i < len(l.Changes) && l.Changes[i].Set.Before(end); i++ {
			continue // the last one of a day counts
		}
		if at.Before(end) {
			break
		}
		offset, least = l.Changes[i-1].offset, next
	}
	return day(at)
}

// Latest is how far ahead a business date may be when it is a day.
func (l *Log) Latest(today calendar.Date) calendar.Date {
	return Next(today, max(0, cmp.Or(l.def.Restart.Ahead, 1)))
}

// Take takes a number in, and closes the days that are not to be kept.
func (l *Log) Take(day calendar.Date, n messages.Number) {
	l.Last[day] = n
	keep := l.def.Restart.Keep
	if keep == 0 || len(l.Last) <= keep {
		return
	}
	all := slices.Sorted(maps.Keys(l.Last))
	ahead := max(0, cmp.Or(l.def.Restart.Ahead, 1))
	l.Closed = max(l.Closed, min(all[len(all)-keep], Next(all[len(all)-1], -ahead)))
}

// Number is one that an event has, or moves the sequence to.
type Number struct {
	messages.SequenceNumber
	// Taken says that it was taken over from an old system, Named which day was named for it then, zero if none was.
	Taken bool
	Named calendar.Date
}

// Numbers returns those of an event. Named says which day the draft has named for the i-th one that it takes over.
func (l *Log) Numbers(e *messages.Event, named func(i int) calendar.Date) (numbers []Number) {
	taken := 0
	for i, n := range slices.Concat(e.Numbers, e.Moves) {
		of := Number{SequenceNumber: n}
		if i < int(e.Brought) || i >= len(e.Numbers) {
			of.Taken, of.Named = true, named(taken)
			taken++
		}
		if n.Seq == l.def.ID {
			numbers = append(numbers, of)
		}
	}
	return numbers
}

// Add takes an event in, with its numbers. It returns an error unless each is of the day that its business date or its
// time says, which is neither closed nor too far ahead, and follows the one before it.
func (l *Log) Add(e *messages.Event, numbers []Number) error {
	// An event may close the day of its own numbers, once it has all of them.
	today, closed := l.At(e.RegisteredAt.Time()), l.Closed
	for _, n := range numbers {
		day, next := cmp.Or(n.Named, e.Date, today), l.Last[cmp.Or(n.Named, e.Date, today)]+1
		if n.Period != day || n.Number < next || n.Number > next && !n.Taken || n.Number > l.def.Max() {
			return fmt.Errorf("workspace %d: event %d of %v with date %v has %v, want %d of %v",
				e.Workspace, e.WLogOffset, e.RegisteredAt, e.Date, n.SequenceNumber, next, day)
		}
		if day < closed || day > l.Latest(today) {
			return fmt.Errorf("workspace %d: event %d of %v has %v, it is %v, and days before %v are closed",
				e.Workspace, e.WLogOffset, e.RegisteredAt, n.SequenceNumber, today, closed)
		}
		l.Take(day, n.Number)
	}
	if e.Zone != "" {
		l.Changes = append(l.Changes, Change{e.RegisteredAt.Time(), offsets[e.Zone]})
	}
	return nil
}
