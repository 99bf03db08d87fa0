package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/internal/backoff"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/replog"
)

// How long to wait before the owner is looked for again, unless something changes meanwhile.
const (
	minDelay = 5 * time.Millisecond
	maxDelay = 250 * time.Millisecond
)

// owner is where the application runs, as far as this node knows. The zero value is nowhere.
type owner struct {
	// here is the reign, if it is this node's.
	here *reign
	// node is who leads, if it is another one.
	node replog.NodeID
}

func (o owner) unknown() bool { return o == owner{} }

// owner returns where the application runs, and what is closed when that changes.
func (s *Shard) owner() (o owner, here, there <-chan struct{}) {
	r, here := s.now()
	if r != nil {
		return owner{here: r}, here, nil
	}
	now, there := s.part().leadership()
	if now.Leader != s.o.Node {
		o.node = now.Leader
	}
	return o, here, there
}

// noQuorum is what is said as long as nobody leads.
func (s *Shard) noQuorum() error {
	return &messages.BusyError{Reason: messages.BusyNoQuorum, RetryAfter: s.o.Failover}
}

// usable returns why this node can ask nobody any more, nil if it can.
func (s *Shard) usable() error {
	if s.node.running.Err() != nil {
		return storage.ErrClosed
	}
	if now, _ := s.part().leadership(); now.Stopped != nil {
		return fmt.Errorf("%w: this one takes no part in the log any more: %w", replog.ErrNotOwner, now.Stopped)
	}
	return nil
}

// pursuit tries to get something done, wherever the owner is.
type pursuit struct {
	shard *Shard
	// repeatable says that it may be tried again when nobody knows whether it was done: a read, or an append that has a
	// deduplication id.
	repeatable bool
	// writes says that it matters whether it was done.
	writes bool
	// waits says that it is tried again where the request lane is full.
	waits bool
	// try tries once.
	try func(context.Context, owner) error
	// limit is how long the owner is looked for, 0 as long as the context lasts. It does not bound a try.
	limit time.Duration
	// doubt is why nobody knows whether a try was done, nil if all are known not to.
	doubt    error
	failures int
}

// run tries until there is an answer for the caller, or ctx ends.
func (p *pursuit) run(ctx context.Context) error {
	for begun := time.Now(); ; {
		if err := p.shard.usable(); err != nil {
			return p.final(err)
		}
		o, here, there := p.shard.owner()
		err, again := p.shard.noQuorum(), true
		if !o.unknown() {
			if err = p.attempt(ctx, o); err == nil {
				return nil
			}
			again = p.judge(err)
		}
		if !again || p.limit > 0 && time.Since(begun) > p.limit {
			return p.final(err)
		}
		p.failures++
		after, _ := p.placeIn(err)
		timer := time.NewTimer(max(backoff.Delay(minDelay, maxDelay, p.failures, rand.Float64()), after))
		select {
		case <-here:
		case <-there:
		case <-timer.C:
		case <-p.shard.node.running.Done():
		case <-ctx.Done():
			timer.Stop()
			return p.final(fmt.Errorf("%w: %w", err, context.Cause(ctx)))
		}
		timer.Stop()
	}
}

// judge says whether another try is of use. It remembers that what was tried may have been done.
func (p *pursuit) judge(err error) (again bool) {
	unknown := errors.Is(err, messages.ErrOutcomeUnknown)
	if l, ok := errors.AsType[*lostError](err); ok {
		unknown = l.sent
		again = true
	}
	if unknown && p.writes {
		p.doubt = err
		return p.repeatable
	}
	_, waits := p.placeIn(err)
	return again || unknown || hasMoved(err) || waits
}

// placeIn reports whether an error says that there was no place in a request lane, for which the caller waits, and in what time
// it is to come again.
func (p *pursuit) placeIn(err error) (after time.Duration, waits bool) {
	if busy, ok := errors.AsType[*messages.BusyError](err); ok && p.waits && busy.Reason == messages.BusyMailboxFull {
		return busy.RetryAfter, true
	}
	return 0, false
}

// hasMoved reports whether something was refused since another node owns the log, or will.
func hasMoved(err error) bool {
	if _, ok := errors.AsType[*movedError](err); ok {
		return true
	}
	return slices.ContainsFunc([]error{
		replog.ErrNotOwner, replog.ErrMoved, messages.ErrFenced, messages.ErrStopped, storage.ErrClosed,
	}, func(moved error) bool { return errors.Is(err, moved) })
}

// final is what the caller is told.
func (p *pursuit) final(err error) error {
	if p.doubt == nil || errors.Is(err, messages.ErrOutcomeUnknown) || httpapi.TellsUnwritten(err) {
		return err
	}
	return fmt.Errorf("%w: %w", messages.ErrOutcomeUnknown, err)
}

// movedError is a refusal by a node whose leadership had ended meanwhile, whatever it says.
type movedError struct{ err error }

func (e *movedError) Error() string { return e.err.Error() }
func (e *movedError) Unwrap() error { return e.err }

// lostError is that of a request to another node that has no answer.
type lostError struct {
	// sent says that the other node may have it.
	sent bool
	err  error
}

func (e *lostError) Error() string { return e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// attempt tries once. What another node does not answer is given up some time after that one does not lead any more: it may
// be paused, or cut off.
func (p *pursuit) attempt(ctx context.Context, o owner) error {
	if o.here != nil {
		err := p.try(ctx, o)
		if err != nil && o.here.ctx.Err() != nil && !errors.Is(err, messages.ErrOutcomeUnknown) && isRefusal(err) {
			return &movedError{err}
		}
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	grace := p.shard.o.Failover / 4
	if !p.repeatable {
		grace = 2 * p.shard.o.Failover
	}
	go p.shard.giveUp(ctx, o.node, grace, cancel)
	return p.try(ctx, o)
}

// isRefusal reports whether an error is one that a partition returns while it ends.
func isRefusal(err error) bool {
	return slices.ContainsFunc([]error{
		messages.ErrBusy, messages.ErrPartitionFailed, messages.ErrInterrupted,
	}, func(refusal error) bool { return errors.Is(err, refusal) })
}

// giveUp cancels what waits for a node, some time after that does not lead any more. It ends with ctx.
func (s *Shard) giveUp(ctx context.Context, id replog.NodeID, grace time.Duration, cancel context.CancelCauseFunc) {
	for {
		now, changed := s.part().leadership()
		if now.Leader != id && now.Leader != "" {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-timer.C:
		cancel(errReplaced)
	case <-ctx.Done():
	}
}
