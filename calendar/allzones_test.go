package calendar_test

import (
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/partita-go/partita/calendar"
)

var daily = calendar.Rule{Every: calendar.Day}

// TestAllZones walks through all zones from 1970 to 2100. What clocks have shown at most until then is the
// local date.
func TestAllZones(t *testing.T) {
	names := allZones(t)
	if len(names) < 300 {
		t.Fatalf("got %d zones, want all", len(names))
	}
	if testing.Short() {
		names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(oddZones, name) })
	}
	var all walked
	for _, name := range names {
		all.zone(t, name)
	}
	t.Logf("%d zones, %d changes of the offset, %d instants, of which %d show a date that was over", len(names), all.changes, all.instants, all.over)
	if all.over == 0 {
		t.Error("no clock has shown a date that was over")
	}
}

// oddZones skip midnight or a day, show one twice, change by half an hour or by the sun, in winter or for Ramadan.
var oddZones = []string{
	"Africa/Cairo", "America/Sao_Paulo", "America/Havana", "America/St_Johns", "Pacific/Apia", "Pacific/Kwajalein",
	"Australia/Lord_Howe", "Africa/Casablanca", "Europe/Dublin", "Asia/Gaza", "America/Nuuk", "Antarctica/Troll",
}

type walked struct{ changes, instants, over int }

func (w *walked) zone(t *testing.T, name string) {
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	zone := load(t, name)
	changes := changesOf(loc)
	w.changes += len(changes)
	var most, before calendar.Date
	// A clock that is set back over midnight by d shows a date that was over for less than d.
	var repeated time.Time
	for _, at := range instants(loc, changes) {
		w.instants++
		plain := calendar.DateOf(at.In(loc))
		most = max(most, plain)
		if back := setBack(loc, at); back > 0 {
			repeated = later(repeated, at.Add(back))
		}
		period, until := calendar.Zones(nil).PeriodAt(daily, zone, at)
		switch {
		case period != most:
			t.Fatalf("%s at %v: got %v, want %v", name, at, period, most)
		case period < before:
			t.Fatalf("%s at %v: %v comes after %v", name, at, period, before)
		case period != plain && !at.Before(repeated):
			t.Fatalf("%s at %v: got %v, want %v", name, at, period, plain)
		case !at.Before(until) || until.Sub(at) > 49*time.Hour:
			t.Fatalf("%s at %v: %v lasts until %v", name, at, period, until)
		}
		if period != plain {
			w.over++
		}
		if period != before {
			exact(t, name, zone, period, until)
		}
		before = period
	}
}

// exact checks where a date ends: not sooner, and not later.
func exact(t *testing.T, name string, zone calendar.Zone, d calendar.Date, until time.Time) {
	t.Helper()
	last, same := calendar.Zones(nil).PeriodAt(daily, zone, until.Add(-1))
	next, _ := calendar.Zones(nil).PeriodAt(daily, zone, until)
	if last != d || !same.Equal(until) || next <= d {
		t.Fatalf("%s: %v lasts until %v: got %v just before, until %v, and %v then", name, d, until, last, same, next)
	}
}

// changesOf finds where a zone's offset changes, without asking for the bounds that Go knows.
func changesOf(loc *time.Location) (changes []time.Time) {
	end := time.Date(2101, 1, 1, 0, 0, 0, 0, time.UTC)
	day := time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC)
	for before := offset(loc, day); day.Before(end); day = day.Add(24 * time.Hour) {
		after := offset(loc, day.Add(24*time.Hour))
		if after == before {
			continue
		}
		second := sort.Search(24*60*60, func(s int) bool { return offset(loc, day.Add(time.Duration(s)*time.Second)) != before })
		changes = append(changes, day.Add(time.Duration(second)*time.Second))
		before = after
	}
	return changes
}

// instants are those at which a date may change, and a nanosecond before each: around each change of the offset, the
// change, midnights before and after it by both offsets, and steps of minutes and hours. Elsewhere nothing
// happens but midnights: some days are enough, and the ends of leap years, where Go's bounds are wrong.
func instants(loc *time.Location, changes []time.Time) (all []time.Time) {
	add := func(at time.Time) { all = append(all, at.Add(-1), at) }
	midnights := func(at time.Time, days int) {
		for _, seconds := range []int{offset(loc, at.Add(-1)), offset(loc, at)} {
			first := at.Truncate(24 * time.Hour).Add(-time.Duration(seconds) * time.Second)
			for day := -days; day <= days; day++ {
				add(first.AddDate(0, 0, day))
			}
		}
	}
	for _, c := range changes {
		midnights(c, 2)
		for _, minutes := range []int{0, 1, 2, 15, 29, 31, 59, 60, 61, 90, 120} {
			add(c.Add(time.Duration(minutes) * time.Minute))
		}
		for hours := -48; hours <= 48; hours += 12 {
			add(c.Add(time.Duration(hours) * time.Hour))
		}
	}
	for t := time.Date(1970, 1, 1, 12, 0, 0, 0, time.UTC); t.Year() <= 2100; t = t.AddDate(0, 5, 7) {
		midnights(t, 0)
		all = append(all, t)
	}
	for year := 1972; year <= 2100; year += 4 {
		midnights(time.Date(year, 12, 31, 12, 0, 0, 0, time.UTC), 2)
	}
	slices.SortFunc(all, time.Time.Compare)
	return slices.CompactFunc(all, time.Time.Equal)
}

// setBack is by how much clocks are set back at an instant.
func setBack(loc *time.Location, at time.Time) time.Duration {
	return time.Duration(offset(loc, at.Add(-1))-offset(loc, at)) * time.Second
}

func offset(loc *time.Location, at time.Time) int {
	_, seconds := at.In(loc).Zone()
	return seconds
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
