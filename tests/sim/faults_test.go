package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// op is an operation of the store that can be spoilt.
type op uint8

const (
	opTakeEpoch op = iota
	opTail
	opNumbers
	opPLog
	opWLog
	opFind
	opFlush
	opAppend // by the appender, a batch
	opWrite  // by the owner of a transaction
	// Those that follow are no partition's. Writes first.
	opMove   // by a lane's deliverer
	opChange // by whoever changes where a subscription stands
	opMake   // of a subscription
	opDelete
	opLook  // at a subscription, by whoever changes it
	opLoad  // by a lane's deliverer
	opAwait // of a log's growth, by it
	opRead  // of a batch, by it
	opEnd   // of a partition, by a reader of the feed
	opPage  // of a partition's log, by it
	opNews  // of any log, which it waits for
	ops
)

func (o op) String() string {
	return [ops]string{
		"TakeEpoch", "Tail", "Numbers", "PLog", "WLog", "Find", "Flush", "Append", "Write",
		"Move", "Change", "Make", "Delete", "Look", "Load", "Await", "Read", "End", "Page", "News",
	}[o]
}

func (o op) writes() bool { return o == opTakeEpoch || o >= opFlush && o <= opDelete }

// byLane reports whether a lane's deliverer calls it.
func (o op) byLane() bool { return o == opMove || o >= opLoad && o <= opRead }

// byKeeper reports whether whoever changes a subscription calls it.
func (o op) byKeeper() bool { return o >= opChange && o <= opLook }

// byActor reports whether an actor is to be restarted after a panic of it.
func (o op) byActor() bool { return o < opWrite || o.byLane() }

// mode is how a call is spoilt.
type mode uint8

const (
	modeNone        mode = iota
	modeFail             // an error, nothing done
	modeFull             // no space left, nothing done
	modeDamaged          // an error that says that what is stored is damaged
	modeUnknownLost      // outcome unknown, nothing done
	modeUnknownDone      // outcome unknown, done
	modeClosesLost       // the same, and the store closes itself
	modeClosesDone
	modeLate       // done late, or not at all if the context ends before
	modeLateAnswer // done at once, answered late
	modePanicBefore
	modePanicAfter
	modes
)

func (m mode) String() string {
	return [modes]string{
		"-", "error", "full", "damaged", "unknown, lost", "unknown, done", "closed, lost", "closed, done", "late", "late answer",
		"panic before", "panic after",
	}[m]
}

// possible reports whether an operation of a real store can end like that.
func (m mode) possible(o op) bool {
	switch m {
	case modeFail, modeLate, modeLateAnswer:
		return true
	case modePanicBefore:
		return o.byActor() // else it is its caller's own
	case modePanicAfter:
		return o.writes() && o.byActor()
	case modeFull:
		return o.writes() && o != opTakeEpoch
	case modeDamaged:
		return !o.writes() || o == opFlush
	case modeUnknownLost, modeUnknownDone, modeClosesLost, modeClosesDone:
		return o.writes()
	case modeNone, modes:
	}
	return false
}

// before returns the error of a call that is not done.
func (m mode) before(c *call) error {
	switch m {
	case modeFail:
		return fmt.Errorf("%w: %v", errDisk, c.op)
	case modeFull:
		return fmt.Errorf("%w: injected", storage.ErrFull)
	case modeDamaged:
		return &storage.DamagedError{Where: c.op.String(), Cause: errDisk}
	case modeUnknownLost, modeClosesLost:
		return fmt.Errorf("%w: injected, lost", messages.ErrOutcomeUnknown)
	case modePanicBefore:
		panic("injected before " + c.op.String())
	default:
		return nil
	}
}

// loses reports whether the answer to a call that is done is lost.
func (m mode) loses() bool { return m == modeUnknownDone || m == modeClosesDone }

// fault is a row of the matrix: a spoilt operation, or one of those below.
type fault int

const (
	faultCrash fault = fault(int(ops)*int(modes)) + iota
	faultClockBack
	faultClockJump
	faultContext
	faultOwner
	faultForgotten
	faultActorPanic
	faultLaneFull
	faultTailFull
	faultBusy
	faultTakeOver
	faultUndeploy
	faultReconfigure
	// Those that follow strike subscriptions only.
	faultLanePanic
	faultAlert
	faultPause
	faultResume
	faultRewind
	faultSkip
	faultReplay
	faultDrop
	faultRemove
	faultGiveUp
	faultHandler
	faultNamed
	faultHandlerPanic
	faultHandlerExit
	faultHandlerSlow
	faultHandlerDeaf
	faultKinds
)

func faultOf(o op, m mode) fault { return fault(int(o)*int(modes) + int(m)) }

// exists reports whether it can strike a partition: it is a row of the matrix.
func (f fault) exists() bool {
	if f >= faultCrash {
		return f < faultLanePanic
	}
	o := op(f / fault(modes))
	return !o.byLane() && !o.byKeeper() && mode(f%fault(modes)).possible(o)
}

// strikesLanes reports whether it is a row of the matrix of subscriptions.
func (f fault) strikesLanes() bool {
	switch f {
	case faultCrash, faultClockBack, faultClockJump, faultTakeOver, faultUndeploy:
		return true
	default:
	}
	if f >= faultCrash {
		return f >= faultLanePanic
	}
	o := op(f / fault(modes))
	// No lane runs when a subscription is made.
	return (o.byLane() || o.byKeeper() && o != opMake) && mode(f%fault(modes)).possible(o)
}

func (f fault) String() string {
	if f < faultCrash {
		return fmt.Sprintf("%v: %v", op(int(f)/int(modes)), mode(int(f)%int(modes)))
	}
	return [...]string{
		"crash", "clock steps back", "clock jumps", "context ends", "owner stops", "owner forgets", "partition panics", "lane is full",
		"tail is full", "unflushed limit", "second owner", "undeploy", "reconfigure",
		"lane panics", "another lane stops", "pause", "resume", "rewind", "skip to the end", "replay", "drop", "delete or end",
		"change is given up", "handler fails", "handler names", "handler panics", "handler exits", "handler is slow", "handler is deaf",
	}[f-faultCrash]
}

// rate is something that happens with a probability that the seed chooses.
type rate int

const (
	rateSpoil rate = iota // of a call of the store
	rateClose             // of a spoilt call: with the store closing itself
	rateDamage
	ratePanic
	rateLate
	rateActorPanic
	rateCrash // of a step
	rateClock
	rateContext
	rateRestart // of a turn of the operator
	rateTakeOver
	rateReconfigure
	rateLane    // of a call of the store for a subscription, or for a reader of the feed
	rateHandler // of a call of a subscription's handler
	rateChange  // of a turn of whoever keeps a subscription
	rates
)

// chooseRates makes seeds different: each has some faults, few have all of them.
func (s *sim) chooseRates() {
	most := [rates]float64{
		rateSpoil: 0.25, rateClose: 0.3, rateDamage: 0.3, ratePanic: 0.5, rateLate: 1, rateActorPanic: 0.005, rateCrash: 0.002,
		rateClock: 0.01, rateContext: 0.01, rateRestart: 0.3, rateTakeOver: 0.2, rateReconfigure: 0.2,
		rateLane: 0.25, rateHandler: 0.5, rateChange: 0.7,
	}
	for r, p := range most {
		if s.random.IntN(5) < 2 {
			s.rates[r] = p * s.random.Float64()
		}
	}
}

// strikes decides whether something happens now.
func (s *sim) strikes(r rate) bool {
	return s.rates[r] > 0 && !s.isHealed() && s.random.Float64() < s.rates[r]
}

// rareness is how much likelier a call is spoilt in a state that does not last.
var rareness = [columns]float64{1, 1, 1, 1, 1, 2, 8, 20, 10}

// spoil decides how a call is spoilt, and how late it is if it is.
func (s *sim) spoil(ctx context.Context, st *store, c *call) (mode, time.Duration) {
	m := s.chooseFor(st, c)
	if m == modeNone {
		return m, 0
	}
	// A panic in a client's hands would be the client's own.
	if isPanic := m == modePanicBefore || m == modePanicAfter; isPanic && clientOf(ctx) != nil {
		m = modeFail
	}
	s.explained = s.explained || m == modeDamaged && c.op <= opWrite || m == modeClosesLost || m == modeClosesDone
	s.hitCall(faultOf(c.op, m), st, c)
	return m, time.Duration(1+s.random.IntN(100_000)) * time.Microsecond
}

// chooseFor decides whether and how a call is spoilt.
func (s *sim) chooseFor(st *store, c *call) mode {
	if c.op > opWrite && !faultOf(c.op, modeFail).exists() {
		return s.chooseForLane(c)
	}
	column := st.node.column(c.partition)
	if s.aimed(faultOf(c.op, mode(s.aim.fault%fault(modes))), st.node, c.partition) {
		return mode(s.aim.fault % fault(modes))
	}
	rate := s.rates[rateSpoil]
	if c.op > opWrite {
		rate = s.rates[rateLane]
	}
	if s.isHealed() || s.random.Float64() >= min(0.7, rate*rareness[column]) {
		return modeNone
	}
	return s.chooseMode(c.op, rareness[column] > 1)
}

// chooseForLane decides about a call for a subscription.
func (s *sim) chooseForLane(c *call) mode {
	if s.aimedCall(c) {
		return mode(s.laneAim.fault % fault(modes))
	}
	if !s.strikes(rateLane) {
		return modeNone
	}
	return s.chooseMode(c.op, s.random.IntN(2) == 0)
}

// chooseMode draws again what the operation cannot suffer, and mostly what the seed
// makes rare; in a rare state, only what the seed leaves out.
func (s *sim) chooseMode(o op, often bool) mode {
	for {
		m := modeFail + mode(s.random.IntN(int(modes-modeFail)))
		if !m.possible(o) {
			continue
		}
		if r, ok := m.rate(); !ok || s.strikes(r) || (often && s.rates[r] > 0) {
			return m
		}
	}
}

// rate returns how likely the mode is, for those that are not as likely as any.
func (m mode) rate() (rate, bool) {
	switch m {
	case modeDamaged:
		return rateDamage, true
	case modeClosesLost, modeClosesDone:
		return rateClose, true
	case modePanicBefore, modePanicAfter:
		return ratePanic, true
	case modeLate, modeLateAnswer:
		return rateLate, true
	default:
		return 0, false
	}
}
