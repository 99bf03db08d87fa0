package messages

import "github.com/partita-go/partita/calendar"

// ZoneChange is what an event says that gives its workspace a time zone.
func ZoneChange(zone string, registeredAt Timestamp) calendar.ZoneChange {
	return calendar.ZoneChange{Zone: calendar.ZoneNamed(zone), Set: registeredAt.Time()}
}

// MergeZone returns a workspace's zones with that of an event, which is empty if it sets none. Events may be
// merged again, in their order: see [calendar.Zones.Merge].
func MergeZone(zones calendar.Zones, zone string, registeredAt Timestamp) calendar.Zones {
	if zone == "" {
		return zones
	}
	return zones.Merge(ZoneChange(zone, registeredAt))
}
