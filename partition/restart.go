package partition

import (
	"maps"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/ids"
)

// The groups of actors that are restarted by themselves; leaves are with their parents.
const (
	partitionGroup = "partition"
	processorGroup = "command-processor"
	laneGroup      = "lane"
)

// What becomes of actors that panic.
const (
	// RestartOnFailure restarts them after delays that grow with the failures in a row.
	RestartOnFailure = actors.RestartOnFailure
	// RestartAlways restarts them after the least delay each time, however often they fail.
	RestartAlways = actors.RestartAlways
	// RestartNever ends them. A partition that has ended so answers ErrPartitionFailed of package messages, all other actors
	// ErrStopped, until the application is deployed again.
	RestartNever = actors.RestartNever
)

// RestartPolicy says what becomes of the actors of a group that panic. The zero value is what all groups have by default.
type RestartPolicy struct {
	// Mode defaults to RestartOnFailure.
	Mode RestartMode
	// MinDelay is the least delay before a restart. Default 1 ms.
	MinDelay time.Duration
	// MaxDelay is the largest one, in mode RestartOnFailure; less than MinDelay means MinDelay. Default: [Options].RestartDelay.
	MaxDelay time.Duration
	// MostFailures is how often in a row an actor may fail in mode RestartOnFailure: with the next failure it ends, as in
	// mode RestartNever. Failures are forgotten a minute after the last restart. Zero means that it is always restarted.
	MostFailures int
}

// policyOf returns the policy of a group of actors.
func (o *Options) policyOf(group string) actors.RestartPolicy {
	p := o.Restarts[group]
	if p.MinDelay <= 0 {
		p.MinDelay = time.Millisecond
	}
	if p.MaxDelay <= 0 {
		p.MaxDelay = o.RestartDelay
	}
	return actors.RestartPolicy{Mode: p.Mode, MinDelay: p.MinDelay, MaxDelay: p.MaxDelay, MostFailures: p.MostFailures}
}

func (a *AppParts) newGuardian(group string) actor.SupervisorStrategy {
	p := a.options.policyOf(group)
	p.Clock, p.OnRestart, p.OnEnd = a.options.Clock, a.restarting, a.givenUp
	return actors.NewGuardian(p, interrupted)
}

func (a *AppParts) guardianOf(group string) actor.SupervisorStrategy {
	if g, ok := a.guardians[group]; ok {
		return g
	}
	return a.guardians[""]
}

func (a *AppParts) restarting(child *actor.PID, reason any, trace ids.TraceID, failures int, delay time.Duration) {
	a.options.Logger.Named("supervisor").Error("actor panicked and is restarted", zap.String("actor", child.Id),
		zap.Any("reason", reason), actors.TraceField(trace), zap.Int("failures", failures), zap.Duration("delay", delay))
	a.interrupted(child, actors.Failure{Reason: reason, Failures: failures, Delay: delay})
}

func (a *AppParts) givenUp(child *actor.PID, reason any, trace ids.TraceID, failures int) {
	a.options.Logger.Named("supervisor").Error("actor panicked and is not restarted", zap.String("actor", child.Id),
		zap.Any("reason", reason), actors.TraceField(trace), zap.Int("failures", failures))
	a.interrupted(child, actors.Failure{Reason: reason, Failures: failures, GivenUp: true})
}

// interrupted lets an actor of a deployed application say that it has failed.
func (a *AppParts) interrupted(pid *actor.PID, f actors.Failure) {
	a.mu.Lock()
	apps := slices.Collect(maps.Values(a.apps))
	a.mu.Unlock()
	for _, app := range apps {
		for _, s := range app.allShown() {
			if s.PID().Equal(pid) {
				s.Interrupted(f)
				return
			}
		}
	}
}
