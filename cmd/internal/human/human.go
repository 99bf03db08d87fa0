// Package human writes numbers for people to read: with thousands separators,
// few digits and fitting units, which is ASCII; and text that cannot do harm.
package human

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Plain returns a text in which a question mark stands for whatever a terminal would not show
// as it stands: control characters of both sets, line ends, marks of direction.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}

// Integer is any integer type.
type Integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// Count writes a whole number: "1,234,567".
func Count[T Integer](n T) string {
	if n < 0 {
		return "-" + group(strconv.FormatInt(int64(n), 10)[1:])
	}
	return group(strconv.FormatUint(uint64(n), 10))
}

// Counted writes how many of a thing there are: "1 fault", "1,234 faults".
func Counted[T Integer](n T, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return Count(n) + " " + thing + "s"
}

func group(digits string) string {
	out := make([]byte, 0, len(digits)+len(digits)/3)
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 {
			out = append(out, ',')
		}
		out = append(out, digits[i])
	}
	return string(out)
}

// Number writes a number with three digits, or all those before the point:
// "0.00123", "1.23", "12.3", "1,234".
func Number(x float64) string {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0) || math.Abs(x) >= 1e15:
		return strconv.FormatFloat(x, 'g', 3, 64)
	case x < 0:
		return "-" + Number(-x)
	case x >= 99.95:
		return group(strconv.FormatFloat(x, 'f', 0, 64))
	case x >= 9.995:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case x >= 0.9995 || x == 0:
		return strconv.FormatFloat(x, 'f', 2, 64)
	default:
		return strconv.FormatFloat(x, 'g', 3, 64)
	}
}

// Rate writes how many came in how long: "84,120/s", "0" if no time has passed.
func Rate(n int64, took time.Duration) string {
	if took <= 0 {
		return "0/s"
	}
	return Number(float64(n)/took.Seconds()) + "/s"
}

// Duration writes a duration with three digits: "850ns", "12.3us", "1.60ms",
// "2.35s", and longer ones as "1m05s" and "2h03m".
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Duration(-max(d, -math.MaxInt64))
	case d < time.Microsecond:
		return strconv.FormatInt(int64(d), 10) + "ns"
	case d < 999500*time.Nanosecond:
		return Number(float64(d)/float64(time.Microsecond)) + "us"
	case d < 999500*time.Microsecond:
		return Number(float64(d)/float64(time.Millisecond)) + "ms"
	case d < 59950*time.Millisecond:
		return Number(d.Seconds()) + "s"
	}
	if seconds := int64(d.Round(time.Second) / time.Second); seconds < 3600 {
		return fmt.Sprintf("%dm%02ds", seconds/60, seconds%60)
	}
	minutes := int64(d.Round(time.Minute) / time.Minute)
	return fmt.Sprintf("%sh%02dm", Count(minutes/60), minutes%60)
}

// Bytes is a size, written by its String method: "512 B", "1.41 MiB".
type Bytes int64

// String returns the size with three digits and a unit that is a power of 1024.
func (b Bytes) String() string {
	if b < 0 {
		return "-" + (-max(b, -math.MaxInt64)).String()
	}
	if b < 1024 {
		return Count(b) + " B"
	}
	x := float64(b)
	unit := -1
	for x >= 1023.5 {
		x /= 1024
		unit++
	}
	return Number(x) + " " + "KMGTPE"[unit:unit+1] + "iB"
}
