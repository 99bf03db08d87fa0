package sim

import (
	"context"
	"time"

	"github.com/partita-go/partita/messages"
)

// aim is a cell of the matrix that a run tries to hit more often than chance would.
type aim struct {
	fault  fault
	column column
	// left is how often it is still to be hit, so that the run gets on.
	left int
}

// aims are the states that a run aims at: chance hits the others often enough.
var aims = [...]column{
	colInitializing, colInitializing, colWriting, colWriting, colAppending, colAlarming, colTerminating,
	colTerminated, colTerminated, colFailed, colFailed, colFailed,
}

// rarest are cells that chance and other aims may not hit at all in 10,000 runs.
var rarest = [...]aim{
	{fault: faultOf(opTail, modeLate), column: colFailed},
	{fault: faultOf(opTail, modeLateAnswer), column: colFailed},
	{fault: faultOf(opTail, modePanicBefore), column: colFailed},
	{fault: faultOf(opPLog, modeLate), column: colAlarming},
	{fault: faultOf(opPLog, modeLateAnswer), column: colAlarming},
	{fault: faultOf(opPLog, modeLate), column: colNormal},
	{fault: faultOf(opPLog, modeLateAnswer), column: colNormal},
	{fault: faultOf(opPLog, modeDamaged), column: colNormal},
	{fault: faultOf(opPLog, modePanicBefore), column: colNormal},
	{fault: faultOf(opPLog, modeDamaged), column: colAppending},
	{fault: faultOf(opWLog, modeLateAnswer), column: colInitializing},
	{fault: faultOf(opFind, modeLate), column: colInitializing},
	{fault: faultOf(opFind, modeLateAnswer), column: colInitializing},
	{fault: faultOf(opFind, modeLateAnswer), column: colTerminated},
	{fault: faultOf(opFind, modeLateAnswer), column: colFailed},
	{fault: faultOf(opWrite, modeLate), column: colFailed},
	{fault: faultOf(opAppend, modePanicAfter), column: colWriting},
	{fault: faultOf(opPLog, modePanicBefore), column: colInitializing},
	{fault: faultForgotten, column: colAppending},
	{fault: faultForgotten, column: colFailed},
}

// chooseAim gives two of three runs an aim, and makes likely what leads to the state.
func (s *sim) chooseAim() {
	if s.random.IntN(3) == 0 {
		return
	}
	for {
		s.aim = aim{fault: s.chooseAimedFault(), column: aims[s.random.IntN(len(aims))]}
		if s.random.IntN(5) == 0 {
			s.aim = rarest[s.random.IntN(len(rarest))]
		}
		s.aim.left = 3
		if s.aim.fault.exists() && impossible(s.aim.fault, s.aim.column) == "" {
			break
		}
	}
	likely := func(r rate, p float64) { s.rates[r] = max(s.rates[r], p) }
	switch s.aim.column {
	case colTerminating:
		likely(rateRestart, 0.2)
	case colTerminated:
		likely(rateRestart, 0.4)
		s.settings.StopLimit = time.Millisecond
		s.starved = "partition/" // it takes long from its last word to its end
	case colWriting:
		s.patient, s.settings.TransactionLimit = false, 2*time.Millisecond
	case colFailed:
		likely(rateTakeOver, 0.1)
		likely(rateSpoil, 0.1)
		likely(rateDamage, 0.5)
	case colInitializing:
		likely(rateSpoil, 0.1)
		likely(rateActorPanic, 0.003)
		if s.aimsAtOp(opAppend) || s.aimsAtOp(opWrite) {
			likely(rateActorPanic, 0.02) // nothing else begins a replay meanwhile
		}
	case colAlarming:
		likely(rateSpoil, 0.1)
	default:
	}
	switch s.aim.fault {
	case faultTailFull:
		s.disk.LimitTail(3)
		s.settings.FlushThreshold, s.settings.BusyLimit, s.settings.BusyEvents = 20, 30, 12
	case faultForgotten:
		s.patient, s.settings.TransactionLimit = false, 2*time.Millisecond
	default:
	}
}

// chooseAimedFault returns any: readers' calls of the store less often, since they are made in
// every state, and what hardly ever happens by chance more often.
func (s *sim) chooseAimedFault() fault {
	switch s.random.IntN(20) {
	case 0, 1:
		return faultOf(opPLog, mode(s.random.IntN(int(modes))))
	case 2, 3:
		return faultTailFull
	}
	f := fault(s.random.IntN(int(faultKinds)))
	if f < faultCrash && op(f/fault(modes)) > opWrite && s.random.IntN(4) > 0 {
		f = fault(s.random.IntN(int(faultOf(opWrite, modes))))
	}
	return f
}

// aimsAt reports whether the run's aim is this kind of fault.
func (s *sim) aimsAt(f fault) bool {
	return s.aim.left > 0 && s.aim.fault == f && !s.isHealed()
}

// aimsAtOp reports whether the run's aim is an operation of the store.
func (s *sim) aimsAtOp(o op) bool {
	return s.aim.left > 0 && s.aim.fault < faultCrash && op(s.aim.fault/fault(modes)) == o && !s.isHealed()
}

// aimed reports whether a fault that could strike now is the run's aim: it strikes.
func (s *sim) aimed(f fault, n *node, p messages.PartitionID) bool {
	if !s.aimsAt(f) || n.column(p) != s.aim.column {
		return false
	}
	s.aim.left--
	return true
}

// hold keeps a call for the state at which the run aims, mostly in vain. If it returns
// an error, nothing was done.
func (s *sim) hold(ctx context.Context, st *store, c *call) error {
	if len(c.lanes) > 0 && s.aimsAtCall(c) {
		return s.holdForLane(ctx, st, c)
	}
	if s.random.IntN(3) == 0 || !s.holds(c.op) {
		return nil
	}
	late := time.Duration(s.random.IntN(100_000)) * time.Microsecond
	t := &task{node: st.node, key: st.key(c), ctx: ctx, due: s.after(late)}
	if !s.meets(c.op) {
		t.aimed = func() bool { return st.node.column(c.partition) == s.aim.column }
		if t.aimed() {
			return nil
		}
	}
	return st.await(ctx, t)
}

// meets reports whether an operation is an owner's write that a batch, or a call of
// another kind, is to meet.
func (s *sim) meets(o op) bool {
	return s.aim.left > 0 && s.aim.column == colWriting && o == opWrite && !s.aimsAtOp(opWrite) && !s.isHealed()
}

// holds reports whether calls of an operation are kept for the run's aim.
func (s *sim) holds(o op) bool {
	return s.meets(o) || s.aimsAtOp(o) || s.aimsAt(faultTailFull) && (o == opAppend || o == opWrite)
}
