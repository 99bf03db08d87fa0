package format

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/partita-go/partita/calendar"
)

// A head that is of the version with zones has some, and they are as they are left when they are added one by one.
func TestHeadZones(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var many calendar.Zones
	for i := range calendar.MaxZoneChanges {
		zone := []calendar.Zone{{}, calendar.ZoneNamed("Europe/Zurich")}[i%2]
		many = append(many, calendar.ZoneChange{Zone: zone, Set: start.AddDate(0, 0, i)})
	}
	utc := []byte{3, 'U', 'T', 'C'}
	zones := func(parts ...any) (b []byte) {
		b = []byte{headZones, 0, 0, 0, 0}
		for _, part := range parts {
			switch p := part.(type) {
			case int:
				b = append(b, byte(p))
			case []byte:
				b = append(b, p...)
			}
		}
		return b
	}
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"one":                      {zones(1, utc, 2), nil},
		"as many as there can be":  {append([]byte{headZones, 0, 0, 0, 0}, appendZones(nil, many)...), nil},
		"one more than that":       {append([]byte{headZones, 0, 0, 0, 0}, appendZones(nil, append(many, calendar.ZoneChange{Set: start.AddDate(0, 1, 0), Zone: many[1].Zone}))...), ErrLayout},
		"none":                     {zones(0), ErrLayout},
		"more than there are":      {zones(2, utc, 2), ErrLayout},
		"behind an older version":  {append([]byte{headVersion, 0, 0, 0, 0}, zones(1, utc, 2)[5:]...), ErrLayout},
		"no name":                  {zones(1, 0, 2), ErrLayout},
		"a bad name":               {zones(1, 3, []byte("/TC"), 2), ErrLayout},
		"the same zone again":      {zones(2, utc, 2, utc, 2), ErrLayout},
		"two at one time":          {zones(2, utc, 2, 3, []byte("GMT"), 0), ErrLayout},
		"one after the other":      {zones(2, utc, 2, 3, []byte("GMT"), 1), nil},
		"something behind them":    {zones(1, utc, 2, 0), ErrLayout},
		"more than anybody counts": {zones(1, []byte{0xff, 0xff, 0xff, 0xff, 0x07}, utc), ErrLayout},
	} {
		var h Head
		key := []byte("key")
		if err := h.Decode(key, Seal(c.data, 0, BucketWorkspaces, key)); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, %v, want %v", name, h.Zones, err, c.want)
		}
	}
	var h Head
	h.Zones = many
	if err := h.Decode(nil, (&Head{Last: math.MaxUint64}).Encode(nil, nil)); err != nil || h.Zones != nil {
		t.Errorf("a head that is read again: got %v, %v", h.Zones, err)
	}
}
