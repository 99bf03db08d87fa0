package actors

import (
	"reflect"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/partita-go/partita/actors/base"
	"github.com/partita-go/partita/ids"
)

// What package base has, and whoever uses actors needs.
type (
	// Clock tells the time and calls back later.
	Clock = base.Clock
	// Dispatcher runs actors on goroutines that it uses again.
	Dispatcher = base.Dispatcher
	// Key identifies an actor by its group and its key within the group.
	Key = base.Key
	// KeyedObserver is an Observer that has another one for each actor.
	KeyedObserver = base.KeyedObserver
	// LaneFigures are about a request lane.
	LaneFigures = base.LaneFigures
	// Mailbox is the queue of one actor, in three lanes.
	Mailbox = base.Mailbox
	// MailboxConfig is what a Mailbox is made of.
	MailboxConfig = base.MailboxConfig
	// Observer is told about every message of the actors that have it.
	Observer = base.Observer
	// Ports is a pool of addresses at which a goroutine that is no actor awaits an answer.
	Ports = base.Ports
	// RestartMode says whether actors that fail are restarted.
	RestartMode = base.RestartMode
	// RestartPolicy says how a guardian restarts actors that fail.
	RestartPolicy = base.RestartPolicy
	// Timer is one call that a Clock owes.
	Timer = base.Timer
	// Traffic is a message on its way.
	Traffic = base.Traffic
	// TrafficKind says whether somebody waits for an answer.
	TrafficKind = base.TrafficKind
	// TrafficSwitch is a TrafficObserver that may want nothing for a while.
	TrafficSwitch = base.TrafficSwitch
	// TrafficObserver is an Observer that is also told what actors send.
	TrafficObserver = base.TrafficObserver
)

// What becomes of actors that fail, and whether somebody waits for an answer to a message.
const (
	RestartOnFailure = base.RestartOnFailure
	RestartAlways    = base.RestartAlways
	RestartNever     = base.RestartNever

	TrafficRegular  = base.TrafficRegular
	TrafficRequest  = base.TrafficRequest
	TrafficResponse = base.TrafficResponse
)

// EscalateToParent returns the strategy of an actor that does not survive the failure of a child.
func EscalateToParent() actor.SupervisorStrategy { return base.EscalateToParent() }

// MemberKey returns the key of a member of a group of command processors, without its ID.
func MemberKey(group string) Key { return base.MemberKey(group) }

// NewDispatcher returns a dispatcher without goroutines. Close ends those that it will have.
func NewDispatcher() *Dispatcher { return base.NewDispatcher() }

// NewGuardian returns the strategy for actors that are spawned from the root: see [base.NewGuardian].
func NewGuardian(p RestartPolicy, interrupted func(message any) (reply any, ok bool)) actor.SupervisorStrategy {
	return base.NewGuardian(p, interrupted)
}

// NewMailbox returns a mailbox for one actor, which keeps it when it is restarted.
func NewMailbox(c MailboxConfig) *Mailbox { return base.NewMailbox(c) }

// NewPorts returns a pool without ports. Close unregisters those that it will have.
func NewPorts(system *actor.ActorSystem) *Ports { return base.NewPorts(system) }

// Observers returns an Observer that tells several, in their order.
func Observers(all ...Observer) Observer { return base.Observers(all...) }

// SystemClock returns the clock of the machine.
func SystemClock() Clock { return base.SystemClock() }

// TraceField names a trace in a line of a log that is written on a request's behalf, if there is one.
func TraceField(id ids.TraceID) zap.Field { return base.TraceField(id) }

// TraceOf returns the trace that a message belongs to, as far as it alone tells.
func TraceOf(message any) ids.TraceID { return base.TraceOf(message) }

// NamesOf returns what dumps and metrics call the messages of a type, which may be nil: its name, and the protocol, which
// is the package that it is of.
func NamesOf(t reflect.Type) (message, protocol string) { return base.NamesOf(t) }
