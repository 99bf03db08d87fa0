package base

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/internal/backoff"
)

// RestartMode says whether actors that fail are restarted.
type RestartMode uint8

const (
	// RestartOnFailure: after delays that grow with the failures in a row.
	RestartOnFailure RestartMode = iota
	// RestartAlways: after the least delay each time, however often they fail.
	RestartAlways
	// RestartNever: they end.
	RestartNever
)

func (m RestartMode) String() string {
	names := [...]string{"on-failure", "always", "never"}
	if int(m) < len(names) {
		return names[m]
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

// RestartPolicy says how a guardian restarts actors that fail. Delays grow by
// doubling and never leave the range from MinDelay to MaxDelay.
type RestartPolicy struct {
	// Mode defaults to RestartOnFailure.
	Mode RestartMode
	// MostFailures is how often in a row an actor may fail in mode RestartOnFailure: with the next failure it ends. Zero
	// means that it is always restarted.
	MostFailures int
	// MinDelay is the least delay before a restart. Zero means 10 ms.
	MinDelay time.Duration
	// MaxDelay is the largest. Zero means 5 s; less than MinDelay means MinDelay.
	MaxDelay time.Duration
	// QuietAfter is how long after its restart an actor must not have failed for
	// its failures to be forgotten. Zero means a minute.
	QuietAfter time.Duration
	// Clock defaults to SystemClock.
	Clock Clock
	// Jitter returns a number from 0 up to but not including 1, which chooses the
	// delay between the half and the whole of what it has grown to. Nil means a
	// random one. It must be safe for concurrent use.
	Jitter func() float64
	// OnRestart is told about each failure and the delay before the restart, which
	// is already on its way; failures counts those in a row, from 1. Trace is that of the
	// message in the actor's hands, zero for none. It runs on the
	// goroutine of the actor that failed. It may be nil.
	OnRestart func(child *actor.PID, reason any, trace ids.TraceID, failures int, delay time.Duration)
	// OnEnd is told, as OnRestart is, about a failure after which the actor ends. It may be nil.
	OnEnd func(child *actor.PID, reason any, trace ids.TraceID, failures int)
}

// String says it in words.
func (p RestartPolicy) String() string {
	p = p.withDefaults()
	switch p.Mode {
	case RestartAlways:
		return fmt.Sprintf("%v, after %v", p.Mode, p.MinDelay)
	case RestartOnFailure:
		most := ""
		if p.MostFailures > 0 {
			most = fmt.Sprintf(", %d times in a row at the most", p.MostFailures)
		}
		return fmt.Sprintf("%v, after %v to %v%s", p.Mode, p.MinDelay, p.MaxDelay, most)
	case RestartNever:
	}
	return p.Mode.String()
}

func (p RestartPolicy) withDefaults() RestartPolicy {
	if p.MinDelay <= 0 {
		p.MinDelay = 10 * time.Millisecond
	}
	if p.MaxDelay <= 0 {
		p.MaxDelay = 5 * time.Second
	}
	p.MaxDelay = max(p.MaxDelay, p.MinDelay)
	if p.QuietAfter <= 0 {
		p.QuietAfter = time.Minute
	}
	if p.Clock == nil {
		p.Clock = SystemClock()
	}
	if p.Jitter == nil {
		p.Jitter = rand.Float64
	}
	return p
}

// guardian is the supervisor of actors which have no parent. It is called on the
// goroutines of the actors that fail.
type guardian struct {
	policy      RestartPolicy
	interrupted func(message any) (reply any, ok bool)

	mu sync.Mutex
	// records holds the actors that failed not long ago, by the id of their PID.
	records map[string]failureRecord
}

// failureRecord is what a guardian remembers of an actor.
type failureRecord struct {
	failures  int
	restartAt time.Time
}

// NewGuardian returns the strategy for actors that are spawned from the root, with
// actor.WithGuardian. An actor that panics is restarted after a delay. If the
// message in its hands has a sender, interrupted is asked for the answer to it,
// which is sent unless ok is false; interrupted may be nil. Nothing is escalated,
// because a guardian that escalates ends the process.
//
// What else the actor held, it must answer itself, in its Restarting handler.
func NewGuardian(policy RestartPolicy, interrupted func(message any) (reply any, ok bool)) actor.SupervisorStrategy {
	return &guardian{policy: policy.withDefaults(), interrupted: interrupted, records: make(map[string]failureRecord)}
}

// HandleFailure implements [actor.SupervisorStrategy].
func (g *guardian) HandleFailure(system *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID,
	_ *actor.RestartStatistics, reason, message any,
) {
	failures, delay := g.count(child)
	end := g.policy.ends(failures)
	// First of all: the actor comes back, or ends, whatever the functions below do. If it is
	// stopped before, its mailbox drops the Restart.
	if end {
		supervisor.StopChildren(child)
	} else {
		g.policy.Clock.AfterFunc(delay, func() { supervisor.RestartChildren(child) })
	}
	guarded(system, func() { g.answer(system, message) })
	guarded(system, func() {
		g.tell(end, child, reason, TraceOf(actor.UnwrapEnvelopeMessage(message)), failures, delay)
	})
}

// ends reports whether an actor ends after so many failures in a row.
func (p RestartPolicy) ends(failures int) bool {
	switch p.Mode {
	case RestartNever:
		return true
	case RestartOnFailure:
		return p.MostFailures > 0 && failures > p.MostFailures
	case RestartAlways:
	}
	return false
}

func (g *guardian) tell(end bool, child *actor.PID, reason any, trace ids.TraceID, failures int, delay time.Duration) {
	switch {
	case end && g.policy.OnEnd != nil:
		g.policy.OnEnd(child, reason, trace, failures)
	case !end && g.policy.OnRestart != nil:
		g.policy.OnRestart(child, reason, trace, failures, delay)
	}
}

func (g *guardian) answer(system *actor.ActorSystem, message any) {
	_, content, sender := actor.UnwrapEnvelope(message)
	if sender == nil || g.interrupted == nil {
		return
	}
	if reply, ok := g.interrupted(content); ok {
		system.Root.Send(sender, reply)
	}
}

// count adds a failure and returns how many there are in a row, and the delay.
func (g *guardian) count(child *actor.PID) (failures int, delay time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.policy.Clock.Now()
	for id, r := range g.records {
		if now.Sub(r.restartAt) > g.policy.QuietAfter {
			delete(g.records, id)
		}
	}
	failures = g.records[child.Id].failures + 1
	delay = g.policy.delay(failures)
	g.records[child.Id] = failureRecord{failures: failures, restartAt: now.Add(delay)}
	return failures, delay
}

// delay returns the delay after so many failures in a row.
func (p RestartPolicy) delay(failures int) time.Duration {
	if p.Mode == RestartAlways {
		return p.MinDelay
	}
	return max(p.MinDelay, backoff.Delay(2*p.MinDelay, p.MaxDelay, failures, p.Jitter()))
}

// guarded keeps a panic in f from ending the process: a guardian runs outside the
// reach of any supervisor.
func guarded(system *actor.ActorSystem, f func()) {
	defer func() {
		if reason := recover(); reason != nil {
			system.Logger().Error("panic in the supervision of an actor", slog.Any("reason", reason))
		}
	}()
	f()
}

// EscalateToParent returns the strategy of an actor that does not survive the
// failure of a child: the actor fails too, and its own supervisor restarts it, with
// fresh children. It keeps no state.
//
// Nobody is answered for the message in the child's hands, because the parent sent
// it. With a [Mailbox], the parent fails once, however many of its children do.
func EscalateToParent() actor.SupervisorStrategy { return escalate{} }

type escalate struct{}

// HandleFailure implements [actor.SupervisorStrategy].
func (escalate) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, _ *actor.PID,
	_ *actor.RestartStatistics, reason, _ any,
) {
	supervisor.EscalateFailure(reason, nil)
}
