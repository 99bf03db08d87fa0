package messages

import (
	"cmp"
	"fmt"
	"time"
)

// Settings are a partition's settings that can be changed while it runs. The
// zero value of each field means its default.
type Settings struct {
	// FlushThreshold is the number of changed keys (a sequence of a workspace)
	// at which a flush starts. Default 500.
	FlushThreshold int
	// FlushInterval is how long anything may wait for a flush below the threshold.
	// Under load a store may let a flush wait for up to a second more, so that it
	// writes more at once. Default 500 ms.
	FlushInterval time.Duration
	// BusyLimit is the number of changed keys that are not flushed yet at which
	// Start and Append are answered Busy. At least FlushThreshold. Default 50,000, or
	// FlushThreshold if that is larger.
	BusyLimit int
	// BusyEvents is the number of events that are not flushed yet at which Start and
	// Append are answered Busy; a flush starts at half of it, whatever the keys. It should not
	// exceed the store's own limit. Default 65,536.
	BusyEvents int
	// InFlightEvents and InFlightBytes bound the events that the partition was asked
	// to append and that are not durable yet, those under way and those that are
	// next. Above them requests stay in the lane, which has bounds of its own. One append may exceed the bytes,
	// if it is alone. Defaults 1,024 and 4 MiB.
	InFlightEvents int
	InFlightBytes  int
	// GroupBytes bounds what one append takes, however many events it has, in bytes: its
	// bodies, the data of its records, and some 256 bytes for each event, 64 for each record
	// and 16 for each [Wanted]. A larger one is refused with [ErrTooLarge]. It may exceed
	// InFlightBytes, and a store may bound one event below it. Default 16 MiB.
	GroupBytes int
	// BatchEvents is how many events are written together at the most. Default
	// InFlightEvents.
	BatchEvents int
	// RetryDelay is the largest delay between two tries of a flush or an
	// actualization that fails; it begins at a hundredth of it and doubles, with
	// jitter. Default 500 ms.
	RetryDelay time.Duration
	// TransactionLimit is how long an interactive transaction may stay open. When
	// it has passed, the partition takes a new epoch, and whatever the owner still
	// writes is refused. Default 5 s.
	TransactionLimit time.Duration
	// StopLimit is how long a stop may wait for the open transaction, a replay and the
	// last flush. Default 30 s.
	StopLimit time.Duration
	// CatchUpCheckpoint is how often a checkpoint is written while a long tail is
	// replayed. Default 1 s.
	CatchUpCheckpoint time.Duration
	// ClockJump is how much further ahead the clock may be of what it said last than time
	// has passed on the machine. What would get a time of registration is refused with
	// ErrClock while it is further ahead. Default 24 h.
	ClockJump time.Duration
}

// WithDefaults returns a copy in which every zero field has its default.
func (s Settings) WithDefaults() Settings {
	s.FlushThreshold = cmp.Or(s.FlushThreshold, 500)
	s.FlushInterval = cmp.Or(s.FlushInterval, 500*time.Millisecond)
	s.BusyLimit = cmp.Or(s.BusyLimit, max(50_000, s.FlushThreshold))
	s.BusyEvents = cmp.Or(s.BusyEvents, 65_536)
	s.InFlightEvents = cmp.Or(s.InFlightEvents, 1024)
	s.InFlightBytes = cmp.Or(s.InFlightBytes, 4<<20)
	s.GroupBytes = cmp.Or(s.GroupBytes, 16<<20)
	s.BatchEvents = cmp.Or(s.BatchEvents, s.InFlightEvents)
	s.RetryDelay = cmp.Or(s.RetryDelay, 500*time.Millisecond)
	s.TransactionLimit = cmp.Or(s.TransactionLimit, 5*time.Second)
	s.StopLimit = cmp.Or(s.StopLimit, 30*time.Second)
	s.CatchUpCheckpoint = cmp.Or(s.CatchUpCheckpoint, time.Second)
	s.ClockJump = cmp.Or(s.ClockJump, 24*time.Hour)
	return s
}

// Validate returns an [ErrSettings] that names the first wrong setting, or nil.
// It expects defaults to be filled in.
func (s Settings) Validate() error {
	for _, n := range []struct {
		name       string
		got, least int
	}{
		{"FlushThreshold", s.FlushThreshold, 1},
		{"BusyLimit", s.BusyLimit, s.FlushThreshold},
		{"BusyEvents", s.BusyEvents, 1},
		{"InFlightEvents", s.InFlightEvents, 1},
		{"InFlightBytes", s.InFlightBytes, 1},
		{"GroupBytes", s.GroupBytes, 1},
		{"BatchEvents", s.BatchEvents, 1},
	} {
		if n.got < n.least {
			return fmt.Errorf("%w: %s: got %d, want at least %d", ErrSettings, n.name, n.got, n.least)
		}
	}
	for _, d := range []struct {
		name string
		got  time.Duration
	}{
		{"FlushInterval", s.FlushInterval},
		{"RetryDelay", s.RetryDelay},
		{"TransactionLimit", s.TransactionLimit},
		{"StopLimit", s.StopLimit},
		{"CatchUpCheckpoint", s.CatchUpCheckpoint},
		{"ClockJump", s.ClockJump},
	} {
		if d.got < time.Millisecond {
			return fmt.Errorf("%w: %s: got %v, want at least 1ms", ErrSettings, d.name, d.got)
		}
	}
	return nil
}
