package messages

// ActorState is the life-cycle state of any actor. They all have those of partitions.
type ActorState = PartitionState

// ActorStatus says what an actor does, as of its last change.
type ActorStatus struct {
	// Group and ID name the actor, as "partition" and "7".
	Group, ID string
	State     ActorState
	// Details say in words what the state is about, "" if there is nothing to say.
	Details string
	// Restarts counts how often the actor was restarted after a panic.
	Restarts uint64
	// Restart says in words what becomes of the actor when it panics.
	Restart string
	// Err is the last error, nil if there is none.
	Err error
	// Partition says more about a partition. It is nil for all other actors.
	Partition *PartitionStatus
}

// StatusMessage is what the actor takes that tells others the statuses of an application's actors.
//
//sumtype:decl
type StatusMessage interface{ statusMessage() }

// SubscribeToStatuses asks for the statuses of all actors. The sender gets a [StatusReport] with all of them, and others
// with those that have changed. They end when it stops, when it sends [UnsubscribeFromStatuses], or when the application
// is undeployed: then the last report says so. Whoever has subscribed already gets all of them once more.
type SubscribeToStatuses struct{}

// UnsubscribeFromStatuses ends the reports. One that is under way may still come.
type UnsubscribeFromStatuses struct{}

func (*SubscribeToStatuses) statusMessage()     {}
func (*UnsubscribeFromStatuses) statusMessage() {}

// StatusReport has the statuses that have changed since the last one, each as it is now: what was in between is left
// out.
type StatusReport struct {
	Statuses []ActorStatus
	// Last says that the application was undeployed, and no report follows.
	Last bool
}
