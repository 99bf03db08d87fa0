package calendar_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/partita-go/partita/calendar"
)

// moved returns zones that were set at instants: name, instant, name, instant …
func moved(t testing.TB, changes ...string) (zones calendar.Zones) {
	t.Helper()
	for i := 0; i < len(changes); i += 2 {
		more, err := zones.Add(calendar.ZoneChange{Zone: load(t, changes[i]), Set: instant(t, changes[i+1])})
		if err != nil {
			t.Fatal(err)
		}
		zones = more
	}
	return zones
}

// TestMoved: a zone counts from the next period on. Each line is an instant, its period, and until when it lasts.
func TestMoved(t *testing.T) {
	const noon = "2026-06-10T12:00:00Z"
	type step struct {
		at    string
		want  calendar.Date
		until string
	}
	for _, c := range []struct {
		name  string
		every calendar.Unit
		base  string
		zones calendar.Zones
		steps []step
	}{
		{"what was decided before stays", calendar.Day, "UTC", moved(t, "Asia/Tokyo", noon), []step{
			{"2026-06-09T23:00:00Z", 20260609, "2026-06-10T00:00:00Z"},
			{"2026-06-10T11:59:59Z", 20260610, "2026-06-11T00:00:00Z"},
		}},
		{"east", calendar.Day, "UTC", moved(t, "Asia/Tokyo", noon), []step{
			{noon, 20260610, "2026-06-11T00:00:00Z"},
			{"2026-06-10T23:59:59Z", 20260610, "2026-06-11T00:00:00Z"},
			{"2026-06-11T00:00:00Z", 20260611, "2026-06-11T15:00:00Z"},
			{"2026-06-11T15:00:00Z", 20260612, "2026-06-12T15:00:00Z"},
		}},
		{"west: the next day lasts longer", calendar.Day, "Asia/Tokyo", moved(t, "America/Los_Angeles", noon), []step{
			{noon, 20260610, "2026-06-10T15:00:00Z"},
			{"2026-06-10T15:00:00Z", 20260611, "2026-06-12T07:00:00Z"},
			{"2026-06-12T07:00:00Z", 20260612, "2026-06-13T07:00:00Z"},
		}},
		{"across the date line: a day is left out", calendar.Day, "Pacific/Midway", moved(t, "Pacific/Kiritimati", noon), []step{
			{noon, 20260610, "2026-06-11T11:00:00Z"},
			{"2026-06-11T11:00:00Z", 20260612, "2026-06-12T10:00:00Z"},
		}},
		{"at the end of a day: from the next one on", calendar.Day, "UTC", moved(t, "Asia/Tokyo", "2026-06-10T00:00:00Z"), []step{
			{"2026-06-10T00:00:00Z", 20260610, "2026-06-11T00:00:00Z"},
			{"2026-06-10T15:00:00Z", 20260610, "2026-06-11T00:00:00Z"},
		}},
		{"the last change of a day counts", calendar.Day, "UTC", moved(t, "Pacific/Kiritimati", noon, "America/Los_Angeles", "2026-06-10T13:00:00Z"), []step{
			{"2026-06-10T14:00:00Z", 20260610, "2026-06-11T00:00:00Z"},
			{"2026-06-11T00:00:00Z", 20260611, "2026-06-12T07:00:00Z"},
		}},
		{"and back: nothing has changed", calendar.Day, "UTC", moved(t, "Pacific/Kiritimati", noon, "UTC", "2026-06-10T13:00:00Z"), []step{
			{"2026-06-11T12:00:00Z", 20260611, "2026-06-12T00:00:00Z"},
		}},
		{"one after the other", calendar.Day, "UTC", moved(t, "Asia/Tokyo", noon, "Europe/Zurich", "2026-06-11T00:00:00Z"), []step{
			{"2026-06-11T00:00:00Z", 20260611, "2026-06-11T15:00:00Z"},
			{"2026-06-11T15:00:00Z", 20260612, "2026-06-12T22:00:00Z"},
			{"2026-06-12T22:00:00Z", 20260613, "2026-06-13T22:00:00Z"},
		}},
		{"of a year, only the last change counts", calendar.Year, "UTC", moved(t, "Asia/Tokyo", noon, "America/New_York", "2026-11-01T00:00:00Z"), []step{
			{"2026-12-31T23:59:59Z", 20260101, "2027-01-01T00:00:00Z"},
			{"2027-01-01T00:00:00Z", 20270101, "2028-01-01T05:00:00Z"},
		}},
		{"without periods", calendar.Never, "UTC", moved(t, "Asia/Tokyo", noon), []step{{"2027-12-31T23:59:59Z", 0, ""}}},
	} {
		for _, s := range c.steps {
			got, until := c.zones.PeriodAt(calendar.Rule{Every: c.every}, load(t, c.base), instant(t, s.at))
			if got != s.want || !until.Equal(instant(t, s.until)) {
				t.Errorf("%s: at %s: got %v until %v, want %v until %v", c.name, s.at, got, until, s.want, s.until)
			}
		}
	}
}

func TestAddZone(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	two := []calendar.Zone{load(t, "Asia/Tokyo"), load(t, "Europe/Zurich")}
	var zones calendar.Zones
	add := func(i int, after time.Duration) error {
		more, err := zones.Add(calendar.ZoneChange{Zone: two[i%2], Set: start.Add(after)})
		if err == nil {
			zones = more
		}
		return err
	}
	for i := range calendar.MaxZoneChanges {
		if err := add(i, time.Duration(i)*time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	last := zones[len(zones)-1].Set.Sub(start)
	if err := add(1, last+time.Hour); err != nil || len(zones) != calendar.MaxZoneChanges {
		t.Errorf("the zone that it has already: got %d changes, %v", len(zones), err)
	}
	year := 368 * 24 * time.Hour
	for _, wrong := range []time.Duration{last - 1, last + 1, last + year - 1} {
		if err := add(0, wrong); !errors.Is(err, calendar.ErrZoneChange) {
			t.Errorf("after %v: got %v, want ErrZoneChange", wrong, err)
		}
	}
	before := zones
	err := add(0, last+year)
	if err != nil || len(zones) != 2 || zones[0] != before[len(before)-1] {
		t.Errorf("got %d changes, %v, want the last two", len(zones), err)
	}
	if len(before) != calendar.MaxZoneChanges || before[0].Set != start {
		t.Fatalf("what was is another now: %v", before)
	}
	// One that has been there for long does not make room for more.
	for i := 2; err == nil; i++ {
		if err = add(i+1, last+year+time.Duration(i)*time.Hour); len(zones) > calendar.MaxZoneChanges {
			t.Fatalf("got %d changes", len(zones))
		}
	}
	if !errors.Is(err, calendar.ErrZoneChange) || len(zones) != calendar.MaxZoneChanges {
		t.Errorf("got %v at %d changes, want ErrZoneChange", err, len(zones))
	}
	// Zones are a value: two that grow out of one do not meet.
	one, _ := before[:1:2].Add(calendar.ZoneChange{Zone: calendar.Zone{}, Set: start.Add(time.Minute)})
	if before[1].Zone == one[1].Zone {
		t.Error("a change was written into other zones")
	}
}

// TestForgetting: that a change is older than a year does not suffice to forget what was before it. On the last day of
// 2025 it decides whether Tokyo counted when the zone was changed again: by Kiritimati's time, 2026 had begun.
func TestForgetting(t *testing.T) {
	yearly, now := calendar.Rule{Every: calendar.Year}, instant(t, "2026-12-31T16:00:00Z")
	zones := moved(t, "Pacific/Kiritimati", "2024-06-01T00:00:00Z", "Asia/Tokyo", "2025-06-01T00:00:00Z",
		"Pacific/Midway", "2025-12-31T12:00:00Z")
	more, err := zones.Add(calendar.ZoneChange{Set: now})
	if err != nil {
		t.Fatal(err)
	}
	before, _ := zones.PeriodAt(yearly, calendar.Zone{}, now)
	after, _ := more.PeriodAt(yearly, calendar.Zone{}, now)
	if before != 20270101 || after != before {
		t.Errorf("got %v before the change, %v after it", before, after)
	}
}

// TestPeriodsNeverFall: whatever zones a workspace gets, and when, the periods of rising instants never fall, and last
// until when they were said to; what was forgotten does not matter.
func TestPeriodsNeverFall(t *testing.T) {
	names := append(oddZones, "UTC", "Pacific/Kiritimati", "Pacific/Midway", "Europe/Zurich", "Asia/Tokyo", "America/New_York")
	rapid.Check(t, func(r *rapid.T) {
		zone := func(label string) calendar.Zone { return load(t, rapid.SampledFrom(names).Draw(r, label)) }
		s := sequence{
			rule: drawRule(r), base: zone("base"),
			now: time.Date(1970, 1, 1, rapid.IntRange(0, 60*366*24).Draw(r, "hour"), 0, 0, 0, time.UTC),
		}
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			switch rapid.IntRange(0, 9).Draw(r, "step") {
			case 0, 1:
				s.set(r, zone("zone"))
			case 2:
				s.now = s.now.Add(time.Duration(rapid.IntRange(0, 400*24).Draw(r, "hours")) * time.Hour)
			case 3:
				s.toTheEnd(r)
			default:
				s.now = s.now.Add(time.Duration(rapid.IntRange(0, 30*60*60).Draw(r, "seconds")) * time.Second)
			}
			s.ask(r)
		}
	})
}

// sequence has one rule, in a workspace that changes its zone.
type sequence struct {
	rule calendar.Rule
	base calendar.Zone
	now  time.Time
	// zones is as Add leaves it, all has every change.
	zones, all calendar.Zones
	// period lasts until then, as was said when it was asked for first.
	period calendar.Date
	until  time.Time
}

func (s *sequence) set(t *rapid.T, zone calendar.Zone) {
	c := calendar.ZoneChange{Zone: zone, Set: s.now}
	zones, err := s.zones.Add(c)
	if errors.Is(err, calendar.ErrZoneChange) && len(s.zones) == calendar.MaxZoneChanges {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	s.zones, s.all = zones, append(s.all, c)
	var again calendar.Zones
	for _, c := range zones {
		if again, err = again.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	if len(again) != len(zones) {
		t.Fatalf("got %v when added again, want %v", again, zones)
	}
}

// toTheEnd goes to where the period ends, or just before that.
func (s *sequence) toTheEnd(t *rapid.T) {
	if s.now.Before(s.until) {
		s.now = s.until.Add(time.Duration(rapid.IntRange(-1, 0).Draw(t, "before")))
	}
}

func (s *sequence) ask(t *rapid.T) {
	period, until := s.zones.PeriodAt(s.rule, s.base, s.now)
	if p, u := s.all.PeriodAt(s.rule, s.base, s.now); p != period || !u.Equal(until) {
		t.Fatalf("%v: got %v until %v, want %v until %v of all changes", s.now, period, until, p, u)
	}
	switch known := s.now.Before(s.until); {
	case known && (period != s.period || !until.Equal(s.until)):
		t.Fatalf("%v: got %v until %v, want %v until %v", s.now, period, until, s.period, s.until)
	case !known && period <= s.period:
		t.Fatalf("%v: got %v after %v, which has ended at %v", s.now, period, s.period, s.until)
	case !s.now.Before(until) || s.rule.PeriodOf(period) != period:
		t.Fatalf("%v: got %v until %v", s.now, period, until)
	}
	s.period, s.until = period, until
}

// TestSameInstant: of the changes that are set at one instant the last one counts, as if the others had not been.
func TestSameInstant(t *testing.T) {
	const noon, later = "2026-06-10T12:00:00Z", "2026-06-10T13:00:00Z"
	for _, c := range []struct {
		name      string
		got, want calendar.Zones
	}{
		{"two", moved(t, "Asia/Tokyo", noon, "Europe/Zurich", noon), moved(t, "Europe/Zurich", noon)},
		{"and back", moved(t, "Asia/Tokyo", noon, "Europe/Zurich", later, "Asia/Tokyo", later), moved(t, "Asia/Tokyo", noon)},
		{"the same", moved(t, "Asia/Tokyo", noon, "Asia/Tokyo", noon), moved(t, "Asia/Tokyo", noon)},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, c.got, c.want)
		}
	}
}

// TestMerge: changes that a log has, which Add has taken, change nothing when they are merged again, from any of them on.
// One that is refused changes nothing either.
func TestMerge(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var zones calendar.Zones
		var changes []calendar.ZoneChange
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for range rapid.IntRange(1, 40).Draw(r, "changes") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 1, 24, 300 * 24, 400 * 24}).Draw(r, "hours")) * time.Hour)
			c := calendar.ZoneChange{Zone: load(t, rapid.SampledFrom(oddZones[:4]).Draw(r, "zone")), Set: now}
			more, err := zones.Add(c)
			switch merged := zones.Merge(c); {
			case err == nil && !slices.Equal(merged, more), err != nil && !slices.Equal(merged, zones):
				r.Fatalf("%v and %v, which Add makes %v, %v: got %v", zones, c, more, err, merged)
			case err == nil:
				changes = append(changes, c)
				zones = more
			}
		}
		again := zones
		for _, c := range changes[rapid.IntRange(0, len(changes)-1).Draw(r, "from"):] {
			again = again.Merge(c)
		}
		if !slices.Equal(again, zones) || len(zones) > calendar.MaxZoneChanges {
			r.Fatalf("got %v, want %v", again, zones)
		}
	})
}
