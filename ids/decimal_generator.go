package ids

import (
	"context"
	"fmt"
	"sync/atomic"
)

// GeneratorCounter gives out the numbers of generators. A bolt.Store is one: it keeps them in a file of its own, ids.db.
type GeneratorCounter interface {
	// NextGenerator returns a number that it never returned for this launch before, whatever has crashed since: it is
	// durable when it is returned. Numbers begin at 1; one above [MaxGenerator] says that there is none left. It is safe
	// for concurrent use.
	NextGenerator(ctx context.Context, launch uint32) (uint32, error)
}

// DecimalGenerator makes decimal ids. It is safe for concurrent use. It gives ids that rise, and takes another number of
// a generator after 922,337,202 of them: then they begin low again.
//
// Ids of generators that have the same [GeneratorCounter] never repeat, also across crashes. Whoever puts the counter
// back, by restoring an old copy of it, must use a new launch number.
type DecimalGenerator struct {
	// last is the last id.
	last    atomic.Uint64
	counter GeneratorCounter
	launch  uint32
	// taking is full as long as somebody takes a number of a generator.
	taking chan struct{}
}

// NewDecimalGenerator returns a generator with a number out of a counter. The launch is 1 to [MaxLaunch], and is given by
// the deployment; else that is [ErrLaunch]. It returns what the counter returns, [ErrLaunchUsedUp] above all.
func NewDecimalGenerator(ctx context.Context, c GeneratorCounter, launch uint32) (*DecimalGenerator, error) {
	if err := ValidateLaunch(launch); err != nil {
		return nil, err
	}
	return newDecimalGenerator(ctx, c, launch)
}

// NewTestDecimalGenerator is [NewDecimalGenerator] for tests: its ids are of launch 0, and no other's are.
func NewTestDecimalGenerator(ctx context.Context, c GeneratorCounter) (*DecimalGenerator, error) {
	return newDecimalGenerator(ctx, c, 0)
}

// ValidateLaunch returns [ErrLaunch] unless a launch number is one of 1 to [MaxLaunch]. 0 is what a deployment gives that
// has forgotten it.
func ValidateLaunch(launch uint32) error {
	if launch < 1 || launch > MaxLaunch {
		return fmt.Errorf("%w: got %d, want 1 to %d", ErrLaunch, launch, MaxLaunch)
	}
	return nil
}

func newDecimalGenerator(ctx context.Context, c GeneratorCounter, launch uint32) (*DecimalGenerator, error) {
	g := &DecimalGenerator{counter: c, launch: launch, taking: make(chan struct{}, 1)}
	if err := g.begin(ctx); err != nil {
		return nil, err
	}
	return g, nil
}

// Next returns the next id. It looks at the context only when the counter is used up and a number of a generator must be
// taken; if that fails it returns why, and the next call tries again.
func (g *DecimalGenerator) Next(ctx context.Context) (DecimalID, error) {
	for {
		last := g.last.Load()
		if last/counterFactor >= maxDecimalCounter {
			if err := g.takeNumber(ctx); err != nil {
				return 0, err
			}
			continue
		}
		if next := last + counterFactor; g.last.CompareAndSwap(last, next) {
			return DecimalID(next), nil
		}
	}
}

// takeNumber begins anew, unless somebody else has done it meanwhile.
func (g *DecimalGenerator) takeNumber(ctx context.Context) error {
	select {
	case g.taking <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-g.taking }()
	if g.last.Load()/counterFactor < maxDecimalCounter {
		return nil
	}
	return g.begin(ctx)
}

// begin takes a number, and is then before the first id.
func (g *DecimalGenerator) begin(ctx context.Context) error {
	number, err := g.counter.NextGenerator(ctx, g.launch)
	switch {
	case err != nil:
		return fmt.Errorf("launch %d: next generator: %w", g.launch, err)
	case number < 1 || number > MaxGenerator:
		return fmt.Errorf("%w: launch %d: got generator %d, want 1 to %d", ErrLaunchUsedUp, g.launch, number, MaxGenerator)
	}
	g.last.Store(uint64(number)*generatorFactor + uint64(g.launch))
	return nil
}
