package calendar_test

import (
	"testing"
	"time"

	"github.com/partita-go/partita/calendar"
)

// BenchmarkPeriodAt is what an instant costs: asked for anew, and if whoever asks knows until when the period lasts.
func BenchmarkPeriodAt(b *testing.B) {
	at := time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC)
	zurich, cairo := load(b, "Europe/Zurich"), load(b, "Africa/Cairo")
	moved := calendar.Zones{{Zone: cairo, Set: at.AddDate(0, 0, -30)}, {Zone: zurich, Set: at.AddDate(0, 0, -20)}}
	for _, c := range []struct {
		name  string
		rule  calendar.Rule
		zone  calendar.Zone
		zones calendar.Zones
	}{
		{"day/UTC", daily, calendar.Zone{}, nil},
		{"day/Zurich", daily, zurich, nil},
		{"day/moved", daily, cairo, moved},
		{"week/Zurich", calendar.Rule{Every: calendar.Week}, zurich, nil},
		{"year/Zurich", calendar.Rule{Every: calendar.Year, FirstMonth: time.April}, zurich, nil},
	} {
		b.Run(c.name+"/anew", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.zones.PeriodAt(c.rule, c.zone, at)
			}
		})
		b.Run(c.name+"/known", func(b *testing.B) {
			b.ReportAllocs()
			var until time.Time
			asked, now := 0, at
			for b.Loop() {
				now = now.Add(time.Millisecond)
				if !now.Before(until) {
					asked++
					_, until = c.zones.PeriodAt(c.rule, c.zone, now)
				}
			}
			b.ReportMetric(float64(asked), "asked")
		})
	}
}

// BenchmarkPeriodOf is what a business date costs.
func BenchmarkPeriodOf(b *testing.B) {
	for _, unit := range []calendar.Unit{calendar.Day, calendar.Week, calendar.Month, calendar.Quarter, calendar.Year} {
		b.Run(unit.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				calendar.Rule{Every: unit}.PeriodOf(20260329)
			}
		})
	}
}
