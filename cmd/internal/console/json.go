package console

import (
	"strconv"
	"strings"
	"time"
)

// Number is an integer that any program can read as JSON: those that are not
// exact as floating point numbers become strings.
type Number uint64

const largestExact = 1<<53 - 1

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	digits := strconv.AppendUint(nil, uint64(n), 10)
	if n > largestExact {
		return append(append([]byte{'"'}, digits...), '"'), nil
	}
	return digits, nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Number) UnmarshalJSON(text []byte) (err error) {
	*(*uint64)(n), err = strconv.ParseUint(strings.Trim(string(text), `"`), 10, 64)
	return err
}

// Seconds is a duration as JSON.
type Seconds time.Duration

// MarshalJSON implements json.Marshaler.
func (s Seconds) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, time.Duration(s).Seconds(), 'f', 6, 64), nil
}

// PerSecond is a rate, 0 if no time has passed.
func PerSecond(n uint64, took time.Duration) float64 {
	if took <= 0 {
		return 0
	}
	return float64(n) / took.Seconds()
}
