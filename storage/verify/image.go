package verify

import (
	"context"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// Image is a store at rest, read in the order of its files. What its methods hand
// to a callback is lent: it is valid until the callback returns. An error that a
// callback gets says that this one entry is damaged, and the reading goes on. An
// error that a callback returns ends the reading.
type Image interface {
	Descriptor() messages.Descriptor

	// Standing returns where a partition stands. An error that is damage or a
	// conflict says that the partition has failed.
	Standing(ctx context.Context, p messages.PartitionID) (Standing, error)

	// Projected returns the LSN before which every event is said to be projected.
	Projected() messages.LSN

	// Log reads the log in commit order. Of a damaged entry there is no event.
	Log(ctx context.Context, each func(messages.LSN, *messages.Event, error) error) error

	// Event returns one entry of the log.
	Event(ctx context.Context, lsn messages.LSN) (messages.Event, error)

	// PLog reads the index of the partitions' logs in order of its keys, WLog that of
	// the workspaces' logs, from a workspace on.
	PLog(ctx context.Context, each func(PLogEntry, error) error) error
	WLog(ctx context.Context, from messages.WSID, each func(WLogEntry, error) error) error

	// Numbers reads the last numbers in order of the workspaces. Sequence 0 is the kind. Closed says which periods of a
	// workspace have none any more, as [messages.WorkspaceNumbers] does.
	Numbers(ctx context.Context, each func(*NumberEntry, error) error) error
	Closed(ctx context.Context, ws messages.WSID) ([]messages.SequencePeriod, error)

	// Rows reads the records in order of their keys. Damage without a record's id may hide any of the workspace's.
	Rows(ctx context.Context, each func(*RowEntry, error) error) error

	// IDs reads the index of deduplication ids in order of their hashes; of what is damaged
	// there is no LSN. HashID returns an id's hash, and FindID what the index has under a
	// hash.
	IDs(ctx context.Context, each func(hash uint64, lsn messages.LSN, damage error) error) error
	HashID(ws messages.WSID, id messages.DedupID) uint64
	FindID(ctx context.Context, hash uint64) ([]messages.LSN, error)

	// Conflicts reads the conflicts that projections have met.
	Conflicts(ctx context.Context, each func(error) error) error

	// Subscriptions reads the subscriptions in order of their names: each event that one has
	// parked, and then the subscription, without those. Of a damaged one there is no more
	// than the name then, and nothing of damage that is not one subscription's.
	Subscriptions(ctx context.Context, parked func(*storage.Subscription, *storage.ParkedEvent), each func(*storage.Subscription, error) error) error
}

// Standing is where a partition stands.
type Standing struct {
	messages.Register
	// LSN, At and Epoch are what the checkpoint says of the last event before it, zero
	// if there is none.
	LSN   messages.LSN
	At    messages.Timestamp
	Epoch messages.Epoch
	// A flush is under way if Target is not 0: workspaces up to Through are projected up to before Target, the
	// others, and the index of the partition's log, up to before the checkpoint.
	Target  messages.PLogOffset
	Through messages.WSID
}

// PLogEntry is an entry of the index of the partitions' logs.
type PLogEntry struct {
	Partition  messages.PartitionID
	PLogOffset messages.PLogOffset
	LSN        messages.LSN
}

// WLogEntry is an entry of the index of the workspaces' logs.
type WLogEntry struct {
	Workspace  messages.WSID
	WLogOffset messages.WLogOffset
	LSN        messages.LSN
}

// NumberEntry is a last number, of one period if its sequence restarts.
type NumberEntry struct {
	Workspace messages.WSID
	messages.SequenceNumber
	// ClosedBelow is the sequence's first period that is not closed, zero if none is.
	ClosedBelow calendar.Date
	// Zones are the workspace's, beside sequence 0.
	Zones calendar.Zones
}

// RowEntry is a row; the event that wrote it last is named by all three numbers.
type RowEntry struct {
	Workspace  messages.WSID
	ID         messages.RecordID
	Partition  messages.PartitionID
	PLogOffset messages.PLogOffset
	LSN        messages.LSN
	Data       []byte
}
