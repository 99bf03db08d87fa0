package format

import (
	"fmt"
)

// Role tells the files apart.
type Role byte

const (
	// RoleLog is the role of log.db.
	RoleLog Role = 'L'
	// RoleState is the role of state.db.
	RoleState Role = 'S'
	// RoleSubscriptions is the role of a file that is made with the first subscription.
	RoleSubscriptions Role = 'U'
	// RoleIDs is the role of a file that is made when the first generator of ids takes its number.
	RoleIDs Role = 'I'
)

func (r Role) String() string {
	switch r {
	case RoleLog:
		return "log"
	case RoleState:
		return "state"
	case RoleSubscriptions:
		return "subscriptions"
	case RoleIDs:
		return "ids"
	}
	return fmt.Sprintf("role %d", byte(r))
}

// Format returns the current format of the role's files.
func (r Role) format() uint16 {
	switch r {
	case RoleSubscriptions:
		return SubscriptionsFormat
	case RoleIDs:
		return IDsFormat
	case RoleState:
		return StateFormat
	case RoleLog:
	}
	return Version
}

// FileName returns the name of the role's file in a store's directory.
func (r Role) FileName() string {
	switch r {
	case RoleState:
	case RoleLog:
		return LogFileName
	case RoleSubscriptions:
		return SubscriptionsFileName
	case RoleIDs:
		return IDsFileName
	}
	return StateFileName
}

// Buckets returns the buckets that the role's file must have.
func (r Role) Buckets() [][]byte {
	switch r {
	case RoleState:
	case RoleLog:
		return logBuckets
	case RoleSubscriptions:
		return subscriptionsBuckets
	case RoleIDs:
		return idsBuckets
	}
	return stateBuckets
}

// HeaderKeys are those that a file's header bucket can have.
func (r Role) HeaderKeys() [][]byte {
	switch r {
	case RoleState:
	case RoleLog:
		return [][]byte{KeyHeader, KeyIDs, KeyKept, KeyReplica, KeyWAL}
	case RoleSubscriptions:
		return [][]byte{KeyHeader, KeyReplica, KeySubscriptions}
	case RoleIDs:
		return [][]byte{KeyHeader, KeyLaunches}
	}
	return [][]byte{KeyHeader, KeyDedup, KeyProjected, KeyWitness}
}

// MetaAdvice says what to do about a damaged meta page.
func (r Role) MetaAdvice() string {
	switch r {
	case RoleState:
	case RoleLog:
		return "the last commit may be lost with it: restore the file from a copy, or repair it as docs/operating.md says"
	case RoleSubscriptions:
		return "restore the file from a copy; without it the subscriptions are forgotten"
	case RoleIDs:
		return "move the file away, and deploy with a launch number that was never used; of a node of a cluster, let a new node take its place"
	}
	return "delete the file, unless partita verify says that the log is too short: the next open rebuilds it from the log"
}
