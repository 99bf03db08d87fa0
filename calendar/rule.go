package calendar

import (
	"fmt"
	"time"
)

// The first and the last date.
const (
	minDate Date = 1_01_01
	maxDate Date = 9999_12_31
)

// Rule is how a sequence's numbers are cut into periods. The zero rule has none.
type Rule struct {
	// Every is how long a period is. Zero: there are no periods.
	Every Unit
	// FirstMonth is the month that a fiscal year begins with, 1 to 12. Zero: January. Only years
	// and quarters have one: the quarters of a fiscal year that begins in February begin in
	// February, May, August and November, which no rule of the calendar's quarters gives.
	FirstMonth time.Month
}

// Validate returns [ErrRule] for a unit or a month that is none, and for a FirstMonth that changes
// nothing.
func (r Rule) Validate() error {
	switch {
	case r.Every > Year:
		return fmt.Errorf("%w: got %v, want at most %d", ErrRule, r.Every, Year)
	case r.FirstMonth < 0 || r.FirstMonth > time.December:
		return fmt.Errorf("%w: first month: got %d, want 0 to 12", ErrRule, int(r.FirstMonth))
	case r.FirstMonth != 0 && r.Every != Year && r.Every != Quarter:
		return fmt.Errorf("%w: first month: got %v for every %v, want it only for a quarter or a year", ErrRule, r.FirstMonth, r.Every)
	}
	return nil
}

// PeriodOf returns the first day of the period in which a date lies. A period that began before
// 0001-01-01 begins there. It is zero without periods, and for what is not [Date.Valid].
func (r Rule) PeriodOf(d Date) Date {
	if !d.Valid() {
		return 0
	}
	switch r.Every {
	case Day:
		return d
	case Week:
		t := d.Time()
		return DateOf(t.AddDate(0, 0, -(int(t.Weekday())+6)%7))
	case Month, Quarter, Year:
		first := max(r.FirstMonth, time.January)
		month := d.Year()*12 + int(d.Month()-first)
		month -= month % r.Every.months()
		month += int(first - time.January)
		return max(Date(month/12*10000+(month%12+1)*100+1), minDate)
	default:
		return 0
	}
}

// Add returns the n-th period after the one in which a date lies, before it if n is negative. It
// ends at the first and at the last period of the years 1 to 9999: further on there is none. It
// is zero where PeriodOf is.
func (r Rule) Add(d Date, n int) Date {
	period := r.PeriodOf(d)
	if period == 0 {
		return 0
	}
	n = min(max(n, -9999*366), 9999*366)
	days := 0
	switch r.Every {
	case Day:
		days = n
	case Week:
		days = 7 * n
	default:
	}
	switch d := DateOf(period.Time().AddDate(0, n*r.Every.months(), days)); {
	case d != 0:
		return r.PeriodOf(d)
	case n < 0:
		return r.PeriodOf(minDate)
	default:
		return r.PeriodOf(maxDate)
	}
}
