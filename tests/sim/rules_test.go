package sim

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/tests/internal/days"
)

// seqDaily begins anew each day, and has few numbers in each.
const (
	seqDaily     messages.SeqID  = 20
	largestDaily messages.Number = 25
)

// farthest is how far the clock goes ahead, more or less.
const farthest = 30 * 24 * time.Hour

// rules are what a seed chooses about numbers with rules.
type rules struct {
	each messages.Restart
	// moves is how rarely an event gives its workspace a zone.
	moves int
	// strides says that the clock steps by hours too.
	strides bool
}

func chooseRules(r *rand.Rand) rules {
	each := messages.Restart{Rule: calendar.Rule{Every: calendar.Day}, Keep: r.IntN(4), Ahead: r.IntN(4) - 1}
	return rules{each: each, moves: 1 << r.IntN(6), strides: r.IntN(2) == 0}
}

// chooseSteps lets the clock step in most of the runs in which it takes strides. In many of them partitions keep in mind
// what they know while days go by.
func (s *sim) chooseSteps() {
	if !s.rules.strides || s.random.IntN(4) == 0 {
		return
	}
	s.rates[rateClock] = max(s.rates[rateClock], 0.01)
	if s.random.IntN(2) == 0 {
		s.cache *= 10
	}
}

// useRules lets an event want numbers of the day, have a business date, and give its workspace a zone.
func (c *client) useRules(r *request, d *messages.Draft) {
	if r.kind != 2 && c.random.IntN(2) == 0 {
		d.Wanted = append(d.Wanted, messages.Wanted{Seq: seqDaily, Count: uint32(c.random.IntN(4))})
	}
	if c.random.IntN(5) == 0 {
		d.Date = c.date()
	}
	if c.random.IntN(c.s.rules.moves) == 0 {
		d.Zone = days.Zones[c.random.IntN(len(days.Zones))]
	}
}

// date makes up a business date: mostly one near the date that the clock shows.
func (c *client) date() calendar.Date {
	by := []int{-4, -2, -1, -1, 0, 0, 0, 0, 1, 1, 2, 3}
	return days.Next(c.today(), by[c.random.IntN(len(by))])
}

func (c *client) today() calendar.Date { return calendar.DateOf(clock{&c.s.scheduler, nil}.Now()) }

// situation is one that runs have to meet.
type situation int

const (
	metRestart situation = iota
	metLate
	metFirstLate
	metAhead
	metBehindZone
	metAheadZone
	metBrought
	metMoved
	metClosed
	metTooFar
	metBackward
	metExhausted
	metExhaustedDay
	metZoneRefused
	metSituations
)

func (m situation) String() string {
	return [metSituations]string{
		"a day begins", "a late number", "a first number of an old day", "a number ahead", "behind UTC by its own zone", "ahead of UTC by its own zone",
		"a number of a day brought along", "a day moved", "refused: a closed day", "refused: too far ahead", "refused: back in a day",
		"refused: exhausted", "refused: a day is exhausted", "refused: too many zones",
	}[m]
}

// situations count how often each was met.
type situations [metSituations]int

func (m *situations) add(other *situations) {
	for i, n := range other {
		m[i] += n
	}
}

func (s *sim) meet(m situation, there bool) {
	if there {
		s.met[m]++
	}
}

// report writes how often each was met, and returns those that were not.
func (m *situations) report(w io.Writer) (missing []string) {
	for i, n := range m {
		fmt.Fprintf(w, "%8d  %v\n", n, situation(i))
		if n == 0 {
			missing = append(missing, situation(i).String())
		}
	}
	return missing
}

// checkRules checks that what a rule of numbers has refused is against it.
func (l *ledger) checkRules(r *request, err error) {
	if back, ok := errors.AsType[*messages.BackwardError](err); ok {
		l.s.meet(metBackward, back.Period != 0)
		if !l.wentBack(r, back) {
			l.s.failf("request %d: %v, the last number is %d", r.id, err, l.lastNumber(r.workspace, messages.SequencePeriod{Seq: back.Seq, Period: back.Period}))
		}
	}
	if ended, ok := errors.AsType[*messages.OverflowError](err); ok {
		l.s.meet(metExhausted, ended.Period == 0)
		l.s.meet(metExhaustedDay, ended.Period != 0)
		if !l.wasExhausted(r, ended) {
			l.s.failf("request %d: %v, the last number is %d", r.id, err, l.lastNumber(r.workspace, messages.SequencePeriod{Seq: ended.Seq, Period: ended.Period}))
		}
	}
	if date, ok := errors.AsType[*messages.BusinessDateError](err); ok {
		l.checkDate(r, date)
	}
	if errors.Is(err, calendar.ErrZoneChange) {
		l.s.meet(metZoneRefused, true)
		if d := l.daysOf(r.workspace); len(d.Changes)+len(r.drafts) <= calendar.MaxZoneChanges {
			l.s.failf("request %d: %v, there are %d", r.id, err, len(d.Changes))
		}
	}
}

// wasExhausted reports whether a request would go on above a sequence's largest number, as an error says.
func (l *ledger) wasExhausted(r *request, e *messages.OverflowError) bool {
	def, wants := l.s.sequences[e.Seq], false
	for i := range r.drafts {
		d := &r.drafts[i]
		wants = wants || slices.ContainsFunc(d.Wanted, func(w messages.Wanted) bool {
			return w.Seq == e.Seq && (d.Date == 0 || e.Period == 0 || d.Date == e.Period)
		})
		wants = wants || slices.ContainsFunc(takenOf(d), func(n messages.SequenceNumber) bool {
			return n.Seq == e.Seq && n.Number > def.Max() && l.s.inPeriod(d, n, e.Period)
		})
	}
	before := max(e.Last, def.Initial-1)
	return wants && e.Workspace == r.workspace && e.Largest == def.Max() && e.Last <= e.Largest && e.Wanted > int(e.Largest-before) &&
		e.Last <= l.reached(r, messages.SequencePeriod{Seq: e.Seq, Period: e.Period})
}
