//go:build nopeers

package rows

// With the tag nopeers the program needs no driver and no server. It is for checks of
// the rest, which are done in a fraction of the time.
var (
	newPostgresCounter = newAbsent("peers (tag nopeers)")
	newPostgresTrigger = newPostgresCounter
	newNATS            = newPostgresCounter
)
