package bolt

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/queue"
	"github.com/partita-go/partita/storage/bolt/internal/subsdb"
)

const (
	// subscriptionQueueLen is how many writes of subscriptions wait. A caller beyond them
	// waits as long as its context lets it.
	subscriptionQueueLen = 1024
	// maxKeptRequests is how many of them one transaction serves.
	maxKeptRequests = 1024
)

// subscriptionRequest is a write of subscriptions.db. It shares nothing with its caller.
type subscriptionRequest struct {
	queue.Ticket
	// puts says that it may make the first subscription.
	puts bool
	// judge returns what to write, or why it is refused. It writes nothing itself.
	judge func(subsdb.Tx) ([]subsdb.Change, error)
	// refusal is why this request alone is refused, nil if it is not.
	refusal error
}

// keep hands a request to the keeper and waits for its outcome.
func (s *Store) keep(ctx context.Context, r *subscriptionRequest) error {
	r.Ticket = queue.NewTicket()
	return queue.HandOver(ctx, s.subscriptions.requests, r, &r.Ticket, s.closing, s.subscriptions.ended)
}

// keeper is the only writer of subscriptions.db. It takes every request that waits, judges
// each one alone, and writes them in one transaction. While it syncs, the next ones gather;
// and lanes that it has answered are let come back, since one that has come too late for a
// commit waits for two.
type keeper struct {
	s    *Store
	pace queue.Pace
}

func newKeeper(s *Store) *keeper { return &keeper{s: s} }

func (k *keeper) run() {
	defer close(k.s.subscriptions.ended)
	queue.Serve(k.s.subscriptions.requests, k.s.closing, k.serve)
}

// serve makes one commit of a request and of those that wait behind it. It returns false
// when the store must not be written any more. A refusal may rest on what is written with
// it: if the commit fails, it fails too.
func (k *keeper) serve(first *subscriptionRequest) bool {
	batch := k.gather(first)
	err := k.pace.Run(func() error { return k.commit(batch) })
	unknown := errors.Is(err, messages.ErrOutcomeUnknown)
	if unknown {
		k.s.triggerClose()
	}
	for _, r := range batch {
		r.Reply(cmp.Or(err, r.refusal))
	}
	return !unknown
}

// gather returns the requests that wait and whose callers do.
func (k *keeper) gather(first *subscriptionRequest) (batch []*subscriptionRequest) {
	for r := first; r != nil; r = queue.Next(&k.pace, k.s.subscriptions.requests) {
		if r.Claim() {
			batch = append(batch, r)
		}
		if len(batch) == maxKeptRequests {
			break
		}
	}
	return batch
}

func (k *keeper) commit(batch []*subscriptionRequest) error {
	if len(batch) == 0 {
		return nil
	}
	f, err := k.file(batch)
	if err != nil {
		return err
	}
	if f == nil {
		for _, r := range batch {
			r.refusal = fmt.Errorf("%w: there is none at all", storage.ErrNoSubscription)
		}
		return nil
	}
	err = f.Update(func(tx *bbolt.Tx) error { return k.write(subsdb.NewTx(f, tx), batch) })
	if errors.Is(err, errNothing) {
		return nil
	}
	if err == nil {
		k.s.files.OldSubscriptions = nil
	}
	return err
}

func (k *keeper) write(tx subsdb.Tx, batch []*subscriptionRequest) error {
	// What is there already may not be on the disk yet: a commit vouches for it.
	written := false
	for _, r := range batch {
		var changes []subsdb.Change
		if changes, r.refusal = r.judge(tx); r.refusal != nil {
			continue
		}
		if err := tx.Apply(changes); err != nil {
			return err
		}
		written = written || len(changes) > 0 || !tx.F.Vouched
	}
	if !written {
		return errNothing
	}
	if old := k.s.files.OldSubscriptions; old != nil {
		if err := tx.Header.Put(format.KeyHeader, old.Encode()); err != nil {
			return err
		}
	}
	return nil
}

// file returns the file, and makes it if a request may need it. It returns nil if there is
// none.
func (k *keeper) file(batch []*subscriptionRequest) (*boltfile.File, error) {
	files := k.s.files
	f := files.Subscriptions.Load()
	for i := 0; f == nil && i < len(batch); i++ {
		if !batch[i].puts {
			continue
		}
		var err error
		if f, err = files.MakeSubscriptions(); err != nil {
			return nil, err
		}
		files.Subscriptions.Store(f)
	}
	return f, nil
}
