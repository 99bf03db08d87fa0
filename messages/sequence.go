package messages

import (
	"fmt"
	"math"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/internal/numfmt"
)

// The built-in sequences, which every workspace kind has.
const (
	// SeqWLogOffset numbers the events of a workspace, from 1. Its numbers are
	// given by Start, never by Next.
	SeqWLogOffset SeqID = 1
	// SeqCRecordID numbers records, from [InitialCRecordID].
	SeqCRecordID SeqID = 2
	// SeqOWRecordID numbers records, from [InitialOWRecordID]. It ends below
	// InitialCRecordID, so that an id alone says which of the two it is.
	SeqOWRecordID SeqID = 3
	// FirstApplicationSeq is the smallest id that an application may define.
	FirstApplicationSeq SeqID = 16
)

// Initial values of the built-in sequences of record ids.
const (
	InitialCRecordID  Number = 322685000131072
	InitialOWRecordID Number = 322680000131072
)

// Largest numbers of sequences, for [Sequence].
const (
	// LargestDefault fits into signed integers of 64 bits, which most databases and languages
	// have: 9,223,372,036,854,775,807.
	LargestDefault Number = math.MaxInt64
	// LargestSafe is the largest number that ECMAScript, and JSON as many programs read it,
	// can tell from its neighbours: 9,007,199,254,740,991. See Number.MAX_SAFE_INTEGER in
	// ECMA-262.
	LargestSafe Number = 1<<53 - 1
)

// LargestOfDigits is the largest number that can be written with so many decimal digits, 1 to
// 18: of 7 it is 9,999,999. Fewer count as 1, more as 18.
func LargestOfDigits(digits int) Number {
	n := Number(1)
	for range min(max(digits, 1), 18) {
		n *= 10
	}
	return n - 1
}

// explicitReserve is how many numbers an explicit id, or a move of a built-in sequence, must leave free
// at the end of its sequence, so that one bad id cannot exhaust the sequence.
const explicitReserve Number = 1 << 32

// Sequence defines a named sequence of a workspace kind.
type Sequence struct {
	ID   SeqID
	Name string

	// Initial is the first number given out, at least 1. It can never change
	// once a store was made with it.
	Initial Number

	// Largest is the last number that can be given out: at least Initial, and at most
	// [LargestDefault], which zero means. Whoever asks for more gets an [*OverflowError].
	// It can be raised when a store is opened, but not lowered. A sequence that a store has
	// from a version without limits goes on to 2^64-1: zero and LargestDefault mean that
	// then, and less is refused. So does one that begins above LargestDefault.
	Largest Number

	// Restart says when the sequence begins anew at Initial. The zero value means never.
	Restart Restart

	// Formats are how the numbers are printed, as "INV/{yyyy}/{n:04}": see [ParseFormats]. The first
	// one prints, all of them are read: so what was printed before a format was changed can still be read
	// if that is listed behind the new one. They may change whenever a store is opened. At most
	// [MaxFormats]. Empty means that numbers are printed as they are.
	Formats []string
}

// MaxFormats is how many formats a sequence can have.
const MaxFormats = 16

// Restart says that a sequence begins anew in each period of local time. Its numbers are
// unique, and without gaps, in each (workspace, sequence, period). They can't be ids of records,
// which would repeat.
//
// The period of a number is that of the event's business date, if the caller gives one:
// [Draft].Date. Else it is that of its registration time, in the time zone. It is decided once,
// and stored with the number.
type Restart struct {
	// Rule says how long a period is. It can never change once a store was made with it.
	calendar.Rule
	// Zone is the time zone's name in the IANA's database, as "Europe/Zurich". Empty means UTC. It
	// can never change once a store was made with it.
	Zone string
	// Keep is how many periods keep their last numbers, the newest ones, at most [MaxKeep].
	// Zero means all of them. Those that do not are closed: a business date in them is refused with a
	// [*BusinessDateError]. What lies within Ahead of the newest period is never closed. It may change when a store is
	// opened. If it was raised, a period that was closed can be open again once the projections are made anew.
	Keep int
	// Ahead is by how many periods a business date may be ahead of the registration time. Zero
	// means one, less means none. It can be raised when a store is opened, but not lowered: numbers of
	// periods further ahead may be there, and with less room before them the current period would be closed.
	Ahead int
}

// MaxKeep is how many periods can be kept by [Restart].Keep. A workspace in the cache takes a number's
// room for each.
const MaxKeep = 400

// MaxAhead is the largest [Restart].Ahead.
const MaxAhead = 400

// Restarts reports whether the sequence has periods.
func (s *Sequence) Restarts() bool { return s.Restart.Every != calendar.Never }

// CheckPeriod says what is wrong with the period of a number of an event that has a business date, or none. In
// which period the registration time is, it does not ask: that was decided once. See [Sequence.CheckDecided].
func (s *Sequence) CheckPeriod(date, period calendar.Date) error {
	if !s.Restarts() {
		if period != 0 {
			return fmt.Errorf("sequence %d: got period %v, want none: it never restarts", s.ID, period)
		}
		return nil
	}
	if date == 0 {
		date = period
	}
	if !period.Valid() || s.Restart.PeriodOf(date) != period {
		return fmt.Errorf("sequence %d: got period %v, want that of %v: it restarts each %v", s.ID, period, date, s.Restart.Every)
	}
	return nil
}

// anyZone is how many days a local date is from that of UTC at the most, in any zone. The widest offsets that there
// have been are 15:13 ahead and 15:56 behind. A clock that is set back by a whole day, as when a zone moves over the
// date line, leaves the later date until it comes again. So a new zone database, or another zone, stays within this.
const anyZone = 2

// CheckDecided says why the period of a number can't be that of a registration time, whatever zone it was decided in.
// The sequence must restart, and the event have no business date.
func (s *Sequence) CheckDecided(at Timestamp, period calendar.Date) error {
	day := calendar.DateOf(at.Time())
	if s.Restart.PeriodOf(day) == period || !day.Valid() {
		return nil
	}
	days := calendar.Rule{Every: calendar.Day}
	first, last := s.Restart.PeriodOf(days.Add(day, -anyZone)), s.Restart.PeriodOf(days.Add(day, anyZone))
	if period < first || period > last {
		return fmt.Errorf("sequence %d: got period %v of an event that was registered at %v, want %v to %v", s.ID, period, at, first, last)
	}
	return nil
}

// MostAhead is by how many periods a business date may be ahead.
func (r *Restart) MostAhead() int {
	if r.Ahead == 0 {
		return 1
	}
	return max(0, r.Ahead)
}

// ClosedBelow returns the first period that is not closed, when a sequence has the last numbers of
// these periods, which ascend; zero if none is closed. What was closed once stays so, as long as that is stored.
func (r *Restart) ClosedBelow(periods []calendar.Date) calendar.Date {
	if r.Keep == 0 || len(periods) <= r.Keep {
		return 0
	}
	newest := periods[len(periods)-1]
	return min(periods[len(periods)-r.Keep], r.Add(newest, -r.MostAhead()))
}

func (r *Restart) validate() error {
	if r.Every == calendar.Never {
		if *r != (Restart{}) {
			return fmt.Errorf("restart: got %+v, want a unit of time", *r)
		}
		return nil
	}
	if err := r.Rule.Validate(); err != nil {
		return err
	}
	if r.Zone != "" {
		if _, err := calendar.LoadZone(r.Zone); err != nil {
			return err
		}
	}
	switch {
	case r.Keep < 0 || r.Keep > MaxKeep:
		return fmt.Errorf("periods to keep: got %d, want 0 to %d", r.Keep, MaxKeep)
	case r.Ahead > MaxAhead:
		return fmt.Errorf("periods ahead: got %d, want at most %d", r.Ahead, MaxAhead)
	}
	return nil
}

// fixed is in words what can never change.
func (r *Restart) fixed() string {
	text := r.Every.String()
	if r.FirstMonth != 0 {
		text += fmt.Sprintf(" from %v", r.FirstMonth)
	}
	if r.Zone != "" {
		text += " in " + r.Zone
	}
	return text
}

// sameAs reports whether what can never change is the same.
func (r *Restart) sameAs(was *Restart) bool { return r.Rule == was.Rule && r.Zone == was.Zone }

// Max returns the last number that the sequence can give out.
func (s *Sequence) Max() Number {
	switch {
	case s.Largest != 0:
		return s.Largest
	case s.Initial > LargestDefault:
		return endless
	}
	return LargestDefault
}

// NearlyUsed reports whether more than 90 % of the sequence's numbers are used once last was given
// out. It is false if last is below Initial: then none was.
func (s *Sequence) NearlyUsed(last Number) bool {
	largest := s.Max()
	return last >= largest-(largest-s.Initial)/10
}

// endless is what sequences have for Largest that are from before there were limits.
const endless Number = math.MaxUint64

// kept returns which largest number a sequence of a store has once the store was opened with another one.
func (s *Sequence) kept(given Number) Number {
	if s.Largest == endless && given >= LargestDefault {
		return endless
	}
	return given
}

// MaxExplicit returns the largest id that an event may bring along for a new
// record instead of taking it from the sequence. It leaves 2^32 numbers free.
func (s *Sequence) MaxExplicit() Number {
	if s.Max()-s.Initial < explicitReserve {
		return s.Initial
	}
	return s.Max() - explicitReserve
}

// MaxTaken returns the largest number that an event may bring along from an old system, or to which it may move the
// sequence. That is Largest; but the built-in sequences, which nobody has given an end, keep 2^32 numbers free.
func (s *Sequence) MaxTaken() Number {
	if s.ID < FirstApplicationSeq {
		return s.MaxExplicit()
	}
	return s.Max()
}

func (s *Sequence) validate() error {
	switch {
	case s.ID < FirstApplicationSeq:
		return fmt.Errorf("ids below %d are reserved", FirstApplicationSeq)
	case s.Initial == 0:
		return fmt.Errorf("initial value: got 0, want at least 1")
	case s.Largest > LargestDefault && s.Largest != endless:
		return fmt.Errorf("largest number: got %d, want at most %d", s.Largest, LargestDefault)
	case s.Initial > s.Max():
		return fmt.Errorf("initial value: got %d, want at most %d, the largest number", s.Initial, s.Max())
	}
	if err := s.Restart.validate(); err != nil {
		return err
	}
	if len(s.Formats) > MaxFormats {
		return fmt.Errorf("formats: got %d, want at most %d", len(s.Formats), MaxFormats)
	}
	_, err := numfmt.ParseFormats(s.Formats, s.Restart.Rule)
	return err
}
