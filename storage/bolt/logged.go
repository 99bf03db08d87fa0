package bolt

import (
	"context"
	"iter"

	"github.com/partita-go/partita/messages"
)

// LoggedEvent is an event, and where it stands in log.db. Errors and faults name that place.
type LoggedEvent struct {
	LSN messages.LSN
	messages.Event
}

// Log returns all events of the store in commit order from an LSN on (0 means 1):
// the plain scan. It obeys the rules of [storage.Reader].
func (s *Store) Log(ctx context.Context, from messages.LSN) iter.Seq2[messages.Event, error] {
	return withoutLSN(s.LogWithLSN(ctx, from))
}

// PLog implements [storage.Reader].
func (s *Store) PLog(ctx context.Context, id messages.PartitionID, from messages.PLogOffset) iter.Seq2[messages.Event, error] {
	return withoutLSN(s.PLogWithLSN(ctx, id, from))
}

// WLog implements [storage.Reader].
func (s *Store) WLog(ctx context.Context, ws messages.WSID, from messages.WLogOffset) iter.Seq2[messages.Event, error] {
	return withoutLSN(s.WLogWithLSN(ctx, ws, from))
}

// Log returns all events in commit order from an LSN on, like [Store.Log].
func (l *LogFile) Log(ctx context.Context, from messages.LSN) iter.Seq2[messages.Event, error] {
	return withoutLSN(l.LogWithLSN(ctx, from))
}

// PLog is [LogFile.PLogWithLSN] without the LSNs.
func (l *LogFile) PLog(ctx context.Context, id messages.PartitionID, from messages.PLogOffset) iter.Seq2[messages.Event, error] {
	return withoutLSN(l.PLogWithLSN(ctx, id, from))
}

// WLog is [LogFile.WLogWithLSN] without the LSNs.
func (l *LogFile) WLog(ctx context.Context, ws messages.WSID, from messages.WLogOffset) iter.Seq2[messages.Event, error] {
	return withoutLSN(l.WLogWithLSN(ctx, ws, from))
}

func withoutLSN(logged iter.Seq2[LoggedEvent, error]) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		for e, err := range logged {
			if !yield(e.Event, err) {
				return
			}
		}
	}
}
