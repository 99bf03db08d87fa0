package rows

import (
	"testing"
	"time"

	"github.com/partita-go/partita/bench/internal/report"
)

func TestDays(t *testing.T) {
	d := make(days)
	if got := d.numbering(); got != (report.Numbering{}) {
		t.Errorf("without events: got %+v", got)
	}
	for day, numbers := range map[int64][]uint64{
		1: {1, 2, 3}, 2: {2, 4, 2, 2, 1}, 3: {5}, 4: {9, 9, 9},
	} {
		for _, n := range numbers {
			if err := d.add(day, n); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got, want := d.numbering(), (report.Numbering{Days: 3, Doubled: 2, Missing: 1 + 4}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if err := d.add(1, 0); err == nil {
		t.Error("number 0: got no error")
	}
}

// The clock goes on over each midnight, and begins a date a second.
func TestDayClock(t *testing.T) {
	loc, err := time.LoadLocation(midnightZone)
	if err != nil {
		t.Fatal(err)
	}
	for days, hours := range map[int]int{0: 24, 87: 23, 200: 24, 297: 25} { // 29 March and 25 October are in summer and winter
		at := func(d time.Duration) time.Time { return dayAt(time.Duration(days)*dayLength+d, loc) }
		midnight := at(0)
		if h, m, s := midnight.Clock(); h != 0 || m != 0 || s != 0 || midnight.YearDay() != days+1 {
			t.Errorf("day %d: got %v, want midnight", days, midnight)
		}
		for _, d := range []time.Duration{-dayLength / 2, -1, 1, dayLength/2 - 1} {
			if got := at(d).Sub(midnight); got != d {
				t.Errorf("day %d: got %v from midnight, want %v", days, got, d)
			}
		}
		if got := at(dayLength).Sub(midnight); got != time.Duration(hours)*time.Hour {
			t.Errorf("day %d: got %v, want %d hours", days, got, hours)
		}
	}
}
