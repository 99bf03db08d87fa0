package calendar

import (
	"fmt"
	"slices"
)

// Unit is how often a sequence begins again. The numbers are stored: they keep their meaning.
type Unit uint8

// The units.
const (
	// Never is the zero unit: there are no periods.
	Never Unit = iota
	// Day is a local day, of 24 hours or not.
	Day
	// Week is a week of ISO 8601. It begins on Monday, so its period may begin in the year before.
	Week
	// Month is a month of the calendar.
	Month
	// Quarter is three months of a year, or of a fiscal year.
	Quarter
	// Year is twelve months: a year of the calendar, or a fiscal year.
	Year
)

var unitNames = []string{"never", "day", "week", "month", "quarter", "year"}

// String returns the unit's name, "day", and "unit(9)" for what is none.
func (u Unit) String() string {
	if int(u) < len(unitNames) {
		return unitNames[u]
	}
	return fmt.Sprintf("unit(%d)", uint8(u))
}

// ParseUnit reads a unit's name as String writes it. It returns [ErrRule] for anything else.
func ParseUnit(s string) (Unit, error) {
	if i := slices.Index(unitNames, s); i >= 0 {
		return Unit(i), nil
	}
	return Never, fmt.Errorf("%w: unit: got %.40q, want one of %v", ErrRule, s, unitNames)
}

// months is how many months the unit has, 0 if it is not made of months.
func (u Unit) months() int {
	switch u {
	case Month:
		return 1
	case Quarter:
		return 3
	case Year:
		return 12
	default:
		return 0
	}
}
