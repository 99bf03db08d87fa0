package keeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/subsdb"
	"github.com/partita-go/partita/storage/replog"
)

// A replicated log may have the changes. Then the keeper judges requests by what the file says, and proposes the changes;
// what the log has accepted, on whichever node that was, waits in the backlog until the scribe has written it to the
// file here. Who reads waits for that.

const (
	// scribeRest is for how long less than scribeBytes waits if nobody waits for it.
	scribeRest  = time.Second
	scribeBytes = 1 << 20
	// maxBacklog is about how much waits at most. Then the log waits for the file.
	maxBacklog = 16 << 20
)

// Proposed are the changes of several requests.
type Proposed struct {
	Changes []subsdb.Change
	// Judged is the head of the last changes by which they were judged.
	Judged uint64
}

// Replica is the store of a replica as its keeper sees it.
type Replica interface {
	// Verify returns nil if this node led at some moment during the call.
	Verify(ctx context.Context) error
	// Propose writes an entry, which is refused if others with changes stand behind Judged.
	Propose(Proposed) error
}

// Replicate makes the keeper that of a replica, before Run. The file of a store whose log.db has no entry of the log that its
// changes are from is of another log: a backup is a store by itself.
func (k *Keeper) Replicate(r Replica) error {
	at, err := k.loadPosition(k.files.Log.Position.Head)
	if err != nil {
		return err
	}
	k.replica, k.backlog = r, newBacklog(at.Head)
	k.scribed = make(chan struct{})
	go k.scribe()
	return nil
}

// loadPosition returns up to where the file has the log, whose head in log.db is given. It writes the file, so that the disk
// has what was read there before log.db goes on: else a loss of power could take it back.
func (k *Keeper) loadPosition(head uint64) (at replog.Position, err error) {
	f := k.files.Subscriptions.Load()
	if f == nil {
		return at, nil
	}
	err = f.Update(func(tx *bbolt.Tx) error {
		header := tx.Bucket(format.BucketHeader)
		v := header.Get(format.KeyReplica)
		if v == nil {
			return nil
		}
		if at, err = format.DecodePosition(format.KeyReplica, v); err != nil {
			return &storage.DamagedError{Where: f.PlaceOf(format.BucketHeader, "%s", format.KeyReplica), Cause: err}
		}
		if at.Head > head {
			at = replog.Position{}
			return header.Delete(format.KeyReplica)
		}
		return nil
	})
	return at, err
}

// commitReplicated judges requests, and proposes what they change.
func (k *Keeper) commitReplicated(batch []*Request) error {
	// What a node says that was replaced, and does not know, may rest on what is old.
	if err := k.replica.Verify(context.Background()); err != nil {
		return err
	}
	judged := k.backlog.last()
	if err := k.awaitFile(context.Background(), judged); err != nil {
		return err
	}
	f, err := k.file(batch)
	if err != nil {
		return err
	}
	if f == nil {
		refuseAll(batch)
		return nil
	}
	var changes []subsdb.Change
	// The changes are tried, and taken back: each request is judged by what those before it do.
	err = f.Update(func(tx *bbolt.Tx) error {
		changes, err = k.judge(subsdb.NewTx(f, tx), batch)
		if err == nil {
			err = errNothing
		}
		return err
	})
	if !errors.Is(err, errNothing) {
		return err
	}
	if len(changes) == 0 {
		return nil
	}
	if err := k.replica.Propose(Proposed{Changes: changes, Judged: judged}); err != nil {
		return err
	}
	// It is there, whatever becomes of the file here: who reads that is told.
	_ = k.awaitFile(context.Background(), k.backlog.last())
	return nil
}

// Last returns the head of the last entry with changes that the log has brought.
func (k *Keeper) Last() uint64 { return k.backlog.last() }

// Take takes what an entry changes, which stands behind a position. An error is why the replica must stop.
func (k *Keeper) Take(before, at replog.Position, changes []subsdb.Change) error {
	if k.backlog.full() {
		if err := k.awaitFile(context.Background(), k.backlog.last()); err != nil {
			return fmt.Errorf("%s: too much waits for it: %w", format.SubscriptionsFileName, err)
		}
	}
	k.backlog.push(newKept(before, at, changes))
	return nil
}

// Drop forgets what was taken of the last entry, which log.db is never given: the replica stops there.
func (k *Keeper) Drop(at replog.Position) { k.backlog.drop(at.Head) }

// Kept returns up to where the file has the log, but not beyond a position.
func (k *Keeper) Kept(to replog.Position) replog.Position {
	if before, waits := k.backlog.first(); waits && before.Head < to.Head {
		return before
	}
	return to
}

// AwaitTaken waits until the file has what the log has brought.
func (k *Keeper) AwaitTaken(ctx context.Context) error {
	if k.replica == nil {
		return nil
	}
	return k.awaitFile(ctx, k.backlog.last())
}

// awaitFile waits until the file has the changes up to a head, or could not be given them.
func (k *Keeper) awaitFile(ctx context.Context, head uint64) error {
	begun := k.backlog.state()
	for now := begun; now.written < head; now = k.backlog.state() {
		if now.tries != begun.tries && now.failed != nil {
			return now.failed
		}
		if now.taken < head { // it was dropped
			return fmt.Errorf("%w: this replica has stopped", storage.ErrClosed)
		}
		k.backlog.hurry()
		select {
		case <-now.more:
		case <-k.scribed:
			return storage.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// EndReplica writes what is left, when the log brings nothing more. What cannot be written the log brings again.
func (k *Keeper) EndReplica() {
	if k.replica != nil {
		close(k.backlog.stop)
		<-k.scribed
	}
}

// scribe writes the backlog to the file.
func (k *Keeper) scribe() {
	defer close(k.scribed)
	defer k.backlog.rest.Stop()
	for stopping := false; !stopping; {
		select {
		case <-k.backlog.wake:
		case <-k.backlog.stop:
			stopping = true
		}
		all := k.backlog.all()
		if len(all) == 0 {
			continue
		}
		err := k.write(all)
		k.backlog.tell(all, err)
		if errors.Is(err, messages.ErrOutcomeUnknown) {
			k.store.Lost(err)
			return
		}
	}
}

// write writes entries, and up to where the file has the log then.
func (k *Keeper) write(all []*kept) error {
	last := all[len(all)-1]
	at := last.at
	// No position may be ahead of the log.
	if err := k.files.Log.AwaitEntry(last.ctx, at.Head); err != nil {
		return err
	}
	f, err := k.make()
	if err != nil {
		return err
	}
	err = f.Update(func(bolt *bbolt.Tx) error {
		tx := subsdb.NewTx(f, bolt)
		for _, e := range all {
			if err := tx.Apply(e.changes); err != nil {
				return err
			}
		}
		if err := k.updateHeader(tx); err != nil {
			return err
		}
		return tx.Header.Put(format.KeyReplica, format.EncodePosition(format.KeyReplica, at))
	})
	if err == nil {
		k.files.OldSubscriptions = nil
	}
	return err
}
