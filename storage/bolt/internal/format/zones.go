package format

import (
	"encoding/binary"
	"math"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

func appendZones(b []byte, zones calendar.Zones) []byte {
	b = binary.AppendUvarint(b, uint64(len(zones)))
	before := messages.Timestamp(0)
	for i, c := range zones {
		b = appendBytes(b, c.Zone.String())
		set := messages.TimestampOf(c.Set)
		if i == 0 {
			b = binary.AppendVarint(b, int64(set))
		} else {
			b = binary.AppendUvarint(b, uint64(set-before))
		}
		before = set
	}
	return b
}

// readZones reads zones as they are: what adding them one by one would leave out is not there.
func readZones(r *ByteReader) (zones calendar.Zones) {
	set := messages.Timestamp(0)
	n := r.Count(3)
	if n == 0 || n > calendar.MaxZoneChanges {
		r.fail()
	}
	for ; n > 0 && !r.Bad; n-- {
		name := string(r.bytes())
		if len(zones) == 0 {
			set = messages.Timestamp(r.varint())
		} else {
			set += messages.Timestamp(r.Uvarint(math.MaxInt64))
		}
		if !calendar.IsZoneName(name) {
			r.fail()
		}
		more := zones.Merge(calendar.ZoneChange{Zone: calendar.ZoneNamed(name), Set: set.Time()})
		if len(more) != len(zones)+1 {
			r.fail()
		}
		zones = more
	}
	return zones
}
