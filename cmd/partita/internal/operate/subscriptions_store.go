package operate

import (
	"context"
	"errors"
	"fmt"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
)

// storeKeeper is a store that nobody else has open.
type storeKeeper struct {
	dir   string
	store *bolt.Store
	admin *partition.SubscriptionAdmin
}

// openStoreKeeper opens a store: to read it alone, or as the application does, to change its subscriptions.
func openStoreKeeper(ctx context.Context, dir string, reads bool, progress func(bolt.Progress)) (keeper, error) {
	store, err := bolt.OpenExisting(ctx, dir, bolt.Options{ReadOnly: reads, Progress: progress})
	if errors.Is(err, storage.ErrLocked) {
		return nil, fmt.Errorf("%s: %w: a running process has it open, and does not answer. %s", dir, err, howToAsk(dir))
	}
	if err != nil {
		return nil, about(dir, err)
	}
	return &storeKeeper{dir: dir, store: store, admin: partition.NewSubscriptionAdmin(store)}, nil
}

func (k *storeKeeper) close() error { return closeStore(k.store) }

func (k *storeKeeper) list(ctx context.Context) ([]httpapi.Subscription, error) {
	all := []httpapi.Subscription{}
	for status, err := range k.admin.List(ctx, "") {
		if err != nil {
			return nil, about(k.dir, err)
		}
		all = append(all, httpapi.NewSubscription(&status))
	}
	return all, nil
}

func (k *storeKeeper) show(ctx context.Context, name string) (httpapi.Subscription, error) {
	status, err := k.admin.Status(ctx, name)
	if err != nil {
		return httpapi.Subscription{}, about(k.dir, err)
	}
	return httpapi.NewSubscription(&status), nil
}

func (k *storeKeeper) parked(ctx context.Context, name string) ([]httpapi.ParkedEvent, error) {
	all := []httpapi.ParkedEvent{}
	for e, err := range k.admin.Parked(ctx, name, partition.ParkedEvent{}) {
		if err != nil {
			return nil, about(k.dir, err)
		}
		all = append(all, httpapi.NewParkedEvent(&e))
	}
	return all, nil
}

func (k *storeKeeper) change(ctx context.Context, verb, name string, at partition.ParkedEvent) (err error) {
	switch verb {
	case verbPause:
		err = k.admin.Pause(ctx, name)
	case verbResume:
		err = k.admin.Resume(ctx, name)
	case verbSkip:
		err = k.admin.SkipToEnd(ctx, name)
	case verbRewind:
		err = k.admin.Rewind(ctx, name, at.Partition, at.Offset)
	case verbReplay:
		err = k.admin.Replay(ctx, name, at)
	case verbDrop:
		err = k.admin.Drop(ctx, name, at)
	case verbDelete:
		err = k.admin.Delete(ctx, name)
	default:
		err = fmt.Errorf("unknown change %q", verb)
	}
	return about(k.dir, err)
}
