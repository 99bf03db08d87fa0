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

// allowed are the fields of a sequence that restarts so. A year's may have one of its two.
func allowed(every Unit) (s set, ok bool) {
	switch every {
	case 0:
		return setOf(number), true
	case Day:
		return setOf(number, year, month, day), true
	case Week:
		return setOf(number, isoYear, isoWeek), true
	case Month:
		return setOf(number, year, month), true
	case Quarter:
		return setOf(number, year, quarter), true
	case Year:
		return setOf(number, year, fiscalYear), true
	default:
		return 0, false
	}
}

// values are what the fields of a number and its period have.
type values [kinds]uint64

func valuesOf(rule Rule, period calendar.Date, n uint64) (v values) {
	v[number] = n
	v[year], v[month], v[day] = uint64(period.Year()), uint64(period.Month()), uint64(period.Day())
	v[quarter] = (v[month] + 2) / 3
	v[fiscalYear] = v[year]
	if rule.FirstMonth > 1 {
		// 10000 is printed as 0000, which is no other year's.
		v[fiscalYear]++
	}
	if rule.Every == Week {
		y, w := period.Time().ISOWeek()
		v[isoYear], v[isoWeek] = uint64(y), uint64(w)
	}
	return v
}

// periodOf returns the period that may have the values, and whether there is a day that it begins with. What is
// printed of it can be different.
func periodOf(rule Rule, v *values, has set) (p calendar.Date, ok bool) {
	switch rule.Every {
	case Day:
		p = date(v[year], v[month], v[day])
	case Week:
		p = monday(int(v[isoYear]), int(v[isoWeek]))
	case Month:
		p = date(v[year], v[month], 1)
	case Quarter:
		p = date(v[year], v[quarter]*3-2, 1)
	case Year:
		p = date(firstYear(rule, v, has), max(1, uint64(rule.FirstMonth)), 1)
	default:
		return 0, true
	}
	return p, p.Valid()
}

func date(y, m, d uint64) calendar.Date { return calendar.Date(y*10000 + m*100 + d) }

// monday returns the first day of an ISO week: that of 4 January is week 1.
func monday(y, w int) calendar.Date {
	fourth := time.Date(y, time.January, 4, 0, 0, 0, 0, time.UTC)
	return calendar.DateOf(fourth.AddDate(0, 0, 7*(w-1)-(int(fourth.Weekday())+6)%7))
}

// firstYear is the year that a fiscal year begins in.
func firstYear(rule Rule, v *values, has set) uint64 {
	switch {
	case has.has(year):
		return v[year]
	case rule.FirstMonth <= 1:
		return v[fiscalYear]
	case v[fiscalYear] == 0:
		return 9999
	default:
		return v[fiscalYear] - 1
	}
}
