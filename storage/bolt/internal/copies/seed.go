package copies

import (
	"context"
	"encoding/binary"
	"io"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
	"github.com/partita-go/partita/storage/replog"
)

// A stream that makes a replica has its own magic, and a frame more, the last but one: its last LSN (8, BE), and two sealed
// positions, as log.db has them under "replica" and "kept". The frames of events and epochs may have those of
// subscriptions.db and ids.db between them: they are small, and come late, so that the replica is not far behind when it begins.

// NewSeed begins a stream that makes a replica, as [NewStream] does one that makes a store.
func NewSeed(w io.Writer, id format.StoreID, d messages.Descriptor, tell func(name string, done, total uint64)) (*Stream, error) {
	return newStream(w, seedMagic, id, d, tell)
}

// BeginLog begins log.db, which had a size.
func (s *Stream) BeginLog(size int64) error {
	return s.frame(frameLog, binary.BigEndian.AppendUint64(make([]byte, 8), uint64(size)))
}

// Events writes the events of log.db from one LSN up to another one, which are there. It returns whether they were more than
// a frame takes.
func (s *Stream) Events(ctx context.Context, log *logdb.Log, from, last messages.LSN) (many bool, err error) {
	for from <= last {
		if err := ctx.Err(); err != nil {
			return many, err
		}
		var chunk boltfile.Entries
		err := log.File.View(func(tx *bbolt.Tx) error {
			c := tx.Bucket(format.BucketLog).Cursor()
			for k, v := c.Seek(format.AppendLSNKey(nil, from)); k != nil && from <= last && !chunk.Full(); k, v = c.Next() {
				if lsn, ok := format.ParseLSN(k); !ok || lsn != from {
					return format.DamagedEvent(from, 0, 0, format.ErrMissing)
				}
				chunk.Add(k, v)
				from++
			}
			if len(chunk.Keys) == 0 {
				return format.DamagedEvent(from, 0, 0, format.ErrMissing)
			}
			return nil
		})
		if err == nil {
			err = s.entries(frameEvents, &chunk)
		}
		if err != nil {
			return many, err
		}
		many = many || chunk.Full()
		s.tell(format.LogFileName, uint64(from-1), uint64(last))
	}
	return many, nil
}

// EndLog writes what log.db has behind what was written, and that other files have the replicated log up to kept.
func (s *Stream) EndLog(t *logdb.Tail, kept replog.Position) error {
	if err := s.tail(&t.Events); err != nil {
		return err
	}
	if err := s.entries(frameEpochs, &t.Epochs); err != nil {
		return err
	}
	b := binary.BigEndian.AppendUint64(nil, uint64(t.Last))
	b = append(b, format.EncodePosition(format.KeyReplica, t.At)...)
	b = append(b, format.EncodePosition(format.KeyKept, kept)...)
	return s.frame(frameReplica, b)
}

// tail writes events in frames: large ones may come in before they are read.
func (s *Stream) tail(events *boltfile.Entries) (err error) {
	var chunk boltfile.Entries
	events.Each(func(k, v []byte) {
		if chunk.Full() && err == nil {
			err = s.entries(frameEvents, &chunk)
			chunk = boltfile.Entries{}
		}
		chunk.Add(k, v)
	})
	if err != nil {
		return err
	}
	return s.entries(frameEvents, &chunk)
}

// ReceiveSeed makes the files of a replica, as [Target.Receive] those of a store.
func (t *Target) ReceiveSeed(ctx context.Context, r io.Reader) (Received, error) {
	return t.receive(ctx, &receiving{Target: t, r: r, seed: true}, seedMagic)
}

// putReplica writes to log.db how it stands to its replicated log, and what else it must know.
func (in *receiving) putReplica(tx *bbolt.Tx) error {
	if _, there := in.result.Sizes[format.RoleIDs]; there {
		if err := logdb.PutIDs(tx, in.result.At.Head); err != nil {
			return err
		}
	}
	return logdb.PutPosition(tx, in.result.At, in.result.Kept)
}

// place says up to where all that was received has a replicated log.
func (in *receiving) place(payload []byte) (err error) {
	const lastLen = 8
	positions := len(payload) - lastLen
	if in.log == nil || !in.seed || in.placed || positions <= 0 || positions%2 != 0 {
		return errOrder
	}
	in.placed = true
	in.result.Last = messages.LSN(format.Uint64(payload))
	payload = payload[lastLen:]
	if in.result.At, err = format.DecodePosition(format.KeyReplica, payload[:positions/2]); err == nil {
		in.result.Kept, err = format.DecodePosition(format.KeyKept, payload[positions/2:])
	}
	return err
}
