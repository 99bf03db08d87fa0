// Package measure runs a row: it sets it up, loads it, looks at what it takes and
// checks what it has stored.
package measure

import (
	"context"
	"errors"

	"github.com/partita-go/partita/bench/internal/audit"
	"github.com/partita-go/partita/bench/internal/report"
	"github.com/partita-go/partita/bench/internal/usage"
)

// Row is a store, and the calls that append to it.
type Row interface {
	// Setup makes an empty store in a directory, and starts what serves it. An error
	// that is ErrUnavailable says that what serves it is not installed.
	Setup(ctx context.Context, dir string) error
	// Do appends one event, and returns when it is durable. Callers count from 0; each
	// makes one call at a time. Do notes the number that the event was given, and
	// fails if that was given before.
	Do(ctx context.Context, caller int) error
	// Check compares what is stored with what was acknowledged; failed calls may or may
	// not have stored their events. It returns in words what it compared.
	Check(ctx context.Context, failed uint64) (string, error)
	// Sizes are those of the store's files.
	Sizes() ([]usage.Size, error)
	// Note says what is measured: versions and the settings that matter. It is asked
	// for after Setup.
	Note() string
	// Close stops what Setup started. It may be called after a Setup that failed.
	Close(ctx context.Context) error
}

// Server is a row whose store is in another process.
type Server interface {
	PID() int
}

// Background is a row whose store works off in rounds, besides the calls, what it has
// acknowledged. It is in this process.
type Background interface {
	// Rounds counts the rounds that have ended since Setup.
	Rounds() uint64
}

// Followed is a row whose events are read while they are appended. The event of each
// call of Do says in its body which caller made it, and as which one of its calls.
type Followed interface {
	// Follow reads all events from the first one on, as somebody does who remembers the
	// position of the last one that he has seen, and calls see with each. It ends with
	// see's error, with ctx, or when it has come to the end of what is stored after
	// writing has ended. Readers count from 0.
	Follow(ctx, writing context.Context, reader int, see func(audit.Event) error) error
}

// Numbered is a row whose numbers begin anew each day. Its days are short, so that there are many midnights.
type Numbered interface {
	// Numbering counts what is wrong with the numbers that are stored. It is asked for after Check.
	Numbering(ctx context.Context) (report.Numbering, error)
}

// Settler is a row that puts off writing. Settle writes it, so that it counts as
// written, and the time that it takes is told.
type Settler interface {
	Settle(ctx context.Context) error
}

// ErrUnavailable says that something is not installed.
var ErrUnavailable = errors.New("not available")

// Settings are what a row is made with.
type Settings struct {
	Callers    int
	Readers    int
	Workspaces int
	// Memory is bolt.Options.Memory.
	Memory int64
}

// Spec is a row before it is made.
type Spec struct {
	// Name tells the row from all others, like "limit/callers=8".
	Name    string
	Callers int
	// Readers is how many read a row that is Followed.
	Readers int
	New     func(Settings) Row
}
