package files

import (
	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// Stand is how far state.db is, as it says.
type Stand struct {
	// Projected is the LSN before which every event is in state.db.
	Projected messages.LSN
	// Witness is the newest event that a flush has read.
	Witness format.Witness
	// Checkpoints are by partition. One that was never flushed is at 1.
	Checkpoints []format.Checkpoint
	// Conflicts are those that last.
	Conflicts []*storage.ConflictError
}

// Stand reads how far state.db is.
func (s *Set) Stand() (*Stand, error) {
	st := &Stand{Projected: 1, Checkpoints: make([]format.Checkpoint, s.Descriptor.Partitions)}
	for i := range st.Checkpoints {
		st.Checkpoints[i].Next = 1
	}
	err := s.State.View(func(tx *bbolt.Tx) error {
		header := tx.Bucket(format.BucketHeader)
		if v := header.Get(format.KeyProjected); v != nil {
			n, err := format.UnsealUint(format.BucketHeader, format.KeyProjected, v)
			if err != nil || n == 0 {
				where := s.State.PlaceOf(format.BucketHeader, "%s", format.KeyProjected)
				return &storage.DamagedError{Where: where, Cause: format.ErrChecksum}
			}
			st.Projected = messages.LSN(n)
		}
		if err := s.readWitness(header.Get(format.KeyWitness), st); err != nil {
			return err
		}
		err := tx.Bucket(format.BucketCheckpoints).ForEach(func(k, v []byte) error { return s.readCheckpoint(k, v, st) })
		if err != nil {
			return err
		}
		return tx.Bucket(format.BucketConflicts).ForEach(func(k, v []byte) error { return s.readConflict(k, v, st) })
	})
	return st, err
}

// readWitness reads state.db's witness. There is none if nothing is projected, or only by
// programs that wrote none.
func (s *Set) readWitness(v []byte, st *Stand) (err error) {
	if v == nil {
		return nil
	}
	if st.Witness, err = format.DecodeWitness(v); err != nil {
		return &storage.DamagedError{Where: s.State.PlaceOf(format.BucketHeader, "%s", format.KeyWitness), Cause: err}
	}
	return nil
}

func (s *Set) readCheckpoint(k, v []byte, st *Stand) error {
	p, err := s.partition(s.State, format.BucketCheckpoints, k)
	if err != nil {
		return err
	}
	if st.Checkpoints[p], err = format.DecodeCheckpoint(k, v); err != nil {
		where := s.State.PlaceOf(format.BucketCheckpoints, "partition %d", p)
		return &storage.DamagedError{Where: where, Partition: p, Cause: err}
	}
	return nil
}

func (s *Set) readConflict(k, v []byte, st *Stand) error {
	e, err := format.DecodeConflict(k, v)
	if err == nil && uint64(e.Partition) >= uint64(len(st.Checkpoints)) {
		err = format.ErrLayout
	}
	if err != nil {
		return &storage.DamagedError{Where: s.State.PlaceOf(format.BucketConflicts, "key %x", k), Cause: err}
	}
	st.Conflicts = append(st.Conflicts, e)
	return nil
}

// partition returns the partition that a key names.
func (s *Set) partition(f *boltfile.File, bucket, k []byte) (messages.PartitionID, error) {
	if len(k) == format.PartitionKeyLen {
		if id := messages.PartitionID(format.Uint32(k)); uint32(id) < s.Descriptor.Partitions {
			return id, nil
		}
	}
	return 0, &storage.DamagedError{Where: f.PlaceOf(bucket, "key %x", k), Cause: format.ErrLayout}
}

// Epoch is the current epoch of a partition.
type Epoch struct {
	messages.Epoch
	// Damage is why it is not known, nil if it is.
	Damage error
}

// Epochs reads the current epochs in log.db, by partition.
func (s *Set) Epochs() ([]Epoch, error) {
	epochs, log := make([]Epoch, s.Descriptor.Partitions), s.Log.File
	err := log.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(format.BucketEpochs).ForEach(func(k, v []byte) error {
			p, err := s.partition(log, format.BucketEpochs, k)
			if err != nil {
				return err
			}
			n, err := format.UnsealUint(format.BucketEpochs, k, v)
			epochs[p].Epoch = messages.Epoch(n)
			if err != nil {
				where := log.PlaceOf(format.BucketEpochs, "partition %d", p)
				epochs[p].Damage = &storage.DamagedError{Where: where, Partition: p, Cause: err}
			}
			return nil
		})
	})
	return epochs, err
}
