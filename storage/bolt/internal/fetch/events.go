package fetch

import (
	"context"
	"iter"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
)

// FirstChunk is how many events a reader copies at first: few, since many readers want one event only. It copies a chunk
// inside one short transaction, closes it and then yields.
const FirstChunk = 16

// The chunks after it have twice as many each, up to these limits.
const (
	maxChunk = 512
	maxBytes = 1 << 20
)

// LoggedEvent is an event, and where it stands in log.db. Errors and faults name that place.
type LoggedEvent struct {
	LSN messages.LSN
	messages.Event
}

// Reader reads a store's log. Before each chunk, Enter says whether it can be read.
type Reader struct {
	Log   *logdb.Log
	Enter func(context.Context) error
}

// LogSource finds all events from an LSN to another.
func LogSource(from, last messages.LSN) Source {
	next := max(from, 1)
	return func(n int) ([]Place, error) {
		var places []Place
		for ; next <= last && n > 0; n-- {
			places = append(places, Place{LSN: next})
			next++
		}
		return places, nil
	}
}

// Events yields the events of a source, chunk by chunk.
func (r Reader) Events(ctx context.Context, begin func() (Source, error)) iter.Seq2[LoggedEvent, error] {
	return func(yield func(LoggedEvent, error) bool) {
		if err := r.Enter(ctx); err != nil {
			yield(LoggedEvent{}, err)
			return
		}
		next, err := begin()
		if err != nil {
			yield(LoggedEvent{}, err)
			return
		}
		for size := FirstChunk; ; size = min(2*size, maxChunk) {
			places, err := next(size)
			if goOn := r.yieldEvents(ctx, places, yield); !goOn {
				return
			}
			if err != nil {
				yield(LoggedEvent{}, err)
				return
			}
			if len(places) == 0 {
				return
			}
		}
	}
}

// yieldEvents reads the events at the places given, as many at a time as the limit
// of bytes allows. It returns false when the read is over.
func (r Reader) yieldEvents(ctx context.Context, places []Place, yield func(LoggedEvent, error) bool) bool {
	for len(places) > 0 {
		if err := r.Enter(ctx); err != nil {
			yield(LoggedEvent{}, err)
			return false
		}
		r.warm(places)
		events, err := r.copyEvents(places)
		for i := range events {
			if i > 0 && ctx.Err() != nil {
				yield(LoggedEvent{}, ctx.Err())
				return false
			}
			if !yield(LoggedEvent{LSN: places[i].LSN, Event: events[i]}, nil) {
				return false
			}
		}
		if err != nil {
			yield(LoggedEvent{}, err)
			return false
		}
		places = places[len(events):]
	}
	return true
}

// warm brings events that lie apart into memory.
func (r Reader) warm(places []Place) {
	if len(places) < 2 || places[len(places)-1].LSN-places[0].LSN < 2*messages.LSN(len(places)) {
		return
	}
	lsns := make([]messages.LSN, len(places))
	for i := range places {
		lsns[i] = places[i].LSN
	}
	r.Log.Warm(lsns)
}

// copyEvents copies events from the head of places until a limit is reached.
func (r Reader) copyEvents(places []Place) ([]messages.Event, error) {
	events := make([]messages.Event, 0, len(places))
	err := r.Log.Read(func(log *logdb.Reader) error {
		var view format.EventView
		bytes := 0
		for i := range places {
			if err := places[i].Read(log, &view); err != nil {
				return err
			}
			events = append(events, view.Event())
			if bytes += events[i].Memory(); bytes >= maxBytes {
				return nil
			}
		}
		return nil
	})
	return events, err
}

// WithoutLSN leaves out where the events stand.
func WithoutLSN(logged iter.Seq2[LoggedEvent, error]) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		for e, err := range logged {
			if !yield(e.Event, err) {
				return
			}
		}
	}
}
