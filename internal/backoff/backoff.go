// Package backoff says how long to wait before something that has failed is tried again.
package backoff

import "time"

// Delay doubles with each failure in a row, from first, above 0, at one failure up to
// largest. It is between the half and the whole of that: the jitter, from 0 up to but not
// including 1, chooses.
func Delay(first, largest time.Duration, failures int, jitter float64) time.Duration {
	whole := first
	for n := 1; n < failures && whole < largest; n++ {
		whole *= 2
	}
	half := min(whole, largest) / 2
	return half + time.Duration(jitter*float64(half))
}
