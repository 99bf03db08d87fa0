package sequencer

import (
	"fmt"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// zones are the changes of a workspace's time zone. They are a value: nothing changes them. None is nil.
//
// A change that is reserved matters to nobody before it is durable: it counts from the next period on, and the
// registration time does not go on meanwhile. So periods are those of the workspace's own zones, never of reserved ones.
type zones struct {
	changes calendar.Zones
	// last is the change that was made last, which is not among changes if it has changed nothing.
	last calendar.ZoneChange
	// unknown is why nobody can tell periods.
	unknown error
}

func newZones(changes calendar.Zones, last calendar.ZoneChange) *zones {
	z := &zones{changes: changes, last: last}
	if zone, unknown := changes.Unknown(); unknown {
		z.unknown = fmt.Errorf("%w: got %q", messages.ErrUnknownZone, zone)
	}
	return z
}

func (z *zones) merged() calendar.Zones {
	if z == nil {
		return nil
	}
	return z.changes
}

// known returns an error if there is a zone that this machine does not know.
func (z *zones) known() error {
	if z == nil {
		return nil
	}
	return z.unknown
}

// checkZone returns an error for a name that is not a zone's.
func checkZone(name string) error {
	_, err := calendar.LoadZone(name)
	return err
}

// setZone gives the workspace a time zone. It returns ErrZoneChange, and has changed nothing then, if it
// was changed too often. A change that is later than now was made by an owner who has taken the partition over: ErrFenced.
func (r *Reservation) setZone(name string, now messages.Timestamp) error {
	change := messages.ZoneChange(name, now)
	if last, there := r.zones.merged().Last(); there && last.Set.After(change.Set) {
		return fmt.Errorf("%w: workspace %d: got a zone that was set at %v, it is %v", messages.ErrFenced, r.workspace, last.Set, change.Set)
	}
	changes, err := r.zones.merged().Add(change)
	if err != nil {
		return fmt.Errorf("workspace %d: %w", r.workspace, err)
	}
	r.zones = newZones(changes, change)
	return nil
}
