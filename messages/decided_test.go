package messages

import (
	"testing"
	"time"

	"github.com/partita-go/partita/calendar"
)

// TestCheckDecided: what any zone may have decided is taken, and what none can is not. The zones are those that were
// farthest from UTC, and those that have moved over the date line.
func TestCheckDecided(t *testing.T) {
	daily := Sequence{ID: 16, Restart: Restart{Rule: calendar.Rule{Every: calendar.Day}}}
	yearly := Sequence{ID: 17, Restart: Restart{Rule: calendar.Rule{Every: calendar.Year, FirstMonth: time.April}}}
	for _, name := range []string{
		"UTC", "Pacific/Kiritimati", "Etc/GMT-14", "Etc/GMT+12", "Asia/Manila", "America/Juneau", "Pacific/Kwajalein", "Pacific/Apia", "America/Havana",
	} {
		zone, err := calendar.LoadZone(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, from := range []string{"1844-12-28", "1867-10-15", "1969-09-28", "1993-08-19", "2011-12-28", "2026-10-31", "2026-03-30"} {
			begin, _ := time.Parse(time.DateOnly, from)
			for half := range 6 * 48 {
				at := begin.Add(time.Duration(half) * 30 * time.Minute)
				for _, s := range []*Sequence{&daily, &yearly} {
					period, _ := calendar.Zones(nil).PeriodAt(s.Restart.Rule, zone, at)
					if err := s.CheckDecided(TimestampOf(at), period); err != nil {
						t.Fatalf("%s: %v", name, err)
					}
				}
			}
		}
	}
	at := TimestampOf(time.Date(2026, 3, 31, 23, 59, 0, 0, time.UTC))
	for _, c := range []struct {
		s      *Sequence
		period calendar.Date
		want   bool
	}{
		{&daily, 20260328, false}, {&daily, 20260329, true}, {&daily, 20260402, true}, {&daily, 20260403, false},
		{&yearly, 20240401, false}, {&yearly, 20250401, true}, {&yearly, 20260401, true}, {&yearly, 20270401, false},
	} {
		if err := c.s.CheckDecided(at, c.period); (err == nil) != c.want {
			t.Errorf("period %v: got %v", c.period, err)
		}
	}
}
