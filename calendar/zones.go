package calendar

import (
	"fmt"
	"slices"
	"time"
)

// MaxZoneChanges is how many changes of its zone a workspace can have that may still count.
const MaxZoneChanges = 16

// settled is after which time a change counts for every rule, and what was before does not any more:
// the longest year, and two days for zones that are up to 26 hours apart.
const settled = (366 + 2) * 24 * time.Hour

// ZoneChange is a zone that a workspace was given.
type ZoneChange struct {
	Zone Zone
	// Set is when that was. For each rule the zone counts from the next period on.
	Set time.Time
}

// Zones are the changes of a workspace's zone, in their order; none: each sequence has its own zone. To
// be stored they are written one by one, and made again by Add. Zones are a value: nothing changes them.
type Zones []ZoneChange

// Add returns the zones with one more change. It leaves out what can't count any more for any rule after
// that, a change to the zone that was set last, and the last change if it was set at the same time. It
// returns [ErrZoneChange] if the change was set before the last one, or if there are [MaxZoneChanges]
// since the zone was last left alone for 368 days.
func (z Zones) Add(c ZoneChange) (Zones, error) {
	next, kept := c.Set, z
search:
	for i, last := range slices.Backward(z) {
		switch {
		case next.Before(last.Set):
			return nil, fmt.Errorf("%w: got one of %v, want none before %v", ErrZoneChange, c.Set, last.Set)
		case i == len(z)-1 && c.Zone.String() == last.Zone.String():
			return z, nil
		case i == len(z)-1 && c.Set.Equal(last.Set):
			return z[:i:i].Add(c)
		// It is not enough that the last change is so old: until one counts for every rule, what was before it
		// decides in which period the next one was set.
		case next.Sub(last.Set) >= settled:
			kept = z[i:]
			break search
		}
		next = last.Set
	}
	if len(kept) >= MaxZoneChanges {
		return nil, fmt.Errorf("%w: got one more than %d since %v, want 368 days without any", ErrZoneChange, len(kept), kept[0].Set)
	}
	return append(slices.Clone(kept), c), nil
}

// Merge is Add of a change that was decided on before, as the log has it: what Add would refuse, or what is in the
// zones already, changes nothing. So changes may be merged again, in their order, from any of them on.
func (z Zones) Merge(c ZoneChange) Zones {
	more, err := z.Add(c)
	if err != nil {
		return z
	}
	return more
}

// Last returns the change that was made last, and whether there is one.
func (z Zones) Last() (last ZoneChange, there bool) {
	if len(z) == 0 {
		return ZoneChange{}, false
	}
	return z[len(z)-1], true
}

// Unknown returns the first of the zones that is not known here, and whether there is one. Then
// PeriodAt can't tell periods.
func (z Zones) Unknown() (unknown Zone, there bool) {
	for _, c := range z {
		if !c.Zone.Known() {
			return c.Zone, true
		}
	}
	return Zone{}, false
}

// PeriodAt returns the period of an instant, in a sequence with this rule, whose own zone is base, and until
// when it lasts, exactly. The end is zero if there is none: without periods, and in the last one of
// the year 9999.
//
// Until the period ends in which a change was set, the zone before counts, and then the new one, but never
// with a period before the one that has begun then. If several changes were set in one period, the
// last one counts. So the period of rising instants never falls, and its end stays right when
// later changes are added: one that was asked for once need not be asked for again before.
func (z Zones) PeriodAt(r Rule, base Zone, at time.Time) (period Date, until time.Time) {
	now := counting{rule: r, zone: base}
	for i, c := range z {
		if c.Set.After(at) {
			break
		}
		_, end := now.period(c.Set)
		if end.IsZero() || at.Before(end) {
			break
		}
		if i+1 < len(z) && z[i+1].Set.Before(end) {
			continue
		}
		now.least, _ = now.period(end)
		now.zone = c.Zone
	}
	return now.period(at)
}

// counting is the zone that counts for a rule, and the period that had begun when it began to count.
type counting struct {
	rule  Rule
	zone  Zone
	least Date
}

// period returns the period of an instant, and until when it lasts.
func (c *counting) period(at time.Time) (period Date, until time.Time) {
	period = max(c.rule.PeriodOf(c.zone.date(at)), c.least)
	for {
		next := c.rule.Add(period, 1)
		if next == period {
			return period, time.Time{}
		}
		until = c.zone.begin(next)
		if at.Before(until) {
			return period, until
		}
		// A clock that was set back shows the period before the one that has begun.
		period = next
	}
}
