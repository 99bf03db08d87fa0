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
	ops
)

func (o op) String() string {
	return [ops]string{"TakeEpoch", "Tail", "Numbers", "PLog", "WLog", "Find", "Flush", "Append", "Write"}[o]
}

func (o op) writes() bool { return o == opTakeEpoch || o >= opFlush }

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
		return o != opWrite // an owner is no child of the partition
	case modePanicAfter:
		return o.writes() && o != opWrite
	case modeFull:
		return o >= opFlush
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
	faultKinds
)

func faultOf(o op, m mode) fault { return fault(int(o)*int(modes) + int(m)) }

// exists reports whether it is a row of the matrix.
func (f fault) exists() bool {
	m := mode(f % fault(modes))
	return f >= faultCrash || m.possible(op(f/fault(modes)))
}

func (f fault) String() string {
	if f < faultCrash {
		return fmt.Sprintf("%v: %v", op(int(f)/int(modes)), mode(int(f)%int(modes)))
	}
	return [...]string{
		"crash", "clock steps back", "clock jumps", "context ends", "owner stops", "owner forgets", "partition panics", "lane is full",
		"tail is full", "unflushed limit", "second owner", "undeploy", "reconfigure",
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
	rates
)

// chooseRates makes seeds different: each has some faults, few have all of them.
func (s *sim) chooseRates() {
	most := [rates]float64{
		rateSpoil: 0.25, rateClose: 0.3, rateDamage: 0.3, ratePanic: 0.5, rateLate: 1, rateActorPanic: 0.005, rateCrash: 0.002,
		rateClock: 0.01, rateContext: 0.01, rateRestart: 0.3, rateTakeOver: 0.2, rateReconfigure: 0.2,
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
	s.explained = s.explained || m == modeDamaged || m == modeClosesLost || m == modeClosesDone
	s.hit(faultOf(c.op, m), st.node, c.partition)
	return m, time.Duration(1+s.random.IntN(100_000)) * time.Microsecond
}

// chooseFor decides whether and how a call is spoilt.
func (s *sim) chooseFor(st *store, c *call) mode {
	column := st.node.column(c.partition)
	if s.aimed(faultOf(c.op, mode(s.aim.fault%fault(modes))), st.node, c.partition) {
		return mode(s.aim.fault % fault(modes))
	}
	if s.isHealed() || s.random.Float64() >= min(0.7, s.rates[rateSpoil]*rareness[column]) {
		return modeNone
	}
	return s.chooseMode(c.op, rareness[column] > 1)
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
