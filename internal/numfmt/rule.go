package numfmt

import (
	"fmt"
	"time"
)

// Unit is how often a sequence restarts. Zero: never.
type Unit uint8

// The units.
const (
	Day Unit = iota + 1
	Week
	Month
	Quarter
	Year
)

func (u Unit) String() string {
	if u > Year {
		return fmt.Sprintf("unit(%d)", uint8(u))
	}
	return [...]string{"never", "day", "week", "month", "quarter", "year"}[u]
}

// Rule says when a sequence restarts. The zero value: never.
type Rule struct {
	Every Unit
	// FirstMonth is the month that a fiscal year begins with. Zero: January. Only years and quarters have one.
	FirstMonth time.Month
}
