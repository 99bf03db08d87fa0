package actors

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/partita-go/partita/actors/base"
	"github.com/partita-go/partita/messages"
)

// Tally counts, for all partitions of an application together, what does not happen at every event. It is safe for
// concurrent use.
type Tally struct {
	refused [len(refusals) + 1]atomic.Uint64
	// changed is by the state that a partition has come to.
	changed        [messages.StateFailed + 1]atomic.Uint64
	repeated, read atomic.Uint64
	// busy is by the limits.
	busy [len(limits)]atomic.Uint64

	mu sync.Mutex
	// moved counts the states that actors other than partitions have come to, by their groups.
	moved map[string]*[messages.StateFailed + 1]uint64
}

// limits are those of which a BusyError tells.
var limits = [...]string{"RequestLane", "RequestLaneBytes", "BusyLimit", "BusyEvents", "Memory"}

// move counts a state that an actor of a group has come to. A nil Tally counts nothing.
func (t *Tally) move(group string, to messages.ActorState) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.moved == nil {
		t.moved = make(map[string]*[messages.StateFailed + 1]uint64)
	}
	if t.moved[group] == nil {
		t.moved[group] = new([messages.StateFailed + 1]uint64)
	}
	t.moved[group][to]++
}

// Counts are what a [Tally] has counted.
type Counts struct {
	// Refusals are the requests that were refused, by reason: all reasons are there.
	Refusals map[string]uint64
	// Changes are those of partitions' states, by the new state: all states are there.
	Changes map[messages.PartitionState]uint64
	// Moves are the changes of the states of all other actors that have some, by their groups, then by the new state: of a
	// group of which one has changed all states are there.
	Moves map[string]map[messages.ActorState]uint64
	// Busy are the refusals by a bound, by the setting that is the bound: see BusyError.Limit of package messages.
	Busy map[string]uint64
	// Repeats are the appends that were answered with what an earlier one of the same deduplication id has written.
	Repeats uint64
	// Reads are the workspaces whose numbers were read from the store, since they were not in the cache.
	Reads uint64
}

// refusals are the reasons of refusals. What fits none of them is in other.
var refusals = [...]struct {
	reason string
	is     error
}{
	// Those of Busy, in the order of the reasons.
	{messages.BusyMailboxFull.Name(), nil},
	{messages.BusyActualizing.Name(), nil},
	{messages.BusyUnflushed.Name(), nil},
	{messages.BusyStopping.Name(), nil},
	{"outcome-unknown", messages.ErrOutcomeUnknown},
	{"stopped", messages.ErrStopped},
	{"interrupted", messages.ErrInterrupted},
	{"deadline", messages.ErrDeadlineExceeded},
	{"clock", messages.ErrClock},
	{"fenced", messages.ErrFenced},
	{"no-transaction", messages.ErrNoTransaction},
	{"failed", messages.ErrPartitionFailed},
	{"overflow", messages.ErrOverflow},
	{"expected-offset", messages.ErrExpectedOffset},
	{"dedup-mismatch", messages.ErrDedupMismatch},
	{"too-large", messages.ErrTooLarge},
}

// other is the reason that is not listed.
const other = "other"

func (t *Tally) refuse(err error) {
	t.refused[reasonOf(err)].Add(1)
	if busy, isBusy := errors.AsType[*messages.BusyError](err); isBusy {
		if i := slices.Index(limits[:], busy.Limit); i >= 0 {
			t.busy[i].Add(1)
		}
	}
}

// reasonOf returns the place of a refusal's reason, that behind the last one if it is not listed.
func reasonOf(err error) int {
	busy, isBusy := errors.AsType[*messages.BusyError](err)
	for i := range refusals {
		if is := refusals[i].is; is == nil && isBusy && int(busy.Reason) == i+int(messages.BusyMailboxFull) || is != nil && errors.Is(err, is) {
			return i
		}
	}
	return len(refusals)
}

// Counts returns what was counted by now.
func (t *Tally) Counts() Counts {
	c := Counts{
		Refusals: map[string]uint64{other: t.refused[len(refusals)].Load()},
		Changes:  make(map[messages.PartitionState]uint64),
		Moves:    make(map[string]map[messages.ActorState]uint64),
		Busy:     make(map[string]uint64),
		Repeats:  t.repeated.Load(),
		Reads:    t.read.Load(),
	}
	for i := range refusals {
		c.Refusals[refusals[i].reason] = t.refused[i].Load()
	}
	for i := range limits {
		c.Busy[limits[i]] = t.busy[i].Load()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for group, states := range t.moved {
		c.Moves[group] = make(map[messages.ActorState]uint64)
		for state, n := range states {
			c.Moves[group][messages.ActorState(state)] = n
		}
	}
	for i := range t.changed {
		c.Changes[messages.PartitionState(i)] = t.changed[i].Load()
	}
	return c
}

// done counts what one partition has done.
type done struct {
	appends, transactions atomic.Uint64
	// openSince is when the open transaction was granted, by the partition's clock, 0 if none is open.
	openSince atomic.Int64
	// last is the offset of the last durable event, checkpoint the next one to replay.
	last, checkpoint atomic.Uint64
	// begun is when the partition began to initialize, recovered how long it took to, both in nanoseconds on the
	// machine's clock.
	begun, recovered atomic.Int64
}

// PartitionFigures are what a partition has done since it was spawned, and what it has to do.
type PartitionFigures struct {
	// Appends counts requests of their own that were appended, Transactions the interactive ones that were committed.
	Appends, Transactions uint64
	// OpenSince is when the open transaction was granted, 0 if none is open.
	OpenSince messages.Timestamp
	// Recovery is how long the partition took from its last start until it took transactions, 0 if it does not yet.
	Recovery time.Duration
	// Requests are those that wait for their turn.
	Requests LaneFigures
}

// Figures returns what the partition has done, and what it has to do.
func (p *Partition) Figures() PartitionFigures {
	return PartitionFigures{
		Appends:      p.done.appends.Load(),
		Transactions: p.done.transactions.Load(),
		OpenSince:    messages.Timestamp(p.done.openSince.Load()),
		Recovery:     time.Duration(p.done.recovered.Load()),
		Requests:     p.mailbox.Lane(),
	}
}

// Requests returns what waits at the command processor.
func (p *CommandProcessor) Requests() LaneFigures { return p.mailbox.Lane() }

// count counts an answer, before whoever waits for it has it.
func (p *Partition) count(answer any) {
	switch m := answer.(type) {
	case *messages.Appended:
		if m.Repeated {
			p.config.Tally.repeated.Add(1)
		} else {
			p.done.appends.Add(1)
		}
	case *messages.Flushed:
		p.done.transactions.Add(1)
	case *messages.Refused:
		p.config.Tally.refuse(m.Err)
	}
}

// countState counts a change of the state, and how long a partition initializes.
func (p *Partition) countState(before, after messages.PartitionState) {
	if before == after {
		return
	}
	p.config.Tally.changed[after].Add(1)
	switch after {
	case messages.StateInitializing:
		p.beginRecovery()
	case messages.StateNormal, messages.StateAlarming:
		if before == messages.StateInitializing {
			p.done.recovered.Store(int64(time.Since(programBegun)) - p.done.begun.Load())
		}
	case messages.StateTerminating, messages.StateTerminated, messages.StateFailed:
	}
}

func (p *Partition) beginRecovery() {
	p.done.begun.Store(int64(time.Since(programBegun)))
	p.done.recovered.Store(0)
}

// programBegun is what machine times count from.
var programBegun = time.Now()

// countOpen notes whether a transaction is open.
func (p *partition) countOpen() {
	if since := p.core.OpenSince(); since != p.openSince {
		p.openSince = since
		p.handle.done.openSince.Store(int64(since))
	}
}

// noteReach notes how far the log and the projections are. Whoever reads the checkpoint first never sees it beyond the
// log.
func (p *partition) noteReach() {
	last, checkpoint := p.core.Reach()
	if d := &p.handle.done; d.last.Load() != uint64(last) || d.checkpoint.Load() != uint64(checkpoint) {
		d.last.Store(uint64(last))
		d.checkpoint.Store(uint64(checkpoint))
	}
}

// SetLane changes the bounds of the request lane: see [Mailbox.SetBounds].
func (p *Partition) SetLane(requests, bytes int) { p.mailbox.SetBounds(requests, bytes) }

// SetLane changes the bounds of the request lane: see [Mailbox.SetBounds].
func (p *CommandProcessor) SetLane(requests, bytes int) { p.mailbox.SetBounds(requests, bytes) }

// errStopped is why most actors have ended.
func errStopped() error { return messages.ErrStopped }

// refusal makes the answers to requests that a mailbox does not take, and counts them, unless tally is nil. It asks ended why
// the actor has ended, and retryAfter, if the lane may be full, when to try again.
func refusal(retryAfter func() time.Duration, tally *Tally, ended func() error) func(message any, why base.RefuseReason) any {
	return func(_ any, why base.RefuseReason) any {
		refused := &messages.Refused{Err: ended()}
		switch why {
		case base.LaneFull:
			refused.Err = &messages.BusyError{Reason: messages.BusyMailboxFull, RetryAfter: retryAfter(), Limit: "RequestLane"}
		case base.LaneFullOfBytes:
			refused.Err = &messages.BusyError{Reason: messages.BusyMailboxFull, RetryAfter: retryAfter(), Limit: "RequestLaneBytes"}
		case base.Closed:
		}
		if tally != nil {
			tally.refuse(refused.Err)
		}
		return refused
	}
}
