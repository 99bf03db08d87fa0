package rows

import (
	"time"

	"github.com/partita-go/partita/bench/internal/measure"
)

const (
	// followers is how many readers each row has that is read.
	followers = 16
	// heldPartitions are enough for transactions that hold their partition to find it held
	// by another one now and then only.
	heldPartitions = 1000
)

// readingRow makes a row whose transactions pause for so long at most.
type readingRow func(longest time.Duration, s measure.Settings) measure.Row

// ReadingGroups returns the rows that are read while they are appended to, in groups like
// Groups: with pauses, and without.
func ReadingGroups() [][]measure.Spec {
	pausing := readingRows("read/pauses/", longestPause)
	pausing = append(pausing, readingSpec("read/pauses/partita-held", longestPause, newHeldReading))
	return [][]measure.Spec{pausing, readingRows("read/", 0)}
}

func readingRows(prefix string, longest time.Duration) []measure.Spec {
	return []measure.Spec{
		readingSpec(prefix+"postgres-identity", longest, newIdentityReading),
		readingSpec(prefix+"postgres-trigger", longest, newTriggerReading),
		readingSpec(prefix+"postgres-snapshot", longest, newSnapshotReading),
		readingSpec(prefix+"partita", longest, newUsualReading),
	}
}

func readingSpec(name string, longest time.Duration, row readingRow) measure.Spec {
	return measure.Spec{
		Name: name, Callers: peerCallers, Readers: followers,
		New: func(s measure.Settings) measure.Row { return row(longest, s) },
	}
}

func newUsualReading(longest time.Duration, s measure.Settings) measure.Row {
	return newPartitaReading(shape{partitions: usualPartitions}, longest, s)
}

func newHeldReading(longest time.Duration, s measure.Settings) measure.Row {
	return partitaHeld{newPartitaReading(shape{partitions: heldPartitions}, longest, s)}
}
