package bolt

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/dedup"
	"github.com/partita-go/partita/storage/bolt/internal/files"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/keeper"
	"github.com/partita-go/partita/storage/bolt/internal/launches"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
	"github.com/partita-go/partita/storage/bolt/internal/meter"
	"github.com/partita-go/partita/storage/bolt/internal/queue"
	"github.com/partita-go/partita/storage/bolt/internal/room"
	"github.com/partita-go/partita/storage/bolt/internal/schema"
	"github.com/partita-go/partita/storage/bolt/internal/tail"
	"github.com/partita-go/partita/storage/internal/watch"
	"github.com/partita-go/partita/storage/replog"
)

// Lengths of queues. A caller beyond them waits as long as its context lets it.
const (
	writeQueueLen = 1024
	flushQueueLen = 1024
)

// Store is a [storage.Store] in two bbolt files, a third one for subscriptions, and a
// write-ahead log before the first. Open and OpenExisting make it.
type Store struct {
	schema  *schema.Schema
	options Options
	shares  shares

	files *files.Set
	// log and state are two of them.
	log   *logdb.Log
	state *boltfile.File

	claim storage.Claim

	// partitions are all of the application's, by id.
	partitions []partition
	// lastLSN is the log's last entry that is published. Tails are published first:
	// whoever reads lastLSN finds every event up to it in a tail or in state.db.
	lastLSN atomic.Uint64
	// projected is the LSN before which every event is in state.db: where the next
	// open begins to read. Only the flusher changes it.
	projected messages.LSN
	// witness is the newest event that a flush has read. Only the flusher changes it.
	witness format.Witness
	// unfinished says that a partition has a flush to be finished. Only the flusher changes it.
	unfinished bool
	// tables are the memory of flushes. Only the flusher uses them, and Open before it.
	tables flushTables
	// hold is the first entry of the log that Open found damaged or missing, 0 if
	// none: projected does not pass it, so that the next open finds it too.
	hold messages.LSN
	// stuck are the merges of deduplication ids that have met damage since Open. Only
	// the flusher changes it.
	stuck dedup.StuckMerges
	// known knows of most deduplication ids that state.db has not got them; nil if the store is only read.
	known *dedup.Filter

	// replica is nil unless a replicated log takes the place of log.wal.
	replica *replica

	subscriptions *keeper.Keeper
	launches      *launches.Book

	// broken is set when the log's next place is taken: nothing can be appended.
	broken atomic.Pointer[error]
	// board is where those wait who follow a log.
	board watch.Board
	room  *room.Room

	// tails are the sizes of all tails.
	tails tail.Totals
	meter meter.Meter

	writes chan *writeRequest
	// door lets in those to the committer that nobody waits for.
	door    queue.Door[*writeRequest]
	flushes chan *flushRequest
	// closing is closed when nothing more is accepted. committed and flushed are
	// closed when the committer and the flusher have ended: a request that has no
	// answer by then was never taken. released is closed when the files are.
	closing, committed, flushed, released chan struct{}
	closeOnce                             sync.Once
	// cause is why the store has closed itself.
	cause      atomic.Pointer[error]
	releaseErr error
}

var (
	_ storage.Store     = (*Store)(nil)
	_ storage.Placed    = (*Store)(nil)
	_ storage.Roomy     = (*Store)(nil)
	_ storage.Submitter = (*Store)(nil)
)

// Descriptor returns the application that the store holds, normalized.
func (s *Store) Descriptor() messages.Descriptor { return s.files.Descriptor.Normalized() }

// Found returns the descriptor that the store had before [Open] has extended it: [messages.Descriptor.Added] tells what was
// added. It is nil if Open has made the store.
func (s *Store) Found() *messages.Descriptor {
	if s.files.Found == nil {
		return nil
	}
	d := s.files.Found.Normalized()
	return &d
}

// Displaced implements [storage.Placed]. The directory is looked for under the name that it was opened by, as that
// was to be read then: a change of the working directory does not matter.
func (s *Store) Displaced() error {
	if err := s.files.Directory.Displaced(); err != nil {
		return err
	}
	return s.log.InPlace()
}

// Full implements [storage.Roomy].
func (s *Store) Full() error { return s.room.Full() }

// Claim implements [storage.Store]. It also returns ErrForeign if a subscription rests on an event of
// another log: the log may have lost its end. The store opens, so that the subscription can be rewound or deleted.
func (s *Store) Claim(application string) (func(), error) {
	if err := s.subscriptions.CheckOwn(); err != nil {
		return nil, err
	}
	return s.claim.Take(application)
}

// start lets the committer, the flusher and the keeper run.
func (s *Store) start() {
	s.writes = make(chan *writeRequest, writeQueueLen)
	s.flushes = make(chan *flushRequest, flushQueueLen)
	s.closing = make(chan struct{})
	s.committed = make(chan struct{})
	s.flushed = make(chan struct{})
	s.released = make(chan struct{})
	// There is room if log.db takes what it is given, and the disk what log.wal grows by.
	s.room = room.New(func() bool { return s.log.Refused() == nil && room.Try(s.files.Directory) == nil }, s.closing)
	s.subscriptions = keeper.New(s.files, followed{s}, s.closing)
	s.launches = launches.New(s.files, s.checkOpen)
	if s.options.ReadOnly {
		s.subscriptions.End()
		close(s.committed)
		close(s.flushed)
		return
	}
	if log := s.options.Log; log != nil {
		s.replica = &replica{s: s, log: log, taken: make(chan struct{}, 1), followed: make(chan struct{})}
		s.log.Replicate(log.Trim, s.subscriptions.Kept)
	}
	s.log.Memory = s.shares.pending
	s.shares.besideAppends()
	s.log.Start(s.logFailed)
	go newCommitter(s).run()
	go newFlusher(s).run()
	go s.subscriptions.Run()
}

// Close finishes the writes that were handed over, refuses everything else with
// ErrClosed, and releases the files. If ctx ends first it returns the context's
// error and the rest goes on in the background.
func (s *Store) Close(ctx context.Context) error {
	s.triggerClose()
	select {
	case <-s.released:
		return s.releaseErr
	case <-ctx.Done():
		return ctx.Err()
	}
}

// triggerClose begins to close the store. It does not wait: the committer and the
// flusher close the store themselves when the outcome of a commit is unknown.
func (s *Store) triggerClose() {
	s.closeOnce.Do(func() {
		close(s.closing)
		s.board.RingAll()
		go s.release()
	})
}

func (s *Store) release() {
	<-s.committed
	<-s.flushed
	s.subscriptions.Await()
	s.known.Await()
	s.room.Await()
	if s.replica != nil {
		s.releaseErr = s.replica.end()
		s.subscriptions.EndReplica()
	}
	s.launches.End()
	s.releaseErr = errors.Join(s.releaseErr, s.files.Close())
	close(s.released)
}

// checkOpen returns ErrClosed once the store is closing.
func (s *Store) checkOpen() error {
	select {
	case <-s.closing:
		if cause := s.Failed(); cause != nil {
			return fmt.Errorf("%w: %v", storage.ErrClosed, cause) //nolint:errorlint // its outcome is not the caller's
		}
		return storage.ErrClosed
	default:
		return nil
	}
}

// enter is the first thing that each method does.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.checkOpen()
}

// enterRead is enter for whoever is to read what anybody was told to be there.
func (s *Store) enterRead(ctx context.Context) error {
	if err := s.enter(ctx); err != nil || s.replica == nil || replog.IsLocal(ctx) {
		return err
	}
	return s.replica.reads.Verify(ctx, s.replica.log)
}

// mayWrite is enter for whoever writes.
func (s *Store) mayWrite(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	if s.options.ReadOnly {
		return ErrReadOnly
	}
	return nil
}

// logFailed is told why log.db cannot take what is in log.wal.
func (s *Store) logFailed(err error) {
	if errors.Is(err, messages.ErrOutcomeUnknown) {
		s.closeBy(err)
		return
	}
	s.breakBy(err)
}

// closeBy closes the store by itself: nobody knows what is on the disk.
func (s *Store) closeBy(err error) {
	s.cause.CompareAndSwap(nil, &err)
	s.triggerClose()
}

// Failed returns why the store has closed itself, nil while it works and if only [Store.Close] has closed it. A store closes
// itself when the outcome of a commit to its files is unknown ([messages.ErrOutcomeUnknown]): all else that it is asked for
// is refused with [storage.ErrClosed], and with Options.Log its side of the log is closed, whose Leadership does not tell.
// Close it, and open it again. It may be called at any time, after Close, too.
func (s *Store) Failed() error {
	if cause := s.cause.Load(); cause != nil {
		return *cause
	}
	return nil
}

// breakBy lets nothing be appended any more, and tells those who wait for it. The first cause stays.
func (s *Store) breakBy(err error) {
	s.broken.CompareAndSwap(nil, &err)
	s.board.RingAll()
}

// brokenBy returns why nothing can be appended, nil if it can.
func (s *Store) brokenBy() error {
	if err := s.broken.Load(); err != nil {
		return *err
	}
	return nil
}

// partition returns a partition of the application.
func (s *Store) partition(id messages.PartitionID) (*partition, error) {
	if err := mustHave(id, len(s.partitions)); err != nil {
		return nil, err
	}
	return &s.partitions[id], nil
}

// mustHave returns ErrWrongPartition if an application of so many partitions has not got one.
func mustHave(id messages.PartitionID, partitions int) error {
	if uint64(id) >= uint64(partitions) {
		return fmt.Errorf("%w: partition %d: the application has %d", messages.ErrWrongPartition, id, partitions)
	}
	return nil
}

func (s *Store) partitionOf(ws messages.WSID) *partition {
	return &s.partitions[messages.PartitionOf(ws, s.schema.Partitions)]
}
