package calendar

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"time"

	// Zones are found on machines without a zone database too. It is imported where zones are loaded,
	// so that no program that needs it can forget it.
	_ "time/tzdata"
)

// Zone is a time zone. The zero zone is UTC. Zones of the same name are equal, if they are known.
type Zone struct {
	loc *time.Location
	// unknown is the name of a zone that is not known here: see ZoneNamed.
	unknown string
}

// zones are those that have been loaded, by name: no more than the zone database has.
var zones = struct {
	sync.RWMutex
	loaded map[string]Zone
	// unknown are names that are none here. Logs have few of them, but may have any.
	unknown map[string]bool
}{loaded: make(map[string]Zone), unknown: make(map[string]bool)}

// maxUnknown is how many names of unknown zones are remembered.
const maxUnknown = 1000

// LoadZone returns the zone of a name of the IANA's database, such as "Europe/Zurich", or "UTC". It
// takes the system's database if there is one, and else the one that is part of the program
// ([time.LoadLocation]). It reads a zone once, so that what a zone says stays the same while the
// program runs. It returns [ErrZone] for what is not there, and for what depends on the machine: no
// name, "Local". It is safe for concurrent use.
func LoadZone(name string) (Zone, error) {
	if name == "UTC" {
		return Zone{}, nil
	}
	if !portable(name) {
		return Zone{}, fmt.Errorf("%w: got %.40q, want a name like Europe/Zurich", ErrZone, name)
	}
	zones.RLock()
	z, ok := zones.loaded[name]
	zones.RUnlock()
	if ok {
		return z, nil
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return Zone{}, fmt.Errorf("%w: got %q: %w", ErrZone, name, err)
	}
	zones.Lock()
	defer zones.Unlock()
	if z, ok := zones.loaded[name]; ok {
		return z, nil
	}
	zones.loaded[name] = Zone{loc: loc}
	return Zone{loc: loc}, nil
}

// ZoneNamed returns the zone of a name that was found before, perhaps by another program: the log has it. If there is
// no such zone here, it has no more than its name: see [Zone.Known]. It looks for a zone once, too; one that was not there
// is known when LoadZone has found it since. It is safe for concurrent use.
func ZoneNamed(name string) Zone {
	zones.RLock()
	z, loaded := zones.loaded[name]
	unknown := zones.unknown[name]
	zones.RUnlock()
	switch {
	case loaded:
		return z
	case unknown:
		return Zone{unknown: name}
	}
	z, err := LoadZone(name)
	if err == nil {
		return z
	}
	zones.Lock()
	defer zones.Unlock()
	if len(zones.unknown) < maxUnknown {
		zones.unknown[name] = true
	}
	return Zone{unknown: name}
}

// Known reports whether the zone is more than a name. The periods of one that is not are unknown, too.
func (z Zone) Known() bool { return z.unknown == "" }

// IsZoneName reports whether a zone can have this name. It does not ask whether there is one.
func IsZoneName(name string) bool { return portable(name) }

// MaxZoneName is how long the name of a zone is at most, in bytes.
const MaxZoneName = 64

// portable reports whether a name can be one of the IANA's database. Those begin with a capital.
// What else is beside them in a system's directory does not: "localtime", "right/UTC" with its
// leap seconds. There is one way to write a path.
func portable(name string) bool {
	other := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("/_+-", r)
	}
	return name != "" && len(name) <= MaxZoneName && name != "Local" && name[0] >= 'A' && name[0] <= 'Z' &&
		!strings.ContainsFunc(name, other) && !strings.Contains(name, "//") && !strings.HasSuffix(name, "/")
}

// String returns the zone's name.
func (z Zone) String() string { return cmp.Or(z.unknown, z.location().String()) }

func (z Zone) location() *time.Location {
	if z.loc == nil {
		return time.UTC
	}
	return z.loc
}

// date returns the local date of an instant, as clocks show it. Years before 1 and after 9999 have
// the first and the last date.
func (z Zone) date(t time.Time) Date {
	t = t.In(z.location())
	switch d := DateOf(t); {
	case d != 0:
		return d
	case t.Year() < 1:
		return minDate
	default:
		return maxDate
	}
}

// begin returns the first instant at which clocks show a date, or a later one if the zone has
// skipped it.
func (z Zone) begin(d Date) time.Time {
	midnight := d.Time()
	// No zone is as far from UTC.
	t := midnight.Add(-26 * time.Hour).In(z.location())
	for {
		_, offset := t.Zone()
		begin := midnight.Add(-time.Duration(offset) * time.Second)
		_, end := t.ZoneBounds()
		if !end.IsZero() && !end.After(t) {
			// On the last day of a leap year, Go has a zone end when the day begins; it lasts until the day ends.
			end = t.Truncate(24 * time.Hour).Add(24 * time.Hour)
		}
		switch {
		case begin.Before(t):
			return t.UTC() // A clock that was set forward has skipped midnight.
		case end.IsZero() || begin.Before(end):
			return begin
		}
		t = end
	}
}
