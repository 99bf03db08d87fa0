package storagetest

import (
	"context"
	"slices"

	"github.com/partita-go/partita/storage"
)

// reading is a read of parked events at another place, or of another number.
func reading(name string, change func(after *storage.ParkedEvent, limit *int), by ...string) subscriptionBug {
	return subscriptionBug{name: name, by: by,
		parked: func(m *subscriptionMutant, ctx context.Context, name string, after storage.ParkedEvent, limit int) ([]storage.ParkedEvent, error) {
			change(&after, &limit)
			return m.Memory.ParkedEvents(ctx, name, after, limit)
		}}
}

func readParkedBugs() []subscriptionBug {
	const pages, kept = "ParkedEventsInPages", "SubscriptionsAreKept"
	return []subscriptionBug{
		reading("the limit of parked events is passed over", func(_ *storage.ParkedEvent, limit *int) { *limit = 1 << 20 }, pages),
		reading("one parked event more than the limit is read", func(_ *storage.ParkedEvent, limit *int) { *limit++ }, pages, kept),
		reading("the place is read again", func(after *storage.ParkedEvent, _ *int) { after.Offset -= min(after.Offset, 1) }, pages),
		reading("the offset behind the place is left out", func(after *storage.ParkedEvent, _ *int) { after.Offset++ }, pages),
		reading("a place goes by its offset alone", func(after *storage.ParkedEvent, _ *int) { after.Partition = 0 }, pages),
		reading("a place goes by its partition alone", func(after *storage.ParkedEvent, _ *int) { after.Offset = 0 }, pages),
		{name: "the number of parked events is missing", by: []string{"SubscriptionsAreKept"},
			read: func(m *subscriptionMutant, ctx context.Context, name string) (storage.Subscription, error) {
				s, err := m.Memory.Subscription(ctx, name)
				s.ParkedCount = 0
				return s, err
			}},
		{name: "a subscription has its parked events with it", by: []string{"SubscriptionsAreKept"},
			read: func(m *subscriptionMutant, ctx context.Context, name string) (storage.Subscription, error) {
				s, err := m.Memory.Subscription(ctx, name)
				if err == nil {
					s.Parked = slices.Clone(m.disk.subscriptions[name].Parked)
				}
				return s, err
			}},
		{name: "parked events are in reverse", by: []string{kept, pages, subscriptionModel},
			parked: func(m *subscriptionMutant, ctx context.Context, name string, after storage.ParkedEvent, limit int) ([]storage.ParkedEvent, error) {
				page, err := m.Memory.ParkedEvents(ctx, name, after, limit)
				slices.Reverse(page)
				return page, err
			}},
		{name: "parked events are the store's", by: []string{"SubscriptionsAreTheCallersOwn"},
			parked: func(m *subscriptionMutant, ctx context.Context, name string, after storage.ParkedEvent, limit int) ([]storage.ParkedEvent, error) {
				page, err := m.Memory.ParkedEvents(ctx, name, after, limit)
				if err != nil || after.Compare(&storage.ParkedEvent{}) != 0 {
					return page, err
				}
				return m.disk.subscriptions[name].Parked[:len(page)], nil
			}},
		{name: "nobody has parked nothing", by: []string{pages},
			parked: func(m *subscriptionMutant, ctx context.Context, name string, after storage.ParkedEvent, limit int) ([]storage.ParkedEvent, error) {
				if _, there := m.disk.subscriptions[name]; !there {
					return nil, ctx.Err()
				}
				return m.Memory.ParkedEvents(ctx, name, after, limit)
			}},
		{name: "parked events are read without a look at the context", by: []string{"SubscriptionsObeyContexts"},
			parked: func(m *subscriptionMutant, _ context.Context, name string, after storage.ParkedEvent, limit int) ([]storage.ParkedEvent, error) {
				return m.Memory.ParkedEvents(context.Background(), name, after, limit)
			}},
	}
}
