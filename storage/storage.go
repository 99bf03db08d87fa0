package storage

import (
	"context"
	"iter"

	"github.com/partita-go/partita/messages"
)

// Store holds one application. All its methods may be called concurrently and
// obey their context: a call whose context ends before its work was handed over
// returns the context's error and has done nothing.
//
// A write has three outcomes. Durable: the error is nil. Refused: nothing was
// written. Unknown: the error is [messages.ErrOutcomeUnknown], and the write is
// wholly there or not at all. Every error of a write that is not
// ErrOutcomeUnknown means refused.
type Store interface {
	Log
	Projections
	Reader
	Watcher

	// Descriptor returns the application that the store holds, normalized.
	Descriptor() messages.Descriptor

	// Claim takes the open store for an application that is being deployed: two that are
	// deployed over one store take its partitions from each other for ever. It returns what
	// gives the store back, which is harmless when called again. ErrInUse, which names the
	// application that has the store: nothing was taken. [Claim] does it all. A store that
	// wraps another one asks that. ErrForeign if a subscription rests on an event of another log.
	Claim(application string) (release func(), err error)

	// Close finishes the writes that were handed over, refuses everything else
	// with ErrClosed, and releases the store. It returns when that is done or
	// when ctx ends, whichever is first; in the latter case with the context's
	// error, and the release goes on in the background. Closing twice is harmless.
	Close(ctx context.Context) error
}

// Log is the writing side of the log.
type Log interface {
	// TakeEpoch commits a new epoch for the partition and returns where its log
	// and its projections stand. From then on every Append and Flush under an
	// older epoch is refused with ErrFenced, and none of them is under way: the
	// register does not change but by the new epoch's writes; where a Flush before has failed, its checkpoint may still
	// move once, when that flush is finished: a Flush that expects the old one is then refused with ErrCheckpoint.
	// A next log entry whose place is taken by something foreign is a
	// [*ConflictError], a damaged one a [*DamagedError], naming the place.
	TakeEpoch(ctx context.Context, p messages.PartitionID) (Register, error)

	// Append writes a batch, all of it or nothing, and returns when it is durable;
	// it is complete for every reader from then on. Batches that wait at the same
	// time share one commit, each accepted or refused alone.
	//
	// Refusals: ErrFenced (the epoch is not the partition's current one, at every
	// trust level), ErrOutOfOrder (the offsets do not continue the register, or
	// the workspace's log as far as the tail knows it), ErrTimeFell, [*ConflictError]
	// (a key that must be free is not; the check is atomic with the write),
	// [*DuplicateError] (deduplication ids that the log has, at every trust level;
	// atomic too; they come before conflicts), [*LookupError] (ids cannot be looked up, since
	// something is damaged), [*DamagedError], ErrInvalidEvent, ErrTailFull (the projections
	// lag too far behind), ErrFull (no space), ErrForeign (something lies where a file of the store must be), ErrClosed.
	Append(ctx context.Context, b Batch) error
}

// Submitter is implemented by stores that can take a batch without making anybody
// wait for its outcome.
type Submitter interface {
	// Submit hands a batch over, and returns nil if it did. It never blocks: of a batch
	// for which something must be read from disk, or for which there is no room, it returns
	// the rest of the work. Nothing has happened then until that is called, once, on a goroutine
	// that may wait until ctx ends. If rest returns an error, that is what [Log.Append] would have
	// returned, and done is not called; else the batch is handed over.
	//
	// Of a batch that was handed over done is called once, with what Append would have
	// returned, on any goroutine and perhaps before Submit or rest returns. It must neither block
	// nor panic. The store does not keep the slices of the batch after that.
	Submit(b Batch, done func(error)) (rest func(ctx context.Context) error)
}

// Projections is the writing side of what is derived from the log.
type Projections interface {
	// Flush writes the partition's projections of the events from the expected
	// checkpoint up to before the new one, the numbers and the new checkpoint. It may
	// take several transactions: the checkpoint moves in the last one, and what a Flush
	// that was cut off has left is finished by the next one or when the store is opened.
	// So the checkpoint may move further than a Flush that failed has said. Repeating a
	// Flush that has happened is harmless and changes nothing. Flushes that wait at the
	// same time share their transactions.
	//
	// Refusals: ErrFenced; ErrCheckpoint (the stored checkpoint is neither the
	// expected nor the new one, or the new one is lower than the expected one or beyond the log);
	// [*NumbersError] (the numbers are not what the log says); [*ConflictError];
	// [*DamagedError]; ErrFull; ErrClosed.
	Flush(ctx context.Context, f Flush) error

	// Numbers returns the last numbers given out to a workspace as of its partition's
	// checkpoint, or of a Flush that is under way or was cut off. A workspace without events has the zero value.
	//
	// Of a sequence that restarts it returns those of the newest periods, as many as the store has at hand,
	// and of the periods that are asked for; a period that is asked for and not among the result has no
	// number, or is closed. [WorkspaceNumbers].Older says which sequences have periods that are only returned
	// if they are asked for.
	//
	// Periods are closed as [messages.Restart.ClosedBelow] says, by the Flush that makes it so: of all periods that
	// events before the checkpoint have numbers of, and without those that were closed before. A closed one has no
	// numbers any more, and is never opened again.
	Numbers(ctx context.Context, ws messages.WSID, periods ...messages.SequencePeriod) (WorkspaceNumbers, error)
}

// Reader reads the log and the records. What it returns is complete up to the
// last acknowledged Append, and the log is always read as a prefix of it. Sequences stop after
// the first error, which is their last element. No lock and no transaction is
// held while the caller's loop body runs. What is returned is the caller's own
// and is never changed by the store.
type Reader interface {
	// Register returns where a partition stands now, without taking it over.
	Register(ctx context.Context, p messages.PartitionID) (Register, error)

	// Tail returns what the events from the given offset on say about sequences,
	// at most limit of them and at least one unless the log ends there. From must
	// not lie before the checkpoint, else it returns ErrCheckpoint.
	Tail(ctx context.Context, p messages.PartitionID, from messages.PLogOffset, limit int) ([]messages.Numbering, error)

	// PLog returns the events of a partition from an offset on (0 means 1).
	PLog(ctx context.Context, p messages.PartitionID, from messages.PLogOffset) iter.Seq2[messages.Event, error]

	// WLog returns the events of a workspace from an offset on (0 means 1), all that it had when the
	// read began: where one of them is not to be found it ends with a [*DamagedError], as PLog does.
	WLog(ctx context.Context, ws messages.WSID, from messages.WLogOffset) iter.Seq2[messages.Event, error]

	// Records returns the rows of a workspace whose ids lie in the range, in
	// order of their numbers. Each row is as of some moment between the call and its
	// being yielded, complete up to the last Append acknowledged before the call; rows
	// are overwritten, so those of a long range may be of different moments.
	Records(ctx context.Context, ws messages.WSID, r RecordRange) iter.Seq2[Row, error]

	// Find returns the offset of the workspace's event that has the deduplication id,
	// 0 if there is none. The zero id is nobody's.
	Find(ctx context.Context, ws messages.WSID, id messages.DedupID) (messages.WLogOffset, error)
}

// Watcher tells readers that a log has grown, so that nobody looks again and again. Each
// call returns when what it waits for is there, perhaps at once, and can be read; offset 0
// means 1. Else it returns the error of ctx, ErrClosed, or why the partition's log cannot be
// written any more.
type Watcher interface {
	// AwaitPLog waits until a partition's log has come to an offset.
	AwaitPLog(ctx context.Context, p messages.PartitionID, offset messages.PLogOffset) error

	// AwaitWLog waits until a workspace's log has come to an offset.
	AwaitWLog(ctx context.Context, ws messages.WSID, offset messages.WLogOffset) error

	// AwaitAny waits until the store has more events than seen, in all partitions
	// together, and returns how many it has.
	AwaitAny(ctx context.Context, seen uint64) (uint64, error)
}

// Placed is implemented by stores whose place can be taken from them while they are open.
type Placed interface {
	// Displaced returns nil as long as the store is under the name that it was opened by. Else it returns
	// ErrDisplaced: its directory was moved or removed, or that name means another one by now, or its
	// files are not the ones in it any more, and what is opened under it is not this store. This store works on in
	// the directory, and with the files, that it has. It
	// asks the file system, and does not remember.
	Displaced() error
}

// Roomy is implemented by stores that know whether there is room for what is appended.
type Roomy interface {
	// Full returns the ErrFull with which the last Append was refused, nil if it found room, or there is room by now:
	// the store looks for some each second. It does not block.
	Full() error
}

// Sharded is implemented by stores that have some partitions only. The others are somewhere else: their logs are empty here,
// and stay so.
type Sharded interface {
	// Owned returns the partitions that the store has, in order of their ids. They are always the same.
	Owned() []messages.PartitionID
}

// Register is where a partition stands.
type Register = messages.Register

// Batch is a run of events of one partition, written together or not at all.
// The store does not keep the slices after Append has returned.
type Batch struct {
	Partition messages.PartitionID
	Epoch     messages.Epoch
	Events    []messages.Event
}

// Flush moves a partition's projections from one checkpoint to the next.
type Flush struct {
	Partition messages.PartitionID
	Epoch     messages.Epoch
	// Expected is the checkpoint that the numbers start from.
	Expected messages.PLogOffset
	// Checkpoint is the new one: the next offset to replay.
	Checkpoint messages.PLogOffset
	// Numbers are the workspaces whose numbers the events in between changed, in
	// order of their ids: absolute values, and only the sequences that changed.
	// The kind is set for the workspaces whose first event is among them.
	// The store derives the same values from the log and refuses a difference. A
	// sequence that did not change may be listed, with its stored value or with the
	// largest that these events say, since whoever replays a tail cannot know which is
	// larger: the store merges by maximum. Of a sequence that restarts that holds for
	// each period, also for those that this Flush closes. Of a period that is closed already
	// the numbers of the events may be listed or not.
	Numbers []WorkspaceNumbers
}

// WorkspaceNumbers are a workspace's kind and the last numbers given out.
type WorkspaceNumbers = messages.WorkspaceNumbers

// RecordRange selects rows of one sequence: From <= number <= To. A zero To
// means no upper end.
type RecordRange struct {
	Seq      messages.SeqID
	From, To messages.Number
}

// Row is a record as it stands.
type Row struct {
	ID   messages.RecordID
	Data []byte
	// Partition and PLogOffset name the event that wrote it last.
	Partition  messages.PartitionID
	PLogOffset messages.PLogOffset
}
