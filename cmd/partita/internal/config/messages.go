package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// messageNames are those of all messages that a dump of a server can have: partita's, and those of the actor system.
var messageNames = strings.Fields(`
	Actualize Actualizing Append Appended AwaitLog BatchHandled Cancel Cancelled Command CommandDone Credit EndReplay EventsLoaded
	EventsRead EventsWritten FindEvent Flush Flushed Found Given HandleBatch Held HoldLane LaneStopped LoadEvents LoadNumbers
	LoadPosition Loaded LogGrown Next OwnerStopped PositionLoaded PositionStored Raise Raised ReadLog Reconfigure Reconfigured
	Refused ReleaseLane ReloadLane Replay ReplayFailed Replayed RetryFired Start Started StatusReport Stop StopLane Stopped
	StorePosition SubscribeToStatuses Taken TimerFired Tried TryEvent UnsubscribeFromStatuses WriteEvents WriteProjections Written
	Failure PoisonPill Restart Restarting ResumeMailbox Stopping SuspendMailbox Terminated Unwatch Watch
`)

// checkMessages returns an error for each name of a list that is none of a message.
func (l *Loaded) checkMessages() (errs []error) {
	for _, s := range l.Config.settings() {
		g, ok := l.given[s.key]
		if names, isList := reflect.TypeAssert[[]string](s.value); ok && isList && strings.HasSuffix(s.key, "messages") {
			for _, name := range names {
				if !slices.Contains(messageNames, name) {
					errs = append(errs, fmt.Errorf("%s: got %.80q, want the name of a message: the nearest is %s", g.place, name, nearest(name)))
				}
			}
		}
	}
	return errs
}

// nearest returns the message whose name is the most like another one.
func nearest(name string) string {
	name = strings.ToLower(name[:min(len(name), 80)])
	return slices.MinFunc(messageNames, func(a, b string) int {
		return distance(name, strings.ToLower(a)) - distance(name, strings.ToLower(b))
	})
}

// distance is how many letters must be put in, taken out or changed to make one text of another (Levenshtein's).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
