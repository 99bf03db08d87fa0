package bolt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
)

// Inspection is what a store says about itself.
type Inspection struct {
	Descriptor messages.Descriptor
	// ID is drawn at random when a store is made or restored; all files carry it.
	ID string
	// Events is the last LSN of the log. Projected is the LSN before which every event is in
	// the projections: where the next open begins to read.
	Events, Projected messages.LSN
	Partitions        []PartitionInspection
	// Workspaces is how many have projections. MoreWorkspaces says that there are more:
	// counting was broken off.
	Workspaces     uint64
	MoreWorkspaces bool
	Log, State     FileInspection
	// WAL is nil if there is no log.wal.
	WAL *WALInspection
	// Subscriptions is nil if there is no subscriptions.db.
	Subscriptions *SubscriptionsInspection
	// StateMissing says that there is no state.db, and so nothing about it.
	StateMissing bool
}

// PartitionInspection is where a partition stands.
type PartitionInspection struct {
	Partition messages.PartitionID
	messages.Register
	// Failed is why it cannot go on, nil if it can.
	Failed error
}

// Lag returns how many events the projections have not yet.
func (p *PartitionInspection) Lag() uint64 {
	if p.Checkpoint > p.Last {
		return 0
	}
	return uint64(p.Last + 1 - p.Checkpoint)
}

// SubscriptionsInspection is about subscriptions.db.
type SubscriptionsInspection struct {
	FileInspection
	// Count is how many subscriptions there are.
	Count uint64
}

// WALInspection is about log.wal.
type WALInspection struct {
	Name string
	// Format is the file's format version.
	Format uint16
	// Size is in bytes.
	Size int64
	// Pending is how many events it has that log.db has not.
	Pending uint64
}

// FileInspection is about one file.
type FileInspection struct {
	Name string
	// Format is the file's format version.
	Format uint16
	// Size is in bytes. Pages are all that are in use or free; free ones are written again.
	Size            int64
	PageSize        int
	Pages, FreePage uint64
}

// maxCountedWorkspaces bounds the time that counting takes: about a microsecond each.
const maxCountedWorkspaces = 100_000

// Inspect returns what the store says about itself. It takes as long as opening a store,
// and a tenth of a second for the workspaces.
func (s *Store) Inspect(ctx context.Context) (Inspection, error) {
	in := Inspection{Descriptor: s.Descriptor(), ID: s.id.String(), Events: messages.LSN(s.lastLSN.Load())}
	if err := s.enter(ctx); err != nil {
		return in, err
	}
	for i := range s.partitions {
		p := &s.partitions[i]
		p.mu.RLock()
		in.Partitions = append(in.Partitions, PartitionInspection{Partition: p.id, Register: p.register(), Failed: p.failed})
		p.mu.RUnlock()
	}
	var err error
	if in.Log, err = s.log.inspect(roleLog); err != nil {
		return in, err
	}
	if in.WAL, err = s.inspectWAL(); err != nil {
		return in, err
	}
	if in.State, err = s.state.inspect(roleState); err != nil {
		return in, err
	}
	if in.Subscriptions, err = s.subscriptions.inspect(); err != nil {
		return in, err
	}
	if in.Projected, err = s.storedProjected(); err != nil {
		return in, err
	}
	in.Workspaces, in.MoreWorkspaces, err = s.countWorkspaces(ctx)
	return in, err
}

// inspectWAL returns nil if there is no file.
func (s *Store) inspectWAL() (*WALInspection, error) {
	info, err := s.directory.stat(walFileName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // as said
	}
	if err != nil {
		return nil, err
	}
	_, values := s.pending.all()
	return &WALInspection{Name: walFileName, Format: walFormat, Size: info.Size(), Pending: uint64(len(values))}, nil
}

func (f *file) inspect(r role) (FileInspection, error) {
	in := FileInspection{Name: r.fileName(), Size: f.size()}
	h, err := f.header(r)
	if err != nil {
		return in, err
	}
	in.Format = h.format
	for range overtaken {
		var at, now int
		err = f.view(func(tx *bbolt.Tx) (err error) {
			// Only in a transaction: the map may be made anew, or be gone, at any other time.
			in.PageSize = f.db.Info().PageSize
			at, in.Pages = tx.ID(), uint64(tx.Size())/uint64(in.PageSize)
			in.FreePage, err = f.freePages(at, in.PageSize)
			return err
		})
		if err == nil {
			return in, nil
		}
		if err := f.view(func(tx *bbolt.Tx) error { now = tx.ID(); return nil }); err != nil {
			return in, err
		}
		if now == at {
			break
		}
	}
	return in, err
}

// inspect returns nil if there is no file.
func (s *subscriptions) inspect() (*SubscriptionsInspection, error) {
	f := s.file.Load()
	if f == nil {
		return nil, nil //nolint:nilnil // as said
	}
	in := &SubscriptionsInspection{}
	var err error
	if in.FileInspection, err = f.inspect(roleSubscriptions); err != nil {
		return nil, err
	}
	err = s.view(func(tx subscriptionTx) (err error) {
		in.Count, err = tx.count()
		return err
	})
	return in, err
}

// overtaken is how often an inspection begins anew because so many commits came between
// the beginning of its transaction and its look at the meta pages that none is left of it.
const overtaken = 100

// freePages returns how many pages are free, as the list says to which the transaction's
// meta page refers.
func (f *file) freePages(tx, pageSize int) (uint64, error) {
	c := &pageCheck{f: f, pageSize: pageSize, used: newBitmap(metaPages)}
	_, freelist, err := c.meta(uint64(tx))
	if err != nil || freelist == noFreelist {
		return 0, err
	}
	var start [pageHeaderLen + 8]byte
	if _, err := f.handle.ReadAt(start[:], int64(freelist)*int64(pageSize)); err != nil {
		return 0, fmt.Errorf("read the freelist of %s: %w", f.name, err)
	}
	free := uint64(pageCount(start[:]))
	if free == manyFree {
		free = binary.NativeEndian.Uint64(start[pageHeaderLen:])
	}
	return free, nil
}

// storedProjected returns how far the log is projected, as stored.
func (s *Store) storedProjected() (messages.LSN, error) {
	n := uint64(1)
	err := s.state.view(func(tx *bbolt.Tx) (err error) {
		if v := tx.Bucket(bucketHeader).Get(keyProjected); v != nil {
			n, err = unsealUint(bucketHeader, keyProjected, v)
		}
		return err
	})
	return messages.LSN(n), err
}

// countWorkspaces counts the workspaces that have an index, by leaping from one to the
// next.
func (s *Store) countWorkspaces(ctx context.Context) (n uint64, more bool, err error) {
	err = s.state.view(func(tx *bbolt.Tx) error {
		c := tx.Bucket(bucketWLog).Cursor()
		for k, _ := c.First(); len(k) == wlogKeyLen; n++ {
			if n == maxCountedWorkspaces {
				more = true
				return nil
			}
			if n%imageChunk == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			k, _ = c.Seek(appendWLogKey(nil, messages.WSID(be64(k)), ^messages.WLogOffset(0)))
		}
		return nil
	})
	return n, more, err
}
