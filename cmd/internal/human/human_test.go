package human

import (
	"math"
	"testing"
	"time"
)

type id uint8

func TestNumbers(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{Count(0), "0"},
		{Count(999), "999"},
		{Count(1000), "1,000"},
		{Count(-73990), "-73,990"},
		{Count(-100), "-100"},
		{Count(int8(-128)), "-128"},
		{Count(id(255)), "255"},
		{Count(uint64(math.MaxUint64)), "18,446,744,073,709,551,615"},
		{Count(int64(math.MinInt64)), "-9,223,372,036,854,775,808"},

		{Counted(0, "fault"), "0 faults"},
		{Counted(1, "fault"), "1 fault"},
		{Counted(uint64(1234), "fault"), "1,234 faults"},

		{Number(0), "0.00"},
		{Number(0.00123), "0.00123"},
		{Number(1.234), "1.23"},
		{Number(9.996), "10.0"},
		{Number(99.96), "100"},
		{Number(1234.5), "1,234"},
		{Number(-12.34), "-12.3"},
		{Number(math.NaN()), "NaN"},
		{Number(math.Inf(1)), "+Inf"},
		{Number(1e20), "1e+20"},

		{Rate(84120, time.Second), "84,120/s"},
		{Rate(1, 2*time.Second), "0.5/s"},
		{Rate(5, 0), "0/s"},

		{Bytes(0).String(), "0 B"},
		{Bytes(1023).String(), "1,023 B"},
		{Bytes(1024).String(), "1.00 KiB"},
		{Bytes(1447000).String(), "1.38 MiB"},
		{Bytes(1<<20 - 1).String(), "1.00 MiB"},
		{Bytes(-2048).String(), "-2.00 KiB"},
		{Bytes(math.MaxInt64).String(), "8.00 EiB"},
		{Bytes(math.MinInt64).String(), "-8.00 EiB"},

		{Duration(0), "0ns"},
		{Duration(850), "850ns"},
		{Duration(12345), "12.3us"},
		{Duration(999499), "999us"},
		{Duration(999500), "1.00ms"},
		{Duration(1600 * time.Microsecond), "1.60ms"},
		{Duration(999600 * time.Microsecond), "1.00s"},
		{Duration(2350 * time.Millisecond), "2.35s"},
		{Duration(59960 * time.Millisecond), "1m00s"},
		{Duration(65 * time.Second), "1m05s"},
		{Duration(time.Hour - time.Millisecond), "1h00m"},
		{Duration(123 * time.Minute), "2h03m"},
		{Duration(-time.Second), "-1.00s"},
		{Duration(math.MinInt64), "-2,562,047h47m"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}
