package statedb

import (
	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// Writer changes the heads of workspaces in a transaction, one after the other: Load, change Head, Store.
type Writer struct {
	Head format.Head
	// Rows are records of the workspace that were read in the log before, ordered by sequence and number, and Partition is
	// whose they are. They are looked up in the log no more. Whoever loads the next workspace sets them anew.
	Rows      []ReadRow
	Partition messages.PartitionID
	// Gathered is about how many bytes of memory the transaction takes for periods that were in bucket index, and are no
	// more. One workspace may have many: so many as its sequences have had while they kept all.
	Gathered int64

	ws                  messages.WSID
	tx                  *bbolt.Tx
	heads, index, packs *bbolt.Bucket
	arena               *boltfile.ByteArena
	packer              packer
	// older are the periods of the workspace that change in bucket index.
	older   []olderPut
	periods []calendar.Date
	scratch []byte
}

// ReadRow is a row as the event has it that has written the record last.
type ReadRow struct {
	Seq messages.SeqID
	format.Row
}

// NewWriter returns a writer for a transaction. value reads the log. The arena is the transaction's.
func NewWriter(tx *bbolt.Tx, arena *boltfile.ByteArena, value func(messages.LSN) []byte) *Writer {
	w := &Writer{
		tx: tx, arena: arena, heads: tx.Bucket(format.BucketWorkspaces), index: tx.Bucket(format.BucketIndex),
		packs: tx.Bucket(format.BucketPacks),
	}
	w.packer.value, w.packer.headPacks = value, headPacks
	w.heads.FillPercent, w.index.FillPercent = boltfile.StateFill, boltfile.StateFill
	w.packs.FillPercent = boltfile.LogFill
	return w
}

// Load reads the head of a workspace.
func (w *Writer) Load(ws messages.WSID) error {
	w.ws, w.older = ws, w.older[:0]
	return ReadHead(w.tx, ws, &w.Head)
}

// Begin is Load for a workspace of which it is known that it has no head.
func (w *Writer) Begin(ws messages.WSID) {
	w.ws, w.older = ws, w.older[:0]
	w.Head.Reset()
}

// Written returns the LSN of the event that wrote a record of the workspace last, 0 if it is not there.
func (w *Writer) Written(id messages.RecordID) (messages.LSN, error) {
	return Written(w.tx, &w.Head, format.RecordKey{Workspace: w.ws, ID: id})
}

// Store writes the head. Where it has got long, what it names goes into a list or a pack. Where it meets damage it writes
// nothing.
func (w *Writer) Store() error {
	if err := w.pack(); err != nil {
		return err
	}
	if err := w.putLists(); err != nil {
		return err
	}
	if err := w.putOlder(); err != nil {
		return err
	}
	key := format.AppendWorkspaceKey(make([]byte, 0, format.WorkspaceKeyLen), w.ws)
	return w.put(w.heads, key, w.Head.Encode(w.scratch[:0], key))
}

// putLists makes lists of the head's events, of so many each.
func (w *Writer) putLists() error {
	lsns := w.Head.LSNs
	for len(lsns) >= headList {
		first := w.Head.Last - messages.WLogOffset(len(lsns)) + 1
		key := format.AppendIndexKey(make([]byte, 0, format.IndexKeyLen), listKey(w.ws, first))
		if err := w.put(w.index, key, format.AppendList(w.scratch[:0], format.BucketIndex, key, lsns[:headList])); err != nil {
			return err
		}
		lsns = lsns[headList:]
	}
	w.Head.LSNs = append(w.Head.LSNs[:0], lsns...)
	return nil
}

// put puts a value, which is in scratch. bbolt keeps what it is given until the commit.
func (w *Writer) put(b *bbolt.Bucket, key, value []byte) error {
	w.scratch = value
	return b.Put(key, append(w.arena.Reserve(len(value)), value...))
}
