package metrics_test

import "github.com/asynkron/protoactor-go/actor"

// What actors are told of their lives.
var (
	started   = &actor.Started{}
	suspended = &actor.SuspendMailbox{}
	resumed   = &actor.ResumeMailbox{}
	stopped   = &actor.Stop{}
)
