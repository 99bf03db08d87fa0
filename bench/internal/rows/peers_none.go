//go:build nopeers

package rows

import (
	"time"

	"github.com/partita-go/partita/bench/internal/measure"
)

// With the tag nopeers the program needs no driver and no server. It is for checks of
// the rest, which are done in a fraction of the time.
var (
	newPostgresCounter = newAbsent("peers (tag nopeers)")
	newPostgresTrigger = newPostgresCounter
	newNATS            = newPostgresCounter
	newPostgresReset   = newPostgresCounter
	newPostgresDayRow  = newPostgresCounter

	newIdentityReading readingRow = func(_ time.Duration, s measure.Settings) measure.Row { return newPostgresCounter(s) }
	newTriggerReading             = newIdentityReading
	newSnapshotReading            = newIdentityReading
)
