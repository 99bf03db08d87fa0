package subscription

import (
	"math/rand/v2"
	"time"

	"github.com/partita-go/partita/internal/backoff"
	"github.com/partita-go/partita/messages"
)

// maxPassed is how many events may be passed over before the position behind them is
// stored: so many are looked at again after a restart.
const maxPassed = 4096

// Requester is whoever sent a message and gets the reply; nil if nobody waits. The lane
// never looks into it.
type Requester any

// Config is what a lane is made of.
type Config struct {
	// Partition is the one whose events the lane delivers.
	Partition messages.PartitionID
	// MinDelay and MaxDelay bound the growing delay between two tries.
	MinDelay, MaxDelay time.Duration
	// MaxTries is how often a batch may fail before its poisonous event is looked for, at
	// least 1.
	MaxTries uint32
	// StopOnPoison says that such an event stops the subscription; else it is parked.
	StopOnPoison bool
	// Held says that the lane begins as one that is held.
	Held bool
	// Restarted says that there was an incarnation before, which may have stopped the
	// subscription and not told so.
	Restarted bool
	// Generation is what the generations begin after, so that answers to an earlier
	// incarnation of the same lane are ignored.
	Generation uint64
	// Delivered and Parked are what earlier incarnations have counted.
	Delivered, Parked uint64
	// Seed makes the jitter of delays reproducible.
	Seed uint64
}

// Lane is the state of one lane. It is not safe for concurrent use: an actor owns it.
type Lane struct {
	config Config
	random *rand.Rand

	// step is the function of the current state.
	step  func(l *Lane, from Requester, m messages.LaneMessage)
	state messages.LaneState
	out   Effects

	// generation numbers the pieces of work.
	generation uint64
	// stored is the position that the store has, next the one before which everything was
	// handled, parked or passed over; 0: not loaded. They differ only while the lane delivers.
	stored, next uint64
	batch        batch
	// pending is what is to be stored before anything else is handed over, nil for nothing.
	pending *messages.StorePosition
	// passing says that nothing is pending but what was passed over.
	passing bool
	// afterDelay is what is tried again.
	afterDelay func(*Lane)
	// failures counts those of the store in a row.
	failures uint32
	halted   string
	err      error

	// holders and stoppers wait until what is under way has ended.
	holders, stoppers []Requester
	// reload says that the position is to be loaded when what is under way has ended.
	reload bool
	// trying waits for the outcome of one event, if that is being handled.
	trying   bool
	tryingOf Requester

	delivered, parked uint64
}

// batch is what was read and is not handled yet.
type batch struct {
	events []messages.LogEvent
	// behind is the offset behind it.
	behind uint64
	// alone says that its events are handed over one by one, to find the poisonous one.
	alone bool
	// tries counts the failures since something of it was handled or parked, calls how often
	// all that is left was handed over.
	tries, calls uint32
}

// New returns a lane that does not know yet where it stands. Begin comes first.
func New(c Config) *Lane {
	return &Lane{
		config: c, random: rand.New(rand.NewPCG(c.Seed, uint64(c.Partition))), generation: c.Generation,
		delivered: c.Delivered, parked: c.Parked,
	}
}

// Begin starts the lane.
func (l *Lane) Begin() *Effects {
	l.out.reset()
	if l.config.Held {
		l.becomeHeld()
	} else {
		l.becomeLoading()
	}
	return &l.out
}

// Step handles one message. The effects are valid until the next call.
func (l *Lane) Step(from Requester, m messages.LaneMessage) *Effects {
	l.out.reset()
	l.step(l, from, m)
	return &l.out
}

// Abort answers everybody who waits, since the actor ends or starts anew. The lane must not
// be used afterwards.
func (l *Lane) Abort(why error) *Effects {
	l.out.reset()
	for _, to := range append(l.holders, l.stoppers...) {
		l.refuse(to, why)
	}
	if l.trying {
		l.refuse(l.tryingOf, why)
	}
	return &l.out
}

// Status returns the state with details.
func (l *Lane) Status() messages.LaneStatus {
	return messages.LaneStatus{
		State: l.state, Next: l.next, Tries: l.batch.tries, Delivered: l.delivered, Parked: l.parked,
		Halted: l.halted, Err: l.err,
	}
}

// become changes the state. Whatever was asked before is answered in vain from now on.
func (l *Lane) become(s messages.LaneState, step func(*Lane, Requester, messages.LaneMessage)) {
	if l.state == messages.LaneWaiting {
		l.out.EndWait = true
	}
	if l.state == messages.LaneRetrying {
		l.out.Disarm = true
	}
	l.generation++
	l.state, l.step = s, step
	l.out.Status = true
}

func (l *Lane) becomeLoading() {
	l.become(messages.LaneLoading, (*Lane).stepLoading)
	l.forget()
	l.out.Work = &messages.LoadPosition{Generation: l.generation}
}

// forget drops what the store may contradict.
func (l *Lane) forget() {
	l.batch, l.pending, l.next, l.halted, l.reload = batch{}, nil, l.stored, "", false
}

func (l *Lane) becomeWaiting() {
	l.become(messages.LaneWaiting, (*Lane).stepWaiting)
	l.out.Work = &messages.AwaitLog{Generation: l.generation, Offset: l.next}
}

func (l *Lane) becomeReading() {
	l.become(messages.LaneReading, (*Lane).stepReading)
	l.out.Work = &messages.ReadLog{Generation: l.generation, From: l.next}
}

func (l *Lane) becomeHandling() {
	l.become(messages.LaneHandling, (*Lane).stepHandling)
	if !l.batch.alone {
		l.batch.calls++
	}
	l.out.Work = &messages.HandleBatch{Generation: l.generation, Events: l.batch.events[:l.batch.given()]}
}

func (l *Lane) becomeStoring() {
	l.become(messages.LaneStoring, (*Lane).stepStoring)
	m := *l.pending
	m.Generation = l.generation
	l.out.Work = &m
}

// becomeRetrying tries something again after a delay that has grown with the failures.
func (l *Lane) becomeRetrying(failures uint32, again func(*Lane)) {
	l.become(messages.LaneRetrying, (*Lane).stepRetrying)
	l.afterDelay = again
	after := backoff.Delay(l.config.MinDelay, l.config.MaxDelay, int(failures), l.random.Float64())
	l.out.Arm = &Alarm{Generation: l.generation, After: after}
}

func (l *Lane) becomeHalted(why string) {
	l.become(messages.LaneHalted, (*Lane).stepHalted)
	l.batch, l.halted = batch{}, why
}

func (l *Lane) becomeFailed(err error) {
	l.become(messages.LaneFailed, (*Lane).stepFailed)
	l.batch, l.pending, l.next, l.err = batch{}, nil, l.stored, err
}

// becomeHeld answers whoever holds the lane.
func (l *Lane) becomeHeld() {
	l.become(messages.LaneHeld, (*Lane).stepHeld)
	l.forget()
	for _, to := range l.holders {
		l.reply(to, &messages.Held{})
	}
	l.holders = nil
}

// becomeEnded answers who stops the lane, and whoever holds it.
func (l *Lane) becomeEnded(err error) {
	l.become(messages.LaneEnded, (*Lane).stepEnded)
	l.batch, l.pending = batch{}, nil
	l.refuseHolders(messages.ErrStopped)
	for _, to := range l.stoppers {
		l.reply(to, &messages.LaneStopped{Err: err})
	}
	l.stoppers = nil
	l.out.Ended = true
}

func (l *Lane) refuseHolders(why error) {
	for _, to := range l.holders {
		l.refuse(to, why)
	}
	l.holders = nil
}

func (l *Lane) reply(to Requester, m any) {
	if to != nil {
		l.out.Replies = append(l.out.Replies, Reply{To: to, Message: m})
	}
}

func (l *Lane) refuse(to Requester, err error) { l.reply(to, &messages.Refused{Err: err}) }

// given is how many events are handed over.
func (b *batch) given() int {
	if b.alone {
		return 1
	}
	return len(b.events)
}
