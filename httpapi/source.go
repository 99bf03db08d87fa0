package httpapi

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
)

// source is a log that is read behind a position.
type source interface {
	// events goes on to the end of the log. Each event that it gives moves the position
	// behind that.
	events(ctx context.Context) iter.Seq2[messages.Event, error]
	// await waits until there is another event.
	await(ctx context.Context) error
	// position is the text from which the log can be read on.
	position() string
	// check returns an error if the position is ahead of the log.
	check(ctx context.Context) error
}

// feed is the log of all partitions.
type feed struct{ *partition.Feed }

func (f feed) events(ctx context.Context) iter.Seq2[messages.Event, error] { return f.Events(ctx) }
func (f feed) await(ctx context.Context) error                             { return f.Await(ctx) }
func (f feed) position() string                                            { return f.Cursor().String() }

// check has nothing to do: there is no feed ahead of the log.
func (f feed) check(context.Context) error { return nil }

// newFeed returns the feed behind a position that stands in a field.
func (a *API) newFeed(c *call, field, after string) (source, error) {
	cursor, err := a.reader.ParseCursor(after)
	if err != nil {
		return nil, err
	}
	if err := c.come(field, func(ctx context.Context) error { return a.reader.AwaitCursor(ctx, cursor) }); err != nil {
		return nil, err
	}
	f, err := a.reader.Feed(c.r.Context(), cursor)
	if errors.Is(err, partition.ErrCursor) {
		return nil, ahead(err.Error())
	}
	return feed{f}, err
}

// offsets is the log of a partition or a workspace: of a K.
type offsets[K any, O ~uint64] struct {
	of K
	// last is the offset of the last event that was given.
	last O
	// read is the log from an offset on, there waits until it has come to one, find is the
	// event at one.
	read  func(ctx context.Context, of K, from O) iter.Seq2[messages.Event, error]
	there func(ctx context.Context, of K, at O) error
	find  func(ctx context.Context, of K, at O) (messages.Event, error)
}

func (a *API) wlog(ws messages.WSID, after messages.WLogOffset) source {
	r := a.reader
	return &offsets[messages.WSID, messages.WLogOffset]{of: ws, last: after, read: r.WLog, there: r.AwaitWLog, find: r.WorkspaceEvent}
}

func (a *API) plog(p messages.PartitionID, after messages.PLogOffset) source {
	r := a.reader
	return &offsets[messages.PartitionID, messages.PLogOffset]{of: p, last: after, read: r.PLog, there: r.AwaitPLog, find: r.PartitionEvent}
}

func (l *offsets[K, O]) events(ctx context.Context) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		for e, err := range l.read(ctx, l.of, l.last+1) {
			if err == nil {
				l.last++
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (l *offsets[K, O]) await(ctx context.Context) error { return l.there(ctx, l.of, l.last+1) }

func (l *offsets[K, O]) position() string { return fmt.Sprint(uint64(l.last)) }

func (l *offsets[K, O]) check(ctx context.Context) error {
	if l.last == 0 {
		return nil
	}
	_, err := l.find(ctx, l.of, l.last)
	switch {
	case errors.Is(err, partition.ErrNoEvent):
		return ahead(err.Error())
	case errors.Is(err, storage.ErrDamaged):
		return nil // it is there, and nobody has asked for it
	}
	return err
}

// ahead is the problem of a reader that has seen more than there is.
func ahead(detail string) error {
	return &problem{kind: aheadOfLog, field: paramAfter, cause: partition.ErrCursor, detail: detail + ". The log was restored from an older copy, or the position is of another log"}
}
