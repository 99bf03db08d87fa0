package subscription

import (
	"fmt"

	"github.com/partita-go/partita/messages"
)

func (l *Lane) positionLoaded(m *messages.PositionLoaded) {
	if m.Generation != l.generation || l.failed(m.Outcome, m.Err, (*Lane).becomeLoading) {
		return
	}
	l.next = max(m.Next, 1)
	l.stored = l.next
	if m.Stopped != "" {
		l.out.Alert, l.config.Restarted = l.config.Restarted, false
		l.becomeHalted(m.Stopped)
		return
	}
	l.becomeWaiting()
}

func (l *Lane) logGrown(m *messages.LogGrown) {
	if m.Generation != l.generation || l.failed(m.Outcome, m.Err, (*Lane).becomeWaiting) {
		return
	}
	l.becomeReading()
}

func (l *Lane) eventsRead(m *messages.EventsRead) {
	if m.Generation != l.generation || l.failed(m.Outcome, m.Err, (*Lane).becomeWaiting) {
		return
	}
	switch {
	case len(m.Events) > 0:
		l.batch = batch{events: m.Events, behind: m.Next}
		l.next = m.Events[0].Offset
		l.becomeHandling()
	case m.Next-l.stored >= maxPassed:
		l.next = m.Next
		l.store(&messages.StorePosition{})
	default:
		l.next = m.Next
		l.becomeWaiting()
	}
}

// failed deals with what the store could not do.
func (l *Lane) failed(o messages.Outcome, err error, again func(*Lane)) bool {
	if o == messages.Done {
		if l.failures > 0 {
			l.failures, l.err = 0, nil
		}
		return false
	}
	if o != messages.Retry {
		l.becomeFailed(err)
		return true
	}
	l.err = err
	l.failures++
	l.becomeRetrying(l.failures, again)
	return true
}

// try hands one event over that was parked.
func (l *Lane) try(from Requester, m *messages.TryEvent) {
	l.trying, l.tryingOf = true, from
	l.become(messages.LaneHandling, (*Lane).stepHandling)
	l.out.Work = &messages.HandleBatch{Generation: l.generation, Events: []messages.LogEvent{m.Event}}
}

func (l *Lane) tried(err error) {
	l.reply(l.tryingOf, &messages.Tried{Err: err})
	l.trying, l.tryingOf = false, nil
	if l.settle(nil) {
		return
	}
	l.becomeHeld()
}

// settle does what was asked for while nobody could be interrupted. Err says why what was
// handled is not durable.
func (l *Lane) settle(err error) bool {
	switch {
	case len(l.stoppers) > 0:
		l.becomeEnded(err)
	case len(l.holders) > 0:
		l.becomeHeld()
	case l.reload:
		l.becomeLoading()
	default:
		return false
	}
	return true
}

// settleBehindPassed stores first what was passed over, if it is not stored: else it would
// count as lag while nobody looks at it.
func (l *Lane) settleBehindPassed() bool {
	switch {
	case l.next == l.stored:
		return l.settle(nil)
	case !l.waitedFor() && !l.reload:
		return false
	}
	l.store(&messages.StorePosition{})
	l.passing = true
	return true
}

func (l *Lane) waitedFor() bool { return len(l.stoppers) > 0 || len(l.holders) > 0 }

func (l *Lane) batchHandled(m *messages.BatchHandled) {
	switch {
	case m.Generation != l.generation:
	case l.trying:
		l.tried(m.Err)
	case m.Err == nil:
		l.err = nil
		l.progress(l.batch.given())
		l.store(&messages.StorePosition{})
	default:
		l.err = m.Err
		l.batchFailed(m)
	}
}

// progress counts events that were handled.
func (l *Lane) progress(n int) {
	l.delivered += uint64(n)
	l.advance(n)
}

// advance goes behind the first events of the batch.
func (l *Lane) advance(n int) {
	b := &l.batch
	if n == len(b.events) {
		l.next = b.behind
		*b = batch{}
		return
	}
	b.events, b.tries = b.events[n:], 0
	l.next = b.events[0].Offset
}

// batchFailed tries again later, or gives the poisonous event up. If it is not known which
// one that is, those of the batch are handed over one by one.
func (l *Lane) batchFailed(m *messages.BatchHandled) {
	b := &l.batch
	known := b.given() == 1 || m.Failed >= 0 && m.Failed < b.given()
	handled := 0
	if known && b.given() > 1 {
		handled = m.Failed
	}
	if handled > 0 {
		l.progress(handled)
	}
	b.tries++
	giveUp := b.tries >= l.config.MaxTries
	switch {
	case giveUp && known:
		l.giveUp(m)
	case handled > 0:
		l.store(&messages.StorePosition{})
	case l.settleBehindPassed():
	case giveUp:
		// An innocent event may fail alone as well, for another reason: it has all the tries.
		b.alone, b.tries = true, 0
		l.becomeHandling()
	default:
		l.becomeRetrying(b.tries, (*Lane).becomeHandling)
	}
}

// giveUp parks the first event of the batch, or stops the subscription because of it.
func (l *Lane) giveUp(m *messages.BatchHandled) {
	offset, trace, tries := l.batch.events[0].Offset, l.batch.events[0].Event.Trace, l.batch.calls
	if l.batch.alone {
		tries += l.batch.tries
	}
	if l.config.StopOnPoison {
		l.store(&messages.StorePosition{
			Stopped: fmt.Sprintf("partition %d, offset %d, after %d tries: %v", l.config.Partition, offset, tries, m.Err),
			Trace:   trace,
		})
		return
	}
	l.batch.alone = false
	l.advance(1)
	l.store(&messages.StorePosition{Trace: trace, Park: &messages.PoisonEvent{
		Partition: l.config.Partition, Offset: offset, Reason: m.Err.Error(), Tries: tries, At: m.At,
	}})
}

// store makes durable that everything before next is done with.
func (l *Lane) store(m *messages.StorePosition) {
	m.Next = l.next
	l.pending, l.passing = m, false
	l.becomeStoring()
}

func (l *Lane) positionStored(m *messages.PositionStored) {
	switch {
	case m.Generation != l.generation:
	case m.Outcome != messages.Done:
		l.notStored(m)
	default:
		l.failures, l.stored = 0, l.pending.Next
		if l.batch.tries == 0 {
			l.err = nil
		}
		l.afterStored()
	}
}

func (l *Lane) afterStored() {
	stopped := l.pending.Stopped
	if l.pending.Park != nil {
		l.parked++
	}
	l.pending = nil
	l.out.Alert = stopped != ""
	switch {
	case l.settle(nil):
	case stopped != "":
		l.becomeHalted(stopped)
	case len(l.batch.events) == 0:
		l.becomeWaiting()
	case l.batch.tries > 0:
		l.becomeRetrying(l.batch.tries, (*Lane).becomeHandling)
	default:
		l.becomeHandling()
	}
}

// notStored tries again for ever, unless somebody waits: what was handled is delivered
// again then, what was passed over is only looked at again.
func (l *Lane) notStored(m *messages.PositionStored) {
	l.err = m.Err
	undone := m.Err
	if l.passing {
		undone = nil
	}
	if l.waitedFor() && l.settle(undone) {
		return
	}
	l.failed(m.Outcome, m.Err, (*Lane).becomeStoring)
}
