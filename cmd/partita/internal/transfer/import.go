package transfer

import (
	"context"
	"errors"
	"iter"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
)

// ImportOptions say how a file is imported.
type ImportOptions struct {
	// Partitions is how many the new store has. Zero means as many as the old one.
	Partitions uint32
	// Subscriptions are those of the file, nil if there is none.
	Subscriptions *Subscriptions
	// Store are the options of the import itself. What the file says is filled in.
	Store bolt.ImportOptions
}

// Import makes a store of a file: see [bolt.Import]. What is wrong with the file is a [*LineError].
func Import(ctx context.Context, r *Reader, to string, o ImportOptions) (bolt.Imported, error) {
	d := r.Header.Descriptor
	if o.Partitions != 0 {
		d.Partitions = o.Partitions
	}
	o.Store.Total, o.Store.Launches = r.Header.Events, r.Header.Launches
	o.Store.KeepEpochs = d.Partitions == r.Header.Descriptor.Partitions
	if o.Subscriptions != nil {
		m, err := newMoving(o.Subscriptions, &r.Header, d.Partitions)
		if err != nil {
			return bolt.Imported{}, err
		}
		o.Store.Placed = m.placed
		o.Store.Subscriptions = func() ([]storage.Subscription, error) { return m.all(r.Digest()) }
	}
	result, err := bolt.Import(ctx, to, d, r.checked(o.Subscriptions), o.Store)
	_, ofLine := errors.AsType[*LineError](err)
	if !ofLine && (errors.Is(err, storage.ErrInvalidEvent) || errors.Is(err, storage.ErrTimeFell)) {
		err = &LineError{Line: r.line, Cause: err}
	}
	return result, err
}

// checked are the events. They end with an error if the subscriptions are not of this file.
func (r *Reader) checked(subscriptions *Subscriptions) iter.Seq2[messages.Event, error] {
	if subscriptions == nil {
		return r.Events()
	}
	return func(yield func(messages.Event, error) bool) {
		for e, err := range r.Events() {
			if !yield(e, err) || err != nil {
				return
			}
		}
		if err := subscriptions.belongTo(r.Digest()); err != nil {
			yield(messages.Event{}, err)
		}
	}
}
