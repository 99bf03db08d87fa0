package actors

import (
	"context"
	"errors"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// append writes batches of events.
func (l *leaf) append(ctx actor.Context, m messages.AppenderMessage) {
	switch m := m.(type) {
	case *messages.WriteEvents:
		l.write(ctx, m)
	}
}

// write answers, or lets the store answer: then the leaf need not be woken for it.
func (l *leaf) write(ctx actor.Context, m *messages.WriteEvents) {
	answer := answerTo(ctx.ActorSystem().Root, ctx.Parent(), m)
	r := l.rest.Swap(nil)
	if r == nil || r.generation != m.Generation || r.first != m.Events[0].PLogOffset {
		answer(l.store.Append(l.ctx, l.batch(m)))
		return
	}
	if err := r.do(l.ctx); err != nil {
		answer(err)
	}
}

// rest is what a store has left to do of a batch, which is the one of a generation that begins at an offset.
type rest struct {
	generation uint64
	first      messages.PLogOffset
	do         func(context.Context) error
}

// answerTo returns what tells a partition the outcome of a batch.
func answerTo(root *actor.RootContext, partition *actor.PID, m *messages.WriteEvents) func(error) {
	generation, first, trace := m.Generation, m.Events[0].PLogOffset, messages.TraceOfEvents(m.Events)
	return func(err error) { root.Send(partition, eventsWritten(generation, first, trace, err)) }
}

func (l *leaf) batch(m *messages.WriteEvents) storage.Batch {
	return storage.Batch{Partition: l.partition, Epoch: m.Epoch, Events: m.Events}
}

// eventsWritten is the answer about a batch.
func eventsWritten(generation uint64, first messages.PLogOffset, trace ids.TraceID, err error) *messages.EventsWritten {
	answer := &messages.EventsWritten{Generation: generation, First: first, Trace: trace, Err: err}
	answer.Outcome, answer.Refused = writeOutcomeOf(err)
	return answer
}

// writeOutcomeOf says what an error of Append means to the partition, and which
// events it is about.
func writeOutcomeOf(err error) (messages.WriteOutcome, []messages.RefusedEvent) {
	switch {
	case err == nil:
		return messages.WriteDone, nil
	case errors.Is(err, messages.ErrOutcomeUnknown):
		return messages.WriteUnknown, nil
	case errors.Is(err, messages.ErrFenced):
		return messages.WriteFenced, nil
	case errors.Is(err, storage.ErrTailFull):
		return messages.WriteTailFull, nil
	case errors.Is(err, storage.ErrFull), errors.Is(err, storage.ErrForeign), isContextError(err):
		return messages.WriteFailed, nil
	}
	if refused := refusedEvents(err); len(refused) > 0 {
		return messages.WriteRefused, refused
	}
	if isDivergence(err) {
		return messages.WriteDiverged, nil
	}
	return messages.WriteRefused, nil
}

// refusedEvents returns the events that an error names.
func refusedEvents(err error) []messages.RefusedEvent {
	if duplicates, ok := errors.AsType[*storage.DuplicateError](err); ok {
		refused := make([]messages.RefusedEvent, 0, len(duplicates.Duplicates))
		for _, d := range duplicates.Duplicates {
			refused = append(refused, messages.RefusedEvent{PLogOffset: d.PLogOffset, Duplicate: d.First})
		}
		return refused
	}
	if lookup, ok := errors.AsType[*storage.LookupError](err); ok {
		refused := make([]messages.RefusedEvent, 0, len(lookup.PLogOffsets))
		for _, o := range lookup.PLogOffsets {
			refused = append(refused, messages.RefusedEvent{PLogOffset: o})
		}
		return refused
	}
	if invalid, ok := errors.AsType[*storage.InvalidEventError](err); ok {
		return []messages.RefusedEvent{{PLogOffset: invalid.PLogOffset}}
	}
	conflict, ok := errors.AsType[*storage.ConflictError](err)
	if !ok {
		return nil
	}
	event := messages.RefusedEvent{PLogOffset: conflict.PLogOffset}
	switch conflict.Place {
	case storage.PlaceWLog:
		event.Taken = messages.SequenceNumber{Seq: messages.SeqWLogOffset, Number: messages.Number(conflict.WLogOffset)}
	case storage.PlaceRecord:
		event.Taken = conflict.Record.SequenceNumber()
	case storage.PlaceLog, storage.PlacePLog:
		return nil
	}
	return []messages.RefusedEvent{event}
}

// isDivergence reports whether the store refused a batch because of what the
// partition holds, or takes nothing any more. Damage says nothing about what it
// holds.
func isDivergence(err error) bool {
	for _, known := range []error{
		storage.ErrOutOfOrder, storage.ErrTimeFell, storage.ErrConflict, storage.ErrClosed, storage.ErrReadOnly,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}
