package numfmt

import (
	"strings"
	"time"

	"github.com/partita-go/partita/calendar"
)

// kind is a kind of part of a pattern.
type kind uint8

const (
	literal kind = iota
	number
	year
	month
	day
	quarter
	isoYear
	isoWeek
	fiscalYear
	kinds
)

// fields are what stands between braces, and how many digits it is printed with. Those of a number vary.
var fields = [kinds]struct {
	name  string
	width int
}{
	number: {"n", 0}, year: {"yyyy", 4}, month: {"mm", 2}, day: {"dd", 2}, quarter: {"q", 1},
	isoYear: {"gggg", 4}, isoWeek: {"ww", 2}, fiscalYear: {"fy", 4},
}

// set is a set of kinds.
type set uint16

func setOf(of ...kind) (s set) {
	for _, k := range of {
		s |= 1 << k
	}
	return s
}

func (s set) has(k kind) bool { return s&(1<<k) != 0 }

func (s set) String() string {
	var names []string
	for k := number; k < kinds; k++ {
		if s.has(k) {
			names = append(names, "{"+fields[k].name+"}")
		}
	}
	return strings.Join(names, " ")
}

// allowed are the fields of a sequence that restarts so. Of {yyyy} and {fy} one is enough.
func allowed(every calendar.Unit) (s set, ok bool) {
	switch every {
	case 0:
		return setOf(number), true
	case calendar.Day:
		return setOf(number, year, month, day), true
	case calendar.Week:
		return setOf(number, isoYear, isoWeek), true
	case calendar.Month:
		return setOf(number, year, month), true
	case calendar.Quarter:
		return setOf(number, year, fiscalYear, quarter), true
	case calendar.Year:
		return setOf(number, year, fiscalYear), true
	default:
		return 0, false
	}
}

// firstMonth is the month that a year of the rule's begins with.
func firstMonth(rule calendar.Rule) time.Month {
	if rule.Every == calendar.Quarter || rule.Every == calendar.Year {
		return max(time.January, rule.FirstMonth)
	}
	return time.January
}

// values are what the fields of a number and its period have.
type values [kinds]uint64

func valuesOf(rule calendar.Rule, period calendar.Date, n uint64) (v values) {
	v[number] = n
	v[year], v[month], v[day] = uint64(period.Year()), uint64(period.Month()), uint64(period.Day())
	first := uint64(firstMonth(rule))
	v[quarter] = (v[month]+12-first)%12/3 + 1
	if v[month] < first {
		v[year]--
	}
	v[fiscalYear] = v[year]
	if first > 1 {
		v[fiscalYear]++
	}
	if rule.Every == calendar.Week {
		y, w := period.Time().ISOWeek()
		v[isoYear], v[isoWeek] = uint64(y), uint64(w)
	}
	return v
}

// periodOf returns the period that may have the values, and whether there is a day that it begins with. What is
// printed of it can be different.
func periodOf(rule calendar.Rule, v *values, has set) (p calendar.Date, ok bool) {
	switch rule.Every {
	case calendar.Day:
		p = calendar.Date(v[year]*10000 + v[month]*100 + v[day])
	case calendar.Week:
		p = monday(int(v[isoYear]), int(v[isoWeek]))
	case calendar.Month:
		p = calendar.Date(v[year]*10000 + v[month]*100 + 1)
	case calendar.Quarter:
		p = fiscal(rule, firstYear(rule, v, has), int(v[quarter]))
	case calendar.Year:
		p = fiscal(rule, firstYear(rule, v, has), 1)
	default:
		return 0, true
	}
	return p, p.Valid()
}

// monday returns the first day of an ISO week: that of 4 January is week 1.
func monday(y, w int) calendar.Date {
	fourth := time.Date(y, time.January, 4, 0, 0, 0, 0, time.UTC)
	return calendar.DateOf(fourth.AddDate(0, 0, 7*(w-1)-(int(fourth.Weekday())+6)%7))
}

// fiscal returns the first day of a quarter of a fiscal year, by the year that this begins in. The period in which the
// calendar begins has none earlier.
func fiscal(rule calendar.Rule, y, q int) calendar.Date {
	t := time.Date(y, firstMonth(rule)+time.Month(3*(q-1)), 1, 0, 0, 0, 0, time.UTC)
	if t.Year() < 1 {
		return 1_01_01
	}
	return calendar.DateOf(t)
}

// firstYear is the year that a fiscal year begins in.
func firstYear(rule calendar.Rule, v *values, has set) int {
	switch {
	case has.has(year):
		return int(v[year])
	case firstMonth(rule) == time.January:
		return int(v[fiscalYear])
	case v[fiscalYear] == 0:
		return 9999
	default:
		return int(v[fiscalYear]) - 1
	}
}
