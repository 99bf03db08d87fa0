package calendar_test

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita/calendar"
)

func TestLoadZone(t *testing.T) {
	zurich := load(t, "Europe/Zurich")
	if zurich.String() != "Europe/Zurich" || zurich != load(t, "Europe/Zurich") {
		t.Errorf("got %v", zurich)
	}
	if utc := load(t, "UTC"); utc != (calendar.Zone{}) || utc.String() != "UTC" {
		t.Errorf("got %v", utc)
	}
	for _, name := range []string{"Etc/GMT+12", "America/Port-au-Prince", "America/Argentina/ComodRivadavia", "EST5EDT", "W-SU"} {
		if z := load(t, name); z.String() != name {
			t.Errorf("got %v", z)
		}
	}
	for _, wrong := range []string{"", "Local", "localtime", "posixrules", "right/UTC", "posix/UTC", "europe/zurich", "Europe/Nowhere", "Europe",
		"Europe//Zurich", "Europe/./Zurich", "Europe/../Europe/Zurich", "/UTC", "Europe/Zurich/", "Europe/Zürich", "+01:00", strings.Repeat("A", 65)} {
		if z, err := calendar.LoadZone(wrong); z != (calendar.Zone{}) || !errors.Is(err, calendar.ErrZone) {
			t.Errorf("%q: got %v, %v, want ErrZone", wrong, z, err)
		}
	}
}

// TestLoadZoneTogether: whoever loads a zone first, it is one zone.
func TestLoadZoneTogether(t *testing.T) {
	var wg sync.WaitGroup
	loaded := make([]calendar.Zone, 8)
	for i := range loaded {
		wg.Go(func() { loaded[i], _ = calendar.LoadZone("Antarctica/Troll") })
	}
	wg.Wait()
	if all := slices.Compact(loaded); len(all) != 1 || all[0] == (calendar.Zone{}) {
		t.Errorf("got %v, want one zone", all)
	}
}

// TestZonesAreEmbedded: a program that imports the package has the zones in it. This program is one.
func TestZonesAreEmbedded(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// Were it one text, the program would have it from here.
	if function := strings.Join([]string{"time/tzdata", "loadFromEmbeddedTZData"}, "."); !bytes.Contains(program, []byte(function)) {
		t.Errorf("%s is not linked", function)
	}
}

// TestPeriodAt has days that clocks make long, short, or begin at an odd time. Each line is an instant, its period,
// and until when it lasts.
func TestPeriodAt(t *testing.T) {
	for _, c := range []struct {
		zone  string
		every calendar.Unit
		at    string
		want  calendar.Date
		until string
	}{
		{"UTC", calendar.Day, "2026-03-29T23:59:59.999999999Z", 20260329, "2026-03-30T00:00:00Z"},
		// 23 and 25 hours.
		{"Europe/Zurich", calendar.Day, "2026-03-28T22:59:59Z", 20260328, "2026-03-28T23:00:00Z"},
		{"Europe/Zurich", calendar.Day, "2026-03-28T23:00:00Z", 20260329, "2026-03-29T22:00:00Z"},
		{"Europe/Zurich", calendar.Day, "2026-10-24T22:00:00Z", 20261025, "2026-10-25T23:00:00Z"},
		{"Europe/Zurich", calendar.Day, "2026-10-25T22:59:59Z", 20261025, "2026-10-25T23:00:00Z"},
		// The last days of a leap year, of which Go's bounds are wrong, and 29 February.
		{"Europe/Zurich", calendar.Day, "2028-12-31T12:00:00Z", 20281231, "2028-12-31T23:00:00Z"},
		{"America/Los_Angeles", calendar.Day, "2040-12-31T12:00:00Z", 20401231, "2041-01-01T08:00:00Z"},
		{"Pacific/Auckland", calendar.Day, "2040-12-31T12:00:00Z", 20410101, "2041-01-01T11:00:00Z"},
		{"Europe/Zurich", calendar.Day, "2024-02-29T12:00:00Z", 20240229, "2024-02-29T23:00:00Z"},
		// There is no midnight: clocks go from 00:00 to 01:00.
		{"Africa/Cairo", calendar.Day, "2026-04-23T21:59:59Z", 20260423, "2026-04-23T22:00:00Z"},
		{"Africa/Cairo", calendar.Day, "2026-04-23T22:00:00Z", 20260424, "2026-04-24T21:00:00Z"},
		{"America/Sao_Paulo", calendar.Day, "2018-11-04T02:59:59Z", 20181103, "2018-11-04T03:00:00Z"},
		{"America/Sao_Paulo", calendar.Day, "2018-11-04T03:00:00Z", 20181104, "2018-11-05T02:00:00Z"},
		// Clocks go from 24:00 back to 23:00, so that no date comes twice.
		{"America/Sao_Paulo", calendar.Day, "2018-02-18T01:59:59Z", 20180217, "2018-02-18T03:00:00Z"},
		{"America/Sao_Paulo", calendar.Day, "2018-02-18T02:00:00Z", 20180217, "2018-02-18T03:00:00Z"},
		// Midnight comes twice: clocks go from 01:00 back to 00:00.
		{"America/Havana", calendar.Day, "2026-11-01T03:59:59Z", 20261031, "2026-11-01T04:00:00Z"},
		{"America/Havana", calendar.Day, "2026-11-01T04:00:00Z", 20261101, "2026-11-02T05:00:00Z"},
		{"America/Havana", calendar.Day, "2026-11-01T05:00:00Z", 20261101, "2026-11-02T05:00:00Z"},
		// The date is set back: clocks go from 00:01 to 23:01 of the day before.
		{"America/St_Johns", calendar.Day, "2010-11-07T02:29:59Z", 20101106, "2010-11-07T02:30:00Z"},
		{"America/St_Johns", calendar.Day, "2010-11-07T02:30:00Z", 20101107, "2010-11-08T03:30:00Z"},
		{"America/St_Johns", calendar.Day, "2010-11-07T02:31:00Z", 20101107, "2010-11-08T03:30:00Z"},
		{"America/St_Johns", calendar.Day, "2010-11-07T03:29:59Z", 20101107, "2010-11-08T03:30:00Z"},
		{"America/St_Johns", calendar.Week, "2010-11-07T02:31:00Z", 20101101, "2010-11-08T03:30:00Z"},
		// The date line moves: there is no 30 December, and 21 August.
		{"Pacific/Apia", calendar.Day, "2011-12-30T09:59:59Z", 20111229, "2011-12-30T10:00:00Z"},
		{"Pacific/Apia", calendar.Day, "2011-12-30T10:00:00Z", 20111231, "2011-12-31T10:00:00Z"},
		{"Pacific/Kwajalein", calendar.Day, "1993-08-21T11:59:59Z", 19930820, "1993-08-21T12:00:00Z"},
		{"Pacific/Kwajalein", calendar.Day, "1993-08-21T12:00:00Z", 19930822, "1993-08-22T12:00:00Z"},
		// 1 January is skipped: the year begins with 2 January, and is named by the first.
		{"Pacific/Kiritimati", calendar.Year, "1994-12-31T10:00:00Z", 19950101, "1995-12-31T10:00:00Z"},
		// Weeks, months and years begin in their zone.
		{"Pacific/Auckland", calendar.Week, "2027-01-03T10:59:59Z", 20261228, "2027-01-03T11:00:00Z"},
		{"Pacific/Auckland", calendar.Week, "2027-01-03T11:00:00Z", 20270104, "2027-01-10T11:00:00Z"},
		{"America/New_York", calendar.Month, "2024-03-01T04:59:59Z", 20240201, "2024-03-01T05:00:00Z"},
		{"America/New_York", calendar.Year, "2027-01-01T04:59:59Z", 20260101, "2027-01-01T05:00:00Z"},
		// Years 1 to 9999.
		{"UTC", calendar.Day, "0000-06-01T00:00:00Z", 10101, "0001-01-02T00:00:00Z"},
		{"UTC", calendar.Year, "9999-12-31T23:59:59Z", 99990101, ""},
		{"Asia/Tokyo", calendar.Day, "9999-12-31T23:59:59Z", 99991231, ""},
		{"UTC", calendar.Never, "2026-03-29T12:00:00Z", 0, ""},
	} {
		got, until := calendar.Zones(nil).PeriodAt(calendar.Rule{Every: c.every}, load(t, c.zone), instant(t, c.at))
		if got != c.want || !until.Equal(instant(t, c.until)) {
			t.Errorf("%s, every %v, at %s: got %v until %v, want %v until %v", c.zone, c.every, c.at, got, until, c.want, c.until)
		}
	}
}

// instant reads an instant, none for an empty text.
func instant(t testing.TB, s string) time.Time {
	t.Helper()
	if s == "" {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestUnknownZone: a zone that is not known here keeps its name, and no more.
func TestUnknownZone(t *testing.T) {
	mars := calendar.ZoneNamed("Mars/Olympus_Mons")
	if mars.Known() || mars.String() != "Mars/Olympus_Mons" || mars != calendar.ZoneNamed("Mars/Olympus_Mons") {
		t.Errorf("got %v, known %v", mars, mars.Known())
	}
	if z := calendar.ZoneNamed("Europe/Zurich"); z != load(t, "Europe/Zurich") || !z.Known() {
		t.Errorf("got %v, known %v", z, z.Known())
	}
	zones := calendar.Zones{{Zone: load(t, "Europe/Zurich")}, {Zone: mars}}
	if z, there := zones.Unknown(); z != mars || !there {
		t.Errorf("got %v, %v", z, there)
	}
	if z, there := zones[:1].Unknown(); there {
		t.Errorf("got %v", z)
	}
	if c, there := zones.Last(); c.Zone != mars || !there {
		t.Errorf("got %v, %v", c, there)
	}
}

// A log has the name of an unknown zone in each event of a workspace: the files of the zone database are looked through
// once. A log that has more names than there can be zones takes no more memory for it.
func TestUnknownZonesAreRemembered(t *testing.T) {
	t.Cleanup(calendar.ForgetUnknown())
	looks := func(name string) bool {
		return testing.AllocsPerRun(1, func() { calendar.ZoneNamed(name) }) > 0
	}
	if looks("Mars/Olympus_Mons") {
		t.Error("looks for an unknown zone again")
	}
	many := func(i int) string { return "Mars/Crater_" + strconv.Itoa(i) }
	for i := range 1000 {
		calendar.ZoneNamed(many(i))
	}
	if z := calendar.ZoneNamed(many(1001)); z.Known() || z.String() != many(1001) || !looks(many(1001)) {
		t.Errorf("got %v, and want no memory of it", z)
	}
}

// A zone that was not there is known when somebody has found it: the zone database may be renewed while a program runs.
func TestUnknownZoneThatComes(t *testing.T) {
	t.Cleanup(calendar.ForgetUnknown())
	const name = "Pacific/Kiritimati"
	calendar.SetUnknown(name)
	if z := calendar.ZoneNamed(name); z.Known() {
		t.Fatalf("got %v, want it unknown", z)
	}
	want := load(t, name)
	if z := calendar.ZoneNamed(name); z != want || !z.Known() {
		t.Errorf("got %v, known: %v", z, z.Known())
	}
}
