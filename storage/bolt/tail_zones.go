package bolt

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// zoneRef is an event of the tail that gives its workspace a time zone.
type zoneRef struct {
	offset messages.PLogOffset
	zone   string
}

const zoneBytes = int64(unsafe.Sizeof(zoneRef{})) + calendar.MaxZoneName

// zoneSize is what an event's zone takes in the tail.
func zoneSize(zone string) (n tailSize) {
	if zone != "" {
		n.bytes = zoneBytes
	}
	return n
}

// pushZone notes the zone of the event that was pushed last, if it has one, and returns what that takes.
func (t *tail) pushZone(zone string) tailSize {
	size := zoneSize(zone)
	if zone != "" {
		t.zones = append(t.zones, zoneRef{offset: t.end() - 1, zone: zone})
		t.size.add(size)
	}
	return size
}

// zonesFrom returns where the first event from an offset on is among those with a zone.
func zonesFrom(zones []zoneRef, o messages.PLogOffset) (i int, found bool) {
	return slices.BinarySearchFunc(zones, o, func(z zoneRef, o messages.PLogOffset) int { return cmp.Compare(z.offset, o) })
}

// zoneOf returns the zone that the event at an offset sets, "" if none.
func zoneOf(zones []zoneRef, o messages.PLogOffset) string {
	if i, found := zonesFrom(zones, o); found {
		return zones[i].zone
	}
	return ""
}

func (t *tail) zoneOf(o messages.PLogOffset) string { return zoneOf(t.zones, o) }

// dropZones forgets the zones of the entries before an offset.
func (t *tail) dropZones(to messages.PLogOffset) {
	n, _ := zonesFrom(t.zones, to)
	t.size.bytes -= int64(n) * zoneBytes
	t.zones = slices.Delete(t.zones, 0, n)
}

// mergeZone merges the zone that an event sets, if it does, into those of its workspace.
func (f *flushEvent) mergeZone(zones calendar.Zones) calendar.Zones {
	return messages.MergeZone(zones, zoneOf(f.r.zones, f.o), f.e.at)
}
