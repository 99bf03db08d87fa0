package ids

import (
	"fmt"
	"strconv"
)

// DecimalID names something for ever, and can be read by people. In decimal digits:
//
//	┌───────────────────────────┬────────────┬────────────┐
//	│ counter, 1 to 922,337,202 │ generator  │   launch   │
//	└───────────────────────────┴────────────┴────────────┘
//	          up to 9 digits       5 digits     5 digits
//
// 420001700003 is the 42nd id of generator 17 of launch 3. Generators are 1 to 99,999. Launch 0 is for tests only. The
// zero value is no id.
type DecimalID uint64

const (
	generatorFactor = 100_000
	counterFactor   = 100_000 * generatorFactor

	// MaxGenerator is the largest number of a generator.
	MaxGenerator = generatorFactor - 1
	// MaxLaunch is the largest number of a launch.
	MaxLaunch = generatorFactor - 1

	maxDecimalCounter = 922_337_202
)

// ParseDecimalID reads what [DecimalID.String] returns: decimal digits without a sign, or zeros in front. It returns
// [ErrID] for anything else.
func ParseDecimalID(s string) (DecimalID, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if d := DecimalID(n); err == nil && d.Validate() == nil && d.String() == s {
		return d, nil
	}
	return 0, badText("decimal id", s, "up to 9 digits of a counter, 5 of a generator, 5 of a launch; counter and generator not 0")
}

// Validate returns [ErrID] unless counter and generator are in their ranges. It lets launch 0 pass: Launch tells whether
// an id is of a test.
func (d DecimalID) Validate() error {
	switch {
	case d.Counter() < 1 || d.Counter() > maxDecimalCounter:
		return fmt.Errorf("%w: decimal id %d: got counter %d, want 1 to %d", ErrID, uint64(d), d.Counter(), maxDecimalCounter)
	case d.Generator() == 0:
		return fmt.Errorf("%w: decimal id %d: got generator 0, want 1 to %d", ErrID, uint64(d), MaxGenerator)
	}
	return nil
}

// Counter returns how many ids the generator had given out with this one.
func (d DecimalID) Counter() uint32 { return uint32(d / counterFactor) }

// Generator returns the number of the generator within the launch.
func (d DecimalID) Generator() uint32 { return uint32(d / generatorFactor % generatorFactor) }

// Launch returns the number of the launch, 0 for an id of a test.
func (d DecimalID) Launch() uint32 { return uint32(d % generatorFactor) }

func (d DecimalID) append(b []byte) []byte {
	if d == 0 {
		return b
	}
	return strconv.AppendUint(b, uint64(d), 10)
}
