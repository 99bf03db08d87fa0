package demo

import (
	"strconv"
	"time"

	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/verify"
)

// number is an integer that any program can read as JSON: those that are not
// exact as floating point numbers become strings.
type number uint64

const largestExact = 1<<53 - 1

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	digits := strconv.AppendUint(nil, uint64(n), 10)
	if n > largestExact {
		return append(append([]byte{'"'}, digits...), '"'), nil
	}
	return digits, nil
}

// seconds is a duration as JSON.
type seconds time.Duration

// MarshalJSON implements json.Marshaler.
func (s seconds) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, time.Duration(s).Seconds(), 'f', 6, 64), nil
}

// perSecond is a rate, 0 if no time has passed.
func perSecond(n uint64, took time.Duration) float64 {
	if took <= 0 {
		return 0
	}
	return float64(n) / took.Seconds()
}

// checkResult is the verdict of the invariant check.
type checkResult struct {
	OK         bool     `json:"ok"`
	Events     number   `json:"events"`
	Workspaces number   `json:"workspaces"`
	Numbers    number   `json:"numbers"`
	Records    number   `json:"records"`
	FaultCount number   `json:"fault_count"`
	Faults     []string `json:"faults"`
	Seconds    seconds  `json:"seconds"`
}

func newCheckResult(r verify.Report, took time.Duration) *checkResult {
	c := &checkResult{
		OK: r.FaultCount == 0, Events: number(r.Events), Workspaces: number(r.Workspaces),
		Numbers: number(r.Numbers), Records: number(r.Rows), FaultCount: number(r.FaultCount),
		Faults: []string{}, Seconds: seconds(took),
	}
	for _, f := range r.Faults {
		c.Faults = append(c.Faults, f.String())
	}
	return c
}

// fileSizes are the sizes of a store's files.
type fileSizes struct {
	Log   number `json:"log"`
	State number `json:"state"`
}

func sizesOf(s bolt.Stats) fileSizes {
	return fileSizes{Log: number(s.LogSize), State: number(s.StateSize)}
}
