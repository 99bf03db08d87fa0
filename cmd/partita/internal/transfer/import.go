package transfer

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
)

// ImportOptions say how a file is imported.
type ImportOptions struct {
	// Partitions is how many the new store has. Zero means as many as the old one.
	Partitions uint32
	// Workspaces are those whose events are imported. None means all.
	Workspaces []messages.WSID
	// Subscriptions are those of the file, nil if there is none. They want all workspaces.
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
	events := r.checked(o.Subscriptions)
	if len(o.Workspaces) > 0 {
		events, o.Store.Total = only(o.Workspaces, events), 0
	}
	result, err := bolt.Import(ctx, to, d, events, o.Store)
	_, ofLine := errors.AsType[*LineError](err)
	switch {
	case ofLine:
	case errors.Is(err, storage.ErrInvalidEvent) || errors.Is(err, storage.ErrTimeFell):
		err = &LineError{Line: r.line, Cause: err}
	case len(result.Faulty) > 0 && len(o.Workspaces) == 0:
		err = &LineError{Line: result.Faulty[0] + 1, Cause: err}
	case len(result.Faulty) > 0:
		err = fmt.Errorf("event %d of these workspaces: %w", result.Faulty[0], err)
	}
	return result, err
}

// only are the events of some workspaces. They end with an error if one of these has none.
func only(workspaces []messages.WSID, events iter.Seq2[messages.Event, error]) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		found := make(map[messages.WSID]bool)
		for _, ws := range workspaces {
			found[ws] = false
		}
		for e, err := range events {
			if _, wanted := found[e.Workspace]; err == nil && !wanted {
				continue
			}
			found[e.Workspace] = true
			if !yield(e, err) || err != nil {
				return
			}
		}
		for _, ws := range workspaces {
			if !found[ws] {
				yield(messages.Event{}, fmt.Errorf("%w: workspace %d has no event in the file", partition.ErrNoEvent, ws))
				return
			}
		}
	}
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
