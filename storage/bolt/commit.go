package bolt

import (
	"context"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
)

// commit makes durable what was accepted: in log.wal, or in log.db if that must have it
// at once.
func (c *committer) commit() error {
	values := c.seal()
	size := wal.Size(values)
	write := func() error { return c.writeAhead(size, values) }
	switch {
	case c.takesEpoch() || size > c.s.wal.Half:
		write = func() error { return c.writeLog(values) }
	case len(values) == 0:
		return nil
	}
	err := write()
	if err == nil {
		c.s.counts.commits.Add(1)
	}
	return err
}

// seal finishes the events that were accepted, and returns them.
func (c *committer) seal() [][]byte {
	lsn := messages.LSN(c.s.lastLSN.Load())
	values := make([][]byte, 0, c.staged.events)
	for _, r := range c.staged.accepted {
		for i := range r.events {
			lsn++
			format.SealEvent(r.events[i].value, lsn)
			values = append(values, r.events[i].value)
		}
	}
	return values
}

func (c *committer) takesEpoch() bool {
	return slices.ContainsFunc(c.staged.accepted, func(r *writeRequest) bool { return r.takeEpoch })
}

// writeLog writes to log.db. Epochs alone do not wait for what is pending: they may be newer
// than the log, and must be taken although log.db has no room for events.
func (c *committer) writeLog(values [][]byte) error {
	last := messages.LSN(c.s.lastLSN.Load())
	if len(values) > 0 {
		if err := c.s.awaitApplied(context.Background(), last); err != nil {
			return err
		}
	}
	applied := c.s.pending.state().next - 1
	err := c.s.log.Update(func(tx *bbolt.Tx) error {
		for _, r := range c.staged.accepted {
			if !r.takeEpoch {
				continue
			}
			if err := putEpoch(tx.Bucket(format.BucketEpochs), r.partition.id, r.epoch); err != nil {
				return err
			}
		}
		if len(values) == 0 {
			return checkEnd(tx.Bucket(format.BucketLog), applied, last, nil)
		}
		return putLog(tx, last+1, values)
	})
	if err == nil {
		c.s.pending.skip(len(values))
	}
	return err
}

// writeAhead writes to log.wal.
func (c *committer) writeAhead(size int64, values [][]byte) error {
	s := c.s
	last := messages.LSN(s.lastLSN.Load())
	applied := s.pending.state()
	if applied.failed != nil {
		// There may be space by now.
		if err := s.awaitApplied(context.Background(), last); err != nil {
			return err
		}
	}
	err := s.log.View(func(tx *bbolt.Tx) error { return checkEnd(tx.Bucket(format.BucketLog), applied.next-1, last, values) })
	if err != nil {
		return err
	}
	if err := s.beginWAL(last); err != nil {
		return err
	}
	if need := s.wal.Place(size, applied.next-1, last); need != 0 {
		if err := s.awaitApplied(context.Background(), need); err != nil {
			return err
		}
		s.wal.Place(size, need, last)
	}
	if err := s.wal.Write(size, last+1, values); err != nil {
		return err
	}
	s.applier.added(s.pending.push(values))
	return nil
}

func putEpoch(epochs *bbolt.Bucket, p messages.PartitionID, e messages.Epoch) error {
	key := format.AppendPartitionKey(make([]byte, 0, format.PartitionKeyLen), p)
	return epochs.Put(key, format.SealedUint(nil, format.BucketEpochs, key, uint64(e)))
}
