package sequencer

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/partita-go/partita/internal/backoff"
	"github.com/partita-go/partita/messages"
)

// maxLoads is how many workspaces may be loaded at the same time before the
// request lane is held.
const maxLoads = 16

// maxAwaiting is how many requests may wait for loads before the request lane is
// held: many may want the same workspace.
const maxAwaiting = 256

// Requester is whoever sent a message and gets the reply; nil if nobody waits.
// The core never looks into it.
type Requester any

// Config is what a partition's core is made of.
type Config struct {
	Partition  messages.PartitionID
	Descriptor messages.Descriptor
	// Kinds are those of the descriptor, which many partitions may share. Nil means that New
	// prepares them.
	Kinds    *Kinds
	Settings messages.Settings
	// CacheNumbers is this partition's share of the cache, in numbers. At least
	// one workspace is always cached.
	CacheNumbers int
	// NoWorkspaceZero keeps workspace 0 from beginning. One that has events goes on.
	NoWorkspaceZero bool
	// Generation is what the generations begin after, so that answers to an
	// earlier core of the same partition are ignored.
	Generation uint64
	// Seed makes the jitter of retry delays reproducible.
	Seed uint64
	// Secret draws what nobody can guess of a token. Nil means that it is 0.
	Secret func() uint64
}

// Core is the state of one partition's sequences. It is not safe for concurrent
// use: an actor owns it.
type Core struct {
	partition  messages.PartitionID
	partitions uint32
	kinds      map[messages.WSKind]*kindDef
	settings   messages.Settings
	// noZero keeps workspace 0 from beginning.
	noZero bool
	random *rand.Rand

	// step is the function of the current life-cycle state.
	step  func(c *Core, from Requester, m messages.PartitionMessage)
	state messages.PartitionState
	now   messages.Timestamp
	out   Effects
	armed [messages.Timers]bool

	// generation numbers the actualizations: an answer to what was asked in an
	// earlier one is ignored.
	generation     uint64
	actualizations uint64
	epoch          messages.Epoch
	// durable is the offset of the last event that is known to be in the log.
	durable messages.PLogOffset
	// lastTime is the last registration time given.
	lastTime messages.Timestamp
	// checkpoint is the one that is stored.
	checkpoint messages.PLogOffset

	cache *simplelru.LRU[messages.WSID, *workspace]
	// evicted holds what the cache has dropped while it was pinned: there must never
	// be two copies of a workspace's numbers.
	evicted   map[messages.WSID]*workspace
	unflushed *pending
	// unflushedSince is when the first of what is unflushed became so.
	unflushedSince messages.Timestamp
	// flushDue says that what is unflushed must not wait for the interval.
	flushDue bool
	flight   flight
	// flushTook is how long the last flush took.
	flushTook time.Duration
	retired   []retirement

	loads    map[messages.WSID]*load
	lastLoad uint64
	// awaiting counts the requests that wait for loads.
	awaiting int
	// queue holds the requests whose numbers are known; while the tail is replayed,
	// the Appends that wait for its end.
	queue queue

	// inFlight is what the Appends that have no answer yet take.
	inFlight inFlight
	batch    batch
	redo     redo
	doubt    doubt
	searches []search
	// lastSearch numbers the searches.
	lastSearch uint64
	// diverging is kept when the tail is replayed.
	diverging diverging

	txn         transaction
	serial      uint64
	secret      func() uint64
	lastFlushed messages.Token
	late        []lateFlush
	divergences int

	replay replay
	stop   stopping
	fault  *messages.PartitionError
	// clockErr is why the clock is not trusted.
	clockErr error
	// clogged says that somebody was refused since too much is unflushed, and nothing was flushed since that made room.
	// Clogs counts how often that began.
	clogged bool
	clogs   uint64
	// nearlyUsed is what the status says of sequences that will end.
	nearlyUsed []nearlyUsed
	// watched is when TimerPeriod fires, if it is armed.
	watched messages.Timestamp
	// refusal is what a partition that has failed answers.
	refusal error
	lastErr error
}

// New returns the core of a partition that has not read its log yet. Step it
// with Begin first. The descriptor and the settings must be valid.
func New(c Config) *Core {
	kinds := c.Kinds
	if kinds == nil {
		kinds = NewKinds(c.Descriptor)
	}
	core := &Core{
		partition:  c.Partition,
		partitions: c.Descriptor.Partitions,
		kinds:      kinds.byID,
		settings:   c.Settings,
		noZero:     c.NoWorkspaceZero,
		random:     rand.New(rand.NewPCG(c.Seed, uint64(c.Partition))),
		evicted:    make(map[messages.WSID]*workspace),
		loads:      make(map[messages.WSID]*load),
		unflushed:  newPending(1),
		checkpoint: 1,
		generation: c.Generation,
		secret:     c.Secret,
	}
	if core.secret == nil {
		core.secret = func() uint64 { return 0 }
	}
	// The only error is a size below 1.
	core.cache, _ = simplelru.NewLRU(max(1, c.CacheNumbers/kinds.widest), core.keepPinned)
	core.step = (*Core).stepActualizing
	return core
}

// Begin starts the first actualization.
func (c *Core) Begin(now messages.Timestamp) *Effects {
	c.begin(now)
	c.becomeActualizing()
	return &c.out
}

// Step handles one message. The effects are valid until the next call.
func (c *Core) Step(from Requester, m messages.PartitionMessage, now messages.Timestamp) *Effects {
	c.begin(now)
	c.step(c, from, m)
	if _, next := m.(*messages.Next); next {
		return &c.out // it changes nothing that the rest looks at
	}
	c.serveQueue()
	c.maybeFlush()
	c.maybeFinishStop()
	c.watchPeriods()
	return &c.out
}

func (c *Core) begin(now messages.Timestamp) {
	if back := c.now - now; back > 0 {
		// The clock was set back: what began before keeps its age.
		c.txn.since -= back
		c.unflushedSince -= back
	}
	c.now = now
	c.out.reset()
}

// TakesRequests reports whether the request lane may be taken: no transaction is
// open or waits for its turn, and what waits is within its limits. While stopping
// it may, since nobody needs to wait for the refusal.
func (c *Core) TakesRequests() bool {
	if c.isStopping() {
		return true
	}
	return !c.txn.open && c.queue.starts == 0 && len(c.loads) < maxLoads && c.awaiting < maxAwaiting &&
		c.inFlight.events < c.settings.InFlightEvents && c.inFlight.bytes < c.settings.InFlightBytes
}

// OpenSince returns when the open transaction was granted, 0 if none is open.
func (c *Core) OpenSince() messages.Timestamp {
	if !c.txn.open {
		return 0
	}
	return c.txn.since
}

// Reach returns the last event that is durable, and the next one to replay.
func (c *Core) Reach() (last, checkpoint messages.PLogOffset) { return c.durable, c.checkpoint }

// NeedsTime reports whether the end of the open transaction, or of the batch under way,
// begins something: what is next in the queue, or the interval after which it is flushed.
func (c *Core) NeedsTime() bool { return c.queue.len() > 0 || c.waitingEvents() == 0 }

// Status returns the state with details.
func (c *Core) Status() messages.PartitionStatus {
	s := messages.PartitionStatus{
		Partition:      c.partition,
		State:          c.state,
		Epoch:          c.epoch,
		Last:           c.durable,
		Checkpoint:     c.checkpoint,
		Replayed:       c.replay.events,
		Tail:           c.replay.tail,
		Actualizations: c.actualizations,
		FlushFailures:  c.flight.failures,
		Clean:          c.state == messages.StateTerminated && c.stop.clean,
		Err:            c.lastErr,
		NearlyUsed:     c.listNearlyUsed(),
	}
	if c.fault != nil {
		s.Err = c.fault
	}
	if c.isStopping() && c.state == messages.StateInitializing {
		s.State = messages.StateTerminating
	}
	return s
}

// setStatus is the only place that changes the state and the last error.
func (c *Core) setStatus(s messages.PartitionState, err error) {
	c.state = s
	c.lastErr = err
	c.out.Status = true
}

// arm asks for a timer unless it is running already.
func (c *Core) arm(t messages.Timer, after time.Duration) {
	if c.armed[t] {
		return
	}
	c.armed[t] = true
	c.out.Arm = append(c.out.Arm, Alarm{Timer: t, After: after})
}

// remaining returns how much of a duration that began at since is left.
func (c *Core) remaining(since messages.Timestamp, d time.Duration) time.Duration {
	return d - time.Duration(c.now-since)*time.Microsecond
}

// retryDelay grows from a hundredth of the setting to all of it.
func (c *Core) retryDelay(failures int) time.Duration {
	largest := c.settings.RetryDelay
	return backoff.Delay(max(largest/100, time.Millisecond), largest, failures, c.random.Float64())
}

func (c *Core) reply(to Requester, m any) {
	if to != nil {
		c.out.Replies = append(c.out.Replies, Reply{To: to, Message: m})
	}
}

func (c *Core) refuse(to Requester, err error) {
	c.reply(to, &messages.Refused{Err: err})
}

func (c *Core) busy(to Requester, why messages.BusyReason, after time.Duration) {
	c.refuse(to, &messages.BusyError{Reason: why, RetryAfter: after})
}

func (c *Core) reconfigure(from Requester, s messages.Settings) {
	s = s.WithDefaults()
	if err := s.Validate(); err != nil {
		c.refuse(from, err)
		return
	}
	c.settings = s
	c.armAgain()
	c.reply(from, &messages.Reconfigured{})
}

// armAgain lets new settings take effect on the timers that run. What they fire for
// looks at the clock, so that firing early or in vain does no harm.
func (c *Core) armAgain() {
	c.rearm(messages.TimerFlush, c.remaining(c.unflushedSince, c.settings.FlushInterval))
	c.rearm(messages.TimerTransaction, c.remaining(c.txn.since, c.settings.TransactionLimit))
}

func (c *Core) rearm(t messages.Timer, left time.Duration) {
	if c.armed[t] {
		c.armed[t] = false
		c.arm(t, max(0, left))
	}
}

// sortedIDs returns the keys of a map in order, so that map order never reaches
// an effect.
func sortedIDs[V any](m map[messages.WSID]V) []messages.WSID {
	ids := make([]messages.WSID, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
