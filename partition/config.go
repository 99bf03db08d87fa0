package partition

import (
	"cmp"
	"fmt"
	"runtime"
	"time"

	"go.uber.org/zap"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
)

// Options are what all applications of an AppParts share. The zero value is fine.
type Options struct {
	// Logger gets the partitions' changes of state, restarts and unknown messages,
	// never a line per event, also on goroutines that wait for a partition: it must not
	// block. Its name gets the application's and that of the group of actors behind it, as "shops.partition". Package
	// logs makes one of a log/slog handler, and one with levels and limits for each group. Default: none.
	Logger *zap.Logger
	// Clock is where the time comes from. It must not block. One whose time passes faster than
	// the machine's needs a larger setting ClockJump, else it is refused with ErrClock of
	// package messages. Default: the system's.
	Clock Clock
	// Observer is called when a message is posted, taken and handled. Default: none.
	Observer Observer
	// Traces gives a trace id to each append, transaction and command whose context brings none along: see
	// [ids.ContextWithTrace]. The id stands in the events, 11 bytes each, and handlers' contexts carry it. Default: none;
	// ids that contexts bring along are kept all the same. [AppParts.SetTraces] changes it later. A generator gives no id
	// in the second in which it was made: requests wait for its end.
	Traces *ids.TraceGenerator
	// Tracer joins these traces with those of the program, see package spans, which is one. It is asked only if Traces is set.
	// Default: none.
	Tracer Tracer
	// RestartDelay bounds the growing delay before an actor that panicked is
	// restarted. It begins at 1 ms. Default 1 s.
	RestartDelay time.Duration
	// Restarts say what becomes of actors that panic, by their group: "partition", "command-processor" or "lane". Of a
	// group that is not there all actors are restarted after delays that grow up to RestartDelay.
	Restarts map[string]RestartPolicy
	// AlarmAfter is how long something may take until the status of its actor is alarming: until a leaf of a partition
	// answers, a partition is no longer busy since too much is unflushed, a command has ended, a lane of a subscription
	// has read or written. It is noticed within one and a half times as long. Default 5 s.
	AlarmAfter time.Duration
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.Clock == nil {
		o.Clock = actors.SystemClock()
	}
	if o.RestartDelay <= 0 {
		o.RestartDelay = time.Second
	}
	if o.AlarmAfter <= 0 {
		o.AlarmAfter = 5 * time.Second
	}
	return o
}

// Application is what is deployed: its descriptor, which the store must have been
// opened with, and its settings.
type Application struct {
	messages.Descriptor

	// Settings can be changed while it runs, see [App.Reconfigure].
	Settings Settings

	// WorkspaceZero lets workspace 0 begin. Default: it is refused with ErrWorkspaceZero of package messages, since most
	// often an id was forgotten. A workspace 0 that has events goes on either way.
	WorkspaceZero bool

	// CacheNumbers is how many numbers are cached, in all partitions together. At
	// least one workspace per partition is always cached. Default 100,000.
	CacheNumbers int
	// RequestLane is how many requests, Starts and Appends, may wait at one partition for their turn, and how many
	// commands at one command processor. Default 1,024.
	RequestLane int
	// RequestLaneBytes is how much memory those at one partition, or at one command processor, may take,
	// in bytes, as estimated; the last one may exceed it, and a Start takes nothing. At either bound the answer is Busy, or the caller
	// waits, as it has chosen. Default 16 MiB.
	RequestLaneBytes int
	// Actualizations is how many partitions replay the tail of their log at the same time.
	// Default: twice the number of processors.
	Actualizations int
}

// WithDefaults returns a copy in which every zero setting has its default.
func (a Application) WithDefaults() Application {
	a.Descriptor = a.Normalized()
	a.Settings = a.Settings.WithDefaults()
	a.CacheNumbers = cmp.Or(a.CacheNumbers, 100_000)
	a.RequestLane = cmp.Or(a.RequestLane, 1024)
	a.RequestLaneBytes = cmp.Or(a.RequestLaneBytes, 16<<20)
	a.Actualizations = cmp.Or(a.Actualizations, 2*runtime.GOMAXPROCS(0))
	return a
}

// Validate returns an error that names the first wrong field: ErrDescriptor or
// ErrSettings of package messages. It expects defaults to be filled in.
func (a Application) Validate() error {
	if err := a.Descriptor.Validate(); err != nil {
		return err
	}
	for _, n := range []struct {
		name string
		got  int
	}{
		{"CacheNumbers", a.CacheNumbers},
		{"RequestLane", a.RequestLane},
		{"RequestLaneBytes", a.RequestLaneBytes},
		{"Actualizations", a.Actualizations},
	} {
		if n.got < 1 {
			return fmt.Errorf("%w: %s: got %d, want at least 1", messages.ErrSettings, n.name, n.got)
		}
	}
	return a.Settings.Validate()
}
