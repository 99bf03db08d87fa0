package calendar

import (
	"fmt"
	"time"
)

// Date is a day of the proleptic Gregorian calendar, wherever that is: the decimal number
// yyyymmdd. 2026-03-29 is 20260329. So dates are in the order of their numbers, and can be
// read in a dump. Zero means none. Years are 1 to 9999.
type Date uint32

// DateOf returns the day of a time, in the time's own zone. It is zero for years outside of
// 1 to 9999.
func DateOf(t time.Time) Date {
	y, m, d := t.Date()
	if y < 1 || y > 9999 {
		return 0
	}
	return Date(y*10000 + int(m)*100 + d)
}

// Year is the year, 1 to 9999.
func (d Date) Year() int { return int(d / 10000) }

// Month is the month of the year, 1 to 12.
func (d Date) Month() time.Month { return time.Month(d / 100 % 100) }

// Day is the day of the month, from 1.
func (d Date) Day() int { return int(d % 100) }

// Time returns the beginning of the date in UTC.
func (d Date) Time() time.Time {
	return time.Date(d.Year(), d.Month(), d.Day(), 0, 0, 0, 0, time.UTC)
}

// Valid reports whether there is such a day. Zero is none.
func (d Date) Valid() bool { return d != 0 && DateOf(d.Time()) == d }

// String returns the date as "2026-03-29", and "none" for zero.
func (d Date) String() string {
	if d == 0 {
		return "none"
	}
	return fmt.Sprintf("%04d-%02d-%02d", d.Year(), d.Month(), d.Day())
}

// ParseDate reads "2026-03-29". It returns [ErrDate] for anything else.
func ParseDate(s string) (Date, error) {
	t, err := time.Parse(time.DateOnly, s)
	if d := DateOf(t); err == nil && d != 0 {
		return d, nil
	}
	return 0, fmt.Errorf("%w: got %.40q, want one like 2026-03-29", ErrDate, s)
}
