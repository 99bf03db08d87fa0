package partition

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/partita-go/partita/internal/subscription"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// SubscriptionConfig is what a subscription reads and how it is delivered. Its source
// (Partition, Workspace, Kinds) is fixed when it is made; all else may be another at each
// start.
type SubscriptionConfig struct {
	// Name is that of the subscription in the store, for good: plain text of 1 to 200 bytes.
	Name string
	// Partition or Workspace, at most one, is what is read. Neither: all partitions of the
	// application, each in a lane of its own: one that is slow or fails keeps no other waiting.
	Partition *messages.PartitionID
	Workspace *messages.WSID
	// Kinds are those of the workspaces whose events are delivered, in ascending order. None
	// means all.
	Kinds []messages.WSKind
	// From says where a subscription begins that is new. Default FromBeginning.
	From SubscriptionStart
	// Batch and Bytes bound what the handler gets at once, and what a lane holds in memory:
	// events, and what they take in memory (see [messages.Event.Memory]), which a single event may
	// exceed. Defaults 100 and 1 MiB.
	Batch, Bytes int
	// MinDelay and MaxDelay bound the delay before a batch that failed is tried again. It
	// begins with the first and doubles, with jitter. Defaults 100 ms and 30 s.
	MinDelay, MaxDelay time.Duration
	// MaxTries is how often a batch may fail before its events are handed over one by one, and
	// how often an event alone, or the one that the handler names, before OnPoison says what
	// happens. Default 10: some 40 s with the default delays.
	MaxTries uint32
	// OnPoison says what happens to an event that cannot be handled. Default Park.
	OnPoison PoisonAction
	// HandlerLimit is how long a call of the handler may take before its context ends. Default
	// 1 min.
	HandlerLimit time.Duration
	// Handler gets the events. It is called by one lane at a time, by several lanes at the
	// same time.
	Handler DeliveryHandler
}

// SubscriptionStart is where a subscription begins that is new.
type SubscriptionStart uint8

const (
	// FromBeginning: with the first event of each log.
	FromBeginning SubscriptionStart = iota
	// FromNow: behind the last event.
	FromNow
)

// PoisonAction is what happens to an event that cannot be handled.
type PoisonAction uint8

const (
	// Park puts it aside, with the reason, and goes on with the rest.
	Park PoisonAction = iota
	// Stop stops the subscription, all its lanes, until somebody resumes it. Then the event is
	// tried again.
	Stop
)

// DeliveryHandler handles events. When it returns nil they count as handled, and are never
// delivered again once that is stored; after a crash before, they are. A [*BatchError] says
// which event could not be handled, and that those before it were. A panic is an error.
//
// The context carries the trace that all its events belong to, if there is one. Of events of several traces, act for each
// with its own: [ids.ContextWithTrace] and its field Trace.
//
// It must neither change the events nor hold, rewind or end its own subscription: those wait
// for it.
type DeliveryHandler func(ctx context.Context, d Delivery) error

// Delivery is what a handler gets: some events of one log in their order.
type Delivery struct {
	Subscription string
	Partition    messages.PartitionID
	Events       []DeliveredEvent
}

// DeliveredEvent is an event, and what names its delivery.
type DeliveredEvent struct {
	messages.Event
	// Offset is that of the log which the subscription reads: the workspace's, or the
	// partition's.
	Offset uint64
	// DedupID is the event's [DeliveryID]: an append with it happens once, however often the
	// event is delivered.
	DedupID DedupID
}

// DeliveryID is the deduplication id of an event's delivery to a subscription: the first 16
// bytes of the SHA-256 sum of the domain, the names of the application and of the
// subscription, each behind its length (8 bytes), the partition (4 bytes), the PLog offset,
// the epoch and the time of registration of the event (8 bytes each), all big-endian. Epoch
// and time tell the event from one that had its place before the store was restored from an
// older copy.
func DeliveryID(application, subscription string, e *messages.Event) DedupID {
	b := append(make([]byte, 0, 96+len(application)+len(subscription)), "partita subscription\x00"...)
	for _, name := range []string{application, subscription} {
		b = binary.BigEndian.AppendUint64(b, uint64(len(name)))
		b = append(b, name...)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(e.Partition))
	b = binary.BigEndian.AppendUint64(b, uint64(e.PLogOffset))
	b = binary.BigEndian.AppendUint64(b, uint64(e.Epoch))
	b = binary.BigEndian.AppendUint64(b, uint64(e.RegisteredAt))
	sum := sha256.Sum256(b)
	return DedupID(sum[:len(DedupID{})])
}

// own makes the source the subscription's own: its caller may use the variables again.
func (c *SubscriptionConfig) own() {
	if c.Partition != nil {
		c.Partition = new(*c.Partition)
	}
	if c.Workspace != nil {
		c.Workspace = new(*c.Workspace)
	}
	c.Kinds = slices.Clone(c.Kinds)
}

// WithDefaults returns a copy in which every zero setting has its default.
func (c SubscriptionConfig) WithDefaults() SubscriptionConfig {
	c.Batch = cmp.Or(c.Batch, 100)
	c.Bytes = cmp.Or(c.Bytes, 1<<20)
	c.MinDelay = cmp.Or(c.MinDelay, 100*time.Millisecond)
	c.MaxDelay = cmp.Or(c.MaxDelay, max(30*time.Second, c.MinDelay))
	c.MaxTries = cmp.Or(c.MaxTries, 10)
	c.HandlerLimit = cmp.Or(c.HandlerLimit, time.Minute)
	return c
}

// Validate returns an ErrSettings of package messages that names the first wrong field, or
// nil. It expects defaults to be filled in. What the subscription reads is checked by the
// store.
func (c SubscriptionConfig) Validate() error {
	for _, n := range []struct {
		name       string
		got, least int64
	}{
		{"Batch", int64(c.Batch), 1},
		{"Bytes", int64(c.Bytes), 1},
		{"MinDelay", int64(c.MinDelay), int64(time.Millisecond)},
		{"MaxDelay", int64(c.MaxDelay), int64(c.MinDelay)},
		{"HandlerLimit", int64(c.HandlerLimit), int64(time.Millisecond)},
	} {
		if n.got < n.least {
			return fmt.Errorf("%w: %s: got %d, want at least %d", messages.ErrSettings, n.name, n.got, n.least)
		}
	}
	switch {
	case c.From > FromNow:
		return fmt.Errorf("%w: From: got %d, want FromBeginning or FromNow", messages.ErrSettings, c.From)
	case c.OnPoison > Stop:
		return fmt.Errorf("%w: OnPoison: got %d, want Park or Stop", messages.ErrSettings, c.OnPoison)
	case c.Handler == nil:
		return fmt.Errorf("%w: Handler: got none", messages.ErrSettings)
	}
	return nil
}

func (c *SubscriptionConfig) source() storage.SubscriptionSource {
	return storage.SubscriptionSource{Partition: c.Partition, Workspace: c.Workspace, Kinds: c.Kinds}
}

// lane returns what a lane's core is made of.
func (c *SubscriptionConfig) lane(p messages.PartitionID, seed uint64) subscription.Config {
	return subscription.Config{
		Partition: p, MinDelay: c.MinDelay, MaxDelay: c.MaxDelay, MaxTries: c.MaxTries,
		StopOnPoison: c.OnPoison == Stop, Seed: seed,
	}
}

// deliver calls the handler as a lane's.
func (c *SubscriptionConfig) deliver(application string, p messages.PartitionID) func(context.Context, []messages.LogEvent) error {
	return func(ctx context.Context, events []messages.LogEvent) error {
		d := Delivery{Subscription: c.Name, Partition: p, Events: make([]DeliveredEvent, len(events))}
		for i, e := range events {
			d.Events[i] = DeliveredEvent{Event: e.Event, Offset: e.Offset, DedupID: DeliveryID(application, c.Name, &e.Event)}
		}
		return c.Handler(ctx, d)
	}
}
