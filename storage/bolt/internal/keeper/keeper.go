package keeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/fetch"
	"github.com/partita-go/partita/storage/bolt/internal/files"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/queue"
	"github.com/partita-go/partita/storage/bolt/internal/subsdb"
)

const (
	// queueLen is how many writes of subscriptions wait. A caller beyond them
	// waits as long as its context lets it.
	queueLen = 1024
	// maxRequests is how many of them one transaction serves.
	maxRequests = 1024
)

// Store is what the keeper must know of the store: where its logs end, and where their events are.
type Store interface {
	// LastLSN is the end of the store's log.
	LastLSN() messages.LSN
	// Reaches reports whether the log that a subscription reads has come to an offset.
	Reaches(source *storage.SubscriptionSource, id messages.PartitionID, offset uint64) (bool, error)
	// Place finds an event of that log.
	Place(source *storage.SubscriptionSource, id messages.PartitionID, offset uint64) (fetch.Place, error)
	// HasFailed reports whether a partition has: then it is not known where its log ends.
	HasFailed(id messages.PartitionID) bool
	// Lost is told why nobody knows what is on the disk: nothing may be written any more.
	Lost(err error)
}

// Keeper is the only writer of subscriptions.db. It takes every request that waits, judges
// each one alone, and writes them in one transaction. While it syncs, the next ones gather;
// and lanes that it has answered are let come back, since one that has come too late for a
// commit waits for two.
type Keeper struct {
	// Requests are those that wait.
	Requests chan *Request

	files *files.Set
	store Store
	// closing is closed when nothing more is accepted, ended when the keeper has ended.
	closing <-chan struct{}
	ended   chan struct{}
	pace    queue.Pace
	// making is held by who may make the file.
	making sync.Mutex

	// replica and backlog are nil unless a replicated log has the changes; scribed is closed when the scribe has ended.
	replica Replica
	backlog *backlog
	scribed chan struct{}
}

// Request is a write of subscriptions.db. It shares nothing with its caller.
type Request struct {
	queue.Ticket
	// puts says that it may make the first subscription.
	puts bool
	// judge returns what to write, or why it is refused. It writes nothing itself.
	judge func(subsdb.Tx) ([]subsdb.Change, error)
	// refusal is why this request alone is refused, nil if it is not.
	refusal error
}

// errNothing ends a transaction that would write nothing.
var errNothing = errors.New("nothing to write")

// New is the keeper of a store's files, which accepts nothing more once closing is closed. Run or End must be called.
func New(f *files.Set, s Store, closing <-chan struct{}) *Keeper {
	return &Keeper{Requests: make(chan *Request, queueLen), files: f, store: s, closing: closing, ended: make(chan struct{})}
}

// Run serves requests until the store is closing and none is left.
func (k *Keeper) Run() {
	defer k.End()
	queue.Serve(k.Requests, k.closing, k.serve)
}

// End says that nobody writes, or does so any more.
func (k *Keeper) End() { close(k.ended) }

// Await waits until the keeper has ended.
func (k *Keeper) Await() { <-k.ended }

// keep hands a request to the keeper and waits for its outcome.
func (k *Keeper) keep(ctx context.Context, r *Request) error {
	r.Ticket = queue.NewTicket()
	return queue.HandOver(ctx, k.Requests, r, &r.Ticket, k.closing, k.ended)
}

// serve makes one commit of a request and of those that wait behind it. It returns false
// when the store must not be written any more. A refusal may rest on what is written with
// it: if the commit fails, it fails too.
func (k *Keeper) serve(first *Request) bool {
	batch := k.gather(first)
	err := k.pace.Run(func() error { return k.commit(batch) })
	// A replicated log says itself what became of it.
	unknown := errors.Is(err, messages.ErrOutcomeUnknown) && k.replica == nil
	if unknown {
		k.store.Lost(err)
	}
	for _, r := range batch {
		r.Reply(cmp.Or(err, r.refusal))
	}
	return !unknown
}

// gather returns the requests that wait and whose callers do.
func (k *Keeper) gather(first *Request) (batch []*Request) {
	for r := first; r != nil; r = queue.Next(&k.pace, k.Requests) {
		if r.Claim() {
			batch = append(batch, r)
		}
		if len(batch) == maxRequests {
			break
		}
	}
	return batch
}

func (k *Keeper) commit(batch []*Request) error {
	if len(batch) == 0 {
		return nil
	}
	if k.replica != nil {
		return k.commitReplicated(batch)
	}
	f, err := k.file(batch)
	if err != nil {
		return err
	}
	if f == nil {
		refuseAll(batch)
		return nil
	}
	err = f.Update(func(tx *bbolt.Tx) error { return k.commitTo(subsdb.NewTx(f, tx), batch) })
	if errors.Is(err, errNothing) {
		return nil
	}
	if err == nil {
		k.files.OldSubscriptions = nil
	}
	return err
}

// refuseAll refuses requests where there is no file.
func refuseAll(batch []*Request) {
	for _, r := range batch {
		r.refusal = fmt.Errorf("%w: there is none at all", storage.ErrNoSubscription)
	}
}

func (k *Keeper) commitTo(tx subsdb.Tx, batch []*Request) error {
	changes, err := k.judge(tx, batch)
	if err != nil {
		return err
	}
	// What is there already may not be on the disk yet: a commit vouches for it.
	if len(changes) == 0 && (tx.F.Vouched || !accepts(batch)) {
		return errNothing
	}
	return k.updateHeader(tx)
}

// accepts reports whether a request of a batch is not refused.
func accepts(batch []*Request) bool {
	return slices.ContainsFunc(batch, func(r *Request) bool { return r.refusal == nil })
}

// judge writes what requests change, and returns that.
func (k *Keeper) judge(tx subsdb.Tx, batch []*Request) (all []subsdb.Change, err error) {
	for _, r := range batch {
		var changes []subsdb.Change
		if changes, r.refusal = r.judge(tx); r.refusal != nil {
			continue
		}
		if err := tx.Apply(changes); err != nil {
			return nil, err
		}
		all = append(all, changes...)
	}
	return all, nil
}

// updateHeader says that a file of the first format is one of this format.
func (k *Keeper) updateHeader(tx subsdb.Tx) error {
	if old := k.files.OldSubscriptions; old != nil {
		return tx.Header.Put(format.KeyHeader, old.Encode())
	}
	return nil
}

// file returns the file, and makes it if a request may need it. It returns nil if there is
// none.
func (k *Keeper) file(batch []*Request) (*boltfile.File, error) {
	if slices.ContainsFunc(batch, func(r *Request) bool { return r.puts }) {
		return k.make()
	}
	return k.files.Subscriptions.Load(), nil
}

// make returns the file, and makes it if there is none.
func (k *Keeper) make() (*boltfile.File, error) {
	k.making.Lock()
	defer k.making.Unlock()
	files := k.files
	f := files.Subscriptions.Load()
	if f == nil {
		var err error
		if f, err = files.MakeSubscriptions(); err != nil {
			return nil, err
		}
		files.Subscriptions.Store(f)
	}
	return f, nil
}
