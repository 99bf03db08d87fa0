package storagetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// Factory makes the stores that [Run] tests. A store that Open or Reopen returns
// is passed to Reopen at most once. The suite closes every store; the factory
// releases whatever else belongs to it in t.Cleanup. Its methods are called concurrently, never for the same store.
//
// An implementation may be a [Crasher], a [TailLimiter], a [Copier] and a [Sampler] too.
type Factory interface {
	// Open returns a new, empty store, or fails the test.
	Open(t testing.TB, d messages.Descriptor) storage.Store
	// Reopen closes the store cleanly, unless it is closed already, and opens what
	// it holds again under the same descriptor, or fails the test.
	Reopen(t testing.TB, s storage.Store) storage.Store
}

// Crasher is implemented by factories that can abandon a store.
type Crasher interface {
	// Crash opens what the store holds as a crash at this moment would leave it,
	// without closing the store. Calls to the old store may then fail or block.
	Crash(t testing.TB, s storage.Store) storage.Store
}

// TailLimiter is implemented by factories whose stores bound their tails.
type TailLimiter interface {
	// OpenLimited is Open of a store that takes at most this many events into the
	// tail of each partition.
	OpenLimited(t testing.TB, d messages.Descriptor, events int) storage.Store
}

// Copier is implemented by factories that can make a store of what another one holds: of
// a copy of it, or of its log alone.
type Copier interface {
	// Copies are the ways to do it.
	Copies() []Copy
}

// Copy is a way to make a store of what another one holds.
type Copy struct {
	Name string
	// Projected says that the new store's projections are up to the end of its log;
	// else they are where they were.
	Projected bool
	// Do closes the store and returns the new one.
	Do func(t testing.TB, s storage.Store) storage.Store
}

// Sampler is implemented by factories whose stores differ in one part only from those of another factory, as replicas do
// from a store alone: each random run draws its trust level. All others do as many at each level.
type Sampler interface{ SampleLevels() }

// Run checks that the factory's stores keep all promises of [storage.Store], and those of
// [storage.Submitter] and [storage.Subscriptions] if they are that. Each
// promise is a named subtest, and each subtest ends with the check of the
// invariants. Checks whose promise depends on the trust level run at each of them.
//
// How many random runs are compared with the model is said by the flag
// -rapid.checks (default 100); with -short they run at trust level 0 only, those of a [Sampler] at any.
func Run(t *testing.T, f Factory) {
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // a check waits for the disk
			levels := c.levels
			if _, samples := f.(Sampler); samples && c.name == modelCheck {
				checkModel(t, f, levels...)
				return
			}
			if testing.Short() && c.name == modelCheck {
				levels = levels[:1]
			}
			for _, level := range levels {
				t.Run(fmt.Sprintf("trust%d", level), func(t *testing.T) {
					t.Parallel()
					c.check(t, f, level)
				})
			}
		})
	}
}

// check is one promise.
type check struct {
	name   string
	levels []messages.TrustLevel
	run    func(*env)
}

// check runs the promise's check on a new store.
func (c check) check(t testing.TB, f Factory, level messages.TrustLevel) {
	e := &env{TB: t, factory: f, desc: Descriptor(level), parts: make(map[messages.PartitionID]*Partition)}
	c.run(e)
	if e.store != nil {
		e.same("at the end")
		Verify(t, e.store)
		e.close()
	}
}

var (
	anyLevel   = []messages.TrustLevel{messages.TrustNone}
	eachLevel  = []messages.TrustLevel{messages.TrustNone, messages.TrustRecords, messages.TrustAll}
	levelNone  = []messages.TrustLevel{messages.TrustNone}
	levelsPut  = []messages.TrustLevel{messages.TrustRecords, messages.TrustAll}
	firstThree = []messages.WSID{0, 1, 2}
)

// checks returns all promises in the order of the interface.
func checks() []check {
	var all []check
	for _, group := range [][]check{
		openChecks, claimChecks, epochChecks, appendChecks, submitChecks, refusalChecks, recordChecks,
		dedupChecks, flushChecks, periodChecks, takeoverChecks, readChecks, awaitChecks, raceChecks, subscriptionChecks, closeChecks, modelChecks,
	} {
		all = append(all, group...)
	}
	return all
}

// env is what a check works with: a store, the drivers of its partitions, and
// the model of what the store must hold.
type env struct {
	testing.TB
	factory Factory
	desc    messages.Descriptor

	store storage.Store
	model *model
	parts map[messages.PartitionID]*Partition
	// writes counts the batches, to write them in both ways.
	writes atomic.Int64
}

// open opens an empty store.
func (e *env) open() {
	e.Helper()
	e.use(e.factory.Open(e, e.desc))
}

func (e *env) use(s storage.Store) {
	e.store = s
	e.model = newModel(e.desc)
}

// optional returns the store as what not every store is; of one that is not the check is
// skipped.
func optional[T any](e *env) T {
	e.Helper()
	s, ok := e.store.(T)
	if !ok {
		e.close()
		e.Skipf("%T is no %v", e.store, reflect.TypeFor[T]())
	}
	return s
}

// close closes the store.
func (e *env) close() {
	e.Helper()
	if err := e.store.Close(e.Context()); err != nil {
		e.Fatalf("close: %v", err)
	}
}

// reopen closes the store and opens it again. The epochs taken stay valid, since
// nobody else takes one.
func (e *env) reopen() {
	e.Helper()
	e.replace(e.factory.Reopen(e, e.store))
}

// crash abandons the store and opens it again; it reports whether the factory
// can do it.
func (e *env) crash() bool {
	c, ok := e.factory.(Crasher)
	if ok {
		e.replace(c.Crash(e, e.store))
	}
	return ok
}

// copies are the factory's.
func (e *env) copies() []Copy {
	c, ok := e.factory.(Copier)
	if !ok {
		return nil
	}
	return c.Copies()
}

// goOnIn goes on with a store that is made of what this one holds.
func (e *env) goOnIn(c Copy) {
	e.Helper()
	e.replace(c.Do(e, e.store))
	if !c.Projected {
		return
	}
	for id, p := range e.parts {
		p.Flushed(p.last + 1)
		e.model.partitions[id].checkpoint = p.checkpoint
	}
}

func (e *env) replace(s storage.Store) {
	e.store = s
	for _, p := range e.parts {
		p.store = s
	}
}

// take takes an epoch of a partition and returns its driver.
func (e *env) take(id messages.PartitionID) *Partition {
	e.Helper()
	before := e.model.register(id)
	p := Take(e, e.store, id)
	if p.epoch <= before.Epoch {
		e.Fatalf("TakeEpoch of partition %d: got epoch %d, want more than %d", id, p.epoch, before.Epoch)
	}
	e.model.partitions[id].epoch = p.epoch
	if p.last != before.Last || p.checkpoint != before.Checkpoint {
		e.Fatalf("TakeEpoch of partition %d: got last %d and checkpoint %d, want %d and %d", id, p.last, p.checkpoint, before.Last, before.Checkpoint)
	}
	e.parts[id] = p
	return p
}

// append appends events that must be accepted.
func (e *env) append(p *Partition, specs ...Spec) []messages.Event {
	e.Helper()
	events := p.Append(e, specs...)
	e.model.append(events...)
	return events
}

// flush moves the checkpoint, which must be accepted.
func (e *env) flush(p *Partition, checkpoint messages.PLogOffset) {
	e.Helper()
	p.FlushTo(e, checkpoint)
	e.model.partitions[p.id].checkpoint = checkpoint
}

// flushAll moves the checkpoint behind the last event.
func (e *env) flushAll(p *Partition) {
	e.Helper()
	e.flush(p, p.last+1)
}

// same fails the test if the store shows anything else than the model, the
// workspaces without events included.
func (e *env) same(when string) {
	e.Helper()
	got, err := observe(context.WithoutCancel(e.Context()), e.store, firstThree)
	if err != nil {
		e.Fatalf("%s: read: %v", when, err)
	}
	if diff := difference(got, e.model.observe(firstThree)); diff != "" {
		e.Fatalf("%s: the store differs from what was acknowledged: %s", when, diff)
	}
}

// refused fails the test unless err is one of the wanted errors and the write
// has left nothing behind.
func (e *env) refused(what string, err error, want ...error) {
	e.Helper()
	e.isOneOf(what, err, want...)
	e.same("after the refusal of " + what)
}

func (e *env) isOneOf(what string, err error, want ...error) {
	e.Helper()
	for _, w := range want {
		if errors.Is(err, w) {
			return
		}
	}
	e.Fatalf("%s: got error %v, want %v", what, err, want)
}
