package raftlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/metadb"
	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/replog"
)

// files are those of a node.
type files struct {
	wal       *wal.WAL
	meta      *metaData
	snapshots *raft.FileSnapshotStore
}

// What a directory says beside raft's terms and votes: whose it is, which one of that name, and up to where its replica was
// made of another node's.
var (
	identityKey = []byte("partita")
	lifeKey     = []byte("partita life")
	seededKey   = []byte("partita seeded")
)

// identity is what it says: a version, the shard, the node.
func (o Options) identity() []byte { return fmt.Appendf(nil, "2 %d %s", o.Shard, o.Node) }

// openFiles opens the files in o.Dir, and makes those that are missing.
func openFiles(o Options) (*files, error) {
	logger := newLogger(o.Logger)
	// It would stay open if the WAL does not open.
	meta := &metadb.BoltMetaDB{}
	w, err := wal.Open(o.Dir, wal.WithMetaStore(meta), wal.WithLogger(logger), wal.WithSegmentSize(o.segmentSize))
	if err != nil {
		return nil, errors.Join(err, meta.Close())
	}
	f := &files{wal: w, meta: &metaData{below: w}}
	if f.snapshots, err = raft.NewFileSnapshotStoreWithLogger(o.Dir, 1, logger); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// close closes the files, the WAL's meta data among them.
func (f *files) close() error {
	f.meta.close()
	return f.wal.Close()
}

// openDisk opens the files of a log that was created.
func openDisk(o Options) (*files, error) {
	meta := filepath.Join(o.Dir, metadb.FileName)
	if _, err := os.Lstat(meta); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", storage.ErrNotFound, o.Dir)
	}
	// The WAL would wait for whoever has it open.
	db, err := bbolt.Open(meta, 0o600, &bbolt.Options{Timeout: 100 * time.Millisecond})
	if errors.Is(err, bbolterrors.ErrTimeout) {
		return nil, fmt.Errorf("%w: %s", storage.ErrLocked, o.Dir)
	}
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	if err := removeUnfinished(o.Dir); err != nil {
		return nil, err
	}
	f, err := openFiles(o)
	if err != nil {
		return nil, err
	}
	if err := f.checkIdentity(o); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// seeded returns up to where the replica was made of another node's, zero if it was not.
func (f *files) seeded() (at replog.Position, err error) {
	b, err := f.wal.Get(seededKey)
	if err != nil || len(b) == 0 {
		return at, err
	}
	return readPosition(bytes.NewReader(b))
}

func (f *files) checkIdentity(o Options) error {
	got, err := f.wal.Get(identityKey)
	if err != nil {
		return err
	}
	if want := o.identity(); string(got) != string(want) {
		return fmt.Errorf("%w: %s: version, shard and node: got %q, want %q", storage.ErrForeign, o.Dir, got, want)
	}
	return nil
}

// removeUnfinished removes the snapshots that a crash has interrupted.
func removeUnfinished(dir string) error {
	found, err := filepath.Glob(filepath.Join(dir, "snapshots", "*.tmp"))
	for _, name := range found {
		err = errors.Join(err, os.RemoveAll(name))
	}
	return err
}

// extent is what a log has: entries from first to last, 0 if none, and the position that its newest snapshot is, at an index;
// and up to where its replica was made of another node's.
type extent struct {
	first, last, snapshot uint64
	base, seeded          replog.Position
}

func (f *files) extent() (e extent, err error) {
	if e.first, err = f.wal.FirstIndex(); err != nil {
		return e, err
	}
	if e.last, err = f.wal.LastIndex(); err != nil {
		return e, err
	}
	if e.seeded, err = f.seeded(); err != nil {
		return e, err
	}
	e.snapshot, e.base, err = f.newest()
	return e, err
}

// fit checks whether a replica that is at a position can go on with this log, and tidies up the log for it.
func (f *files) fit(from replog.Position) error {
	e, err := f.extent()
	if err != nil {
		return err
	}
	// A replica that was made of another node's has what most nodes have, also where this log has not: raft brings it here.
	known := from.Index <= e.seeded.Index
	switch {
	case e.first > e.snapshot+1:
		return fmt.Errorf("%w: the log begins at %d, its snapshot is at %d", replog.ErrBehind, e.first, e.snapshot)
	case from.Index > max(e.last, e.snapshot) && !known:
		return fmt.Errorf("%w: it is at %d, the log ends at %d", replog.ErrAhead, from.Index, max(e.last, e.snapshot))
	case from.Head < e.base.Head:
		return fmt.Errorf("%w: it has %d entries, the log begins after %d", replog.ErrBehind, from.Head, e.base.Head)
	case from.Head == e.base.Head && from != e.base:
		return fmt.Errorf("%w: it is at %+v, the log at %+v", replog.ErrDiverged, from, e.base)
	case e.first <= from.Index && from.Index <= e.last && from.Index > 0 && !known:
		if err := f.same(from); err != nil {
			return err
		}
	}
	if e.last > 0 && e.last < e.snapshot {
		// A snapshot has replaced it. Raft would go on behind the snapshot, and raft-wal takes no gap.
		return f.wal.DeleteRange(e.first, e.last)
	}
	return nil
}

// same checks that the log has the same entry at a replica's place.
func (f *files) same(from replog.Position) error {
	var entry raft.Log
	if err := f.wal.GetLog(from.Index, &entry); err != nil {
		return err
	}
	if n := len(entry.Data); n < 4 || binary.BigEndian.Uint32(entry.Data[n-4:]) != from.Sum {
		return fmt.Errorf("%w: it has another entry at %d than the log", replog.ErrDiverged, from.Index)
	}
	return nil
}

// newest returns the newest snapshot's index, and the position that it is; 0 if there is none.
func (f *files) newest() (index uint64, at replog.Position, err error) {
	all, err := f.snapshots.List()
	if err != nil || len(all) == 0 {
		return 0, at, err
	}
	_, r, err := f.snapshots.Open(all[0].ID)
	if err != nil {
		return 0, at, err
	}
	at, err = readPosition(r)
	return all[0].Index, at, errors.Join(err, r.Close())
}

// A snapshot's bytes: version 1, index 8, head 8, sum 4. Numbers are big-endian.
const (
	snapshotVersion = 1
	snapshotLen     = 1 + 8 + 8 + 4
)

func positionBytes(at replog.Position) []byte {
	b := make([]byte, 0, snapshotLen)
	b = append(b, snapshotVersion)
	b = binary.BigEndian.AppendUint64(b, at.Index)
	b = binary.BigEndian.AppendUint64(b, at.Head)
	return binary.BigEndian.AppendUint32(b, at.Sum)
}

func readPosition(r io.Reader) (at replog.Position, err error) {
	b, err := io.ReadAll(io.LimitReader(r, snapshotLen+1))
	if err != nil {
		return at, err
	}
	if len(b) != snapshotLen || b[0] != snapshotVersion {
		return at, fmt.Errorf("%w: snapshot: got %x, want version %d and %d bytes", storage.ErrFormat, b, snapshotVersion, snapshotLen)
	}
	return replog.Position{
		Index: binary.BigEndian.Uint64(b[1:]), Head: binary.BigEndian.Uint64(b[9:]), Sum: binary.BigEndian.Uint32(b[17:]),
	}, nil
}
