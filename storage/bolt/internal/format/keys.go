package format

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/partita-go/partita/messages"
)

// File names inside a store's directory.
const (
	LogFileName   = "log.db"
	StateFileName = "state.db"
	WALFileName   = "log.wal"

	SubscriptionsFileName = "subscriptions.db"
	IDsFileName           = "ids.db"
)

// Buckets. All integers in keys are big endian, so that the byte order of keys is
// the order of numbers.
//
//	log.db    header       "header"                         -> header
//	                       "wal"                            -> sealed id 16, as long as there is a log.wal
//	                       "replica"                        -> sealed position in a replicated log
//	                       "kept"                           -> the same, as long as subscriptions.db may lack something
//	                       "ids"                            -> sealed head 8 of a replicated log, once there was an ids.db
//	          log          LSN 8                            -> event
//	          epochs       partition 4                      -> sealed epoch 8
//	state.db  header       "header"                         -> header
//	                       "projected"                      -> sealed LSN 8
//	                       "dedup"                          -> sealed list of runs
//	          plog         partition 4, first PLogOffset 8  -> sealed list of LSNs
//	          workspaces   WSID 8                           -> sealed head
//	          index        WSID 8, SeqID 2, first number 8  -> sealed entry of a pack; SeqID 1: sealed list of LSNs
//	                       WSID 8, SeqID 2, period 8       -> sealed last number 8 of a sequence that restarts
//	          packs        id 8                             -> sealed rows
//	          checkpoints  partition 4                      -> sealed checkpoint
//	          conflicts    place 1, WSID 8, SeqID 2         -> sealed conflict
//	          dedup        serial 8, last hash 8            -> block of a run
//	subscriptions.db
//	          header         "header"                       -> header
//	                         "subscriptions"                -> sealed count 8
//	                         "replica"                      -> sealed position in a replicated log
//	          subscriptions  name                           -> sealed definition
//	          positions      name, 0 1, partition 4         -> sealed offset 8
//	          parked         name, 0 1, partition 4, offset 8 -> sealed parked event
//	ids.db    header       "header"                         -> header
//	                       "launches"                       -> sealed count 8
//	          launches     launch 4                         -> sealed number 8 of its last generator
var (
	BucketHeader      = []byte("header")
	BucketLog         = []byte("log")
	BucketEpochs      = []byte("epochs")
	BucketPLog        = []byte("plog")
	BucketWorkspaces  = []byte("workspaces")
	BucketIndex       = []byte("index")
	BucketPacks       = []byte("packs")
	BucketCheckpoints = []byte("checkpoints")
	BucketConflicts   = []byte("conflicts")
	BucketDedup       = []byte("dedup")

	KeyHeader    = []byte("header")
	KeyWAL       = []byte("wal")
	KeyReplica   = []byte("replica")
	KeyKept      = []byte("kept")
	KeyIDs       = []byte("ids")
	KeyProjected = []byte("projected")
	KeyDedup     = []byte("dedup")
	KeyWitness   = []byte("witness")

	BucketSubscriptions = []byte("subscriptions")
	BucketPositions     = []byte("positions")
	BucketParked        = []byte("parked")
	KeySubscriptions    = []byte("subscriptions")

	BucketLaunches = []byte("launches")
	KeyLaunches    = []byte("launches")

	logBuckets   = [][]byte{BucketHeader, BucketLog, BucketEpochs}
	stateBuckets = [][]byte{
		BucketHeader, BucketPLog, BucketWorkspaces, BucketIndex,
		BucketPacks, BucketCheckpoints, BucketConflicts, BucketDedup,
	}

	subscriptionsBuckets = [][]byte{BucketHeader, BucketSubscriptions, BucketPositions, BucketParked}

	idsBuckets = [][]byte{BucketHeader, BucketLaunches}
)

// Lengths of keys in bytes.
const (
	LSNKeyLen        = 8
	PartitionKeyLen  = 4
	PLogKeyLen       = 12
	WorkspaceKeyLen  = 8
	IndexPrefixLen   = 10
	IndexKeyLen      = 18
	PackKeyLen       = 8
	LaunchKeyLen     = 4
	ConflictKeyLen   = 11
	CheckpointLen    = 52
	checkpointLen3   = 36
	witnessLen       = 16
	SealedOverhead   = 4
	ConflictValueLen = 40
)

// KindSeq is the SeqID under which a workspace's kind is among its numbers.
const KindSeq messages.SeqID = 0

// AppendLSNKey appends a key of bucket log.
func AppendLSNKey(b []byte, lsn messages.LSN) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(lsn))
}

// AppendPartitionKey appends a key of the buckets epochs and checkpoints.
func AppendPartitionKey(b []byte, p messages.PartitionID) []byte {
	return binary.BigEndian.AppendUint32(b, uint32(p))
}

// AppendPLogKey appends a key of bucket plog.
func AppendPLogKey(b []byte, p messages.PartitionID, o messages.PLogOffset) []byte {
	return binary.BigEndian.AppendUint64(AppendPartitionKey(b, p), uint64(o))
}

// AppendWorkspaceKey appends a key of bucket workspaces.
func AppendWorkspaceKey(b []byte, ws messages.WSID) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(ws))
}

// AppendPackKey appends a key of bucket packs.
func AppendPackKey(b []byte, id PackID) []byte { return binary.BigEndian.AppendUint64(b, uint64(id)) }

// AppendSequenceKey appends what names a sequence of a workspace.
func AppendSequenceKey(b []byte, ws messages.WSID, seq messages.SeqID) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(ws))
	return binary.BigEndian.AppendUint16(b, uint16(seq))
}

// AppendIndexKey appends a key of bucket index: what it leads to begins with a record or, under [messages.SeqWLogOffset],
// with an event of the workspace's log.
func AppendIndexKey(b []byte, k RecordKey) []byte {
	return binary.BigEndian.AppendUint64(AppendSequenceKey(b, k.Workspace, k.ID.Seq), uint64(k.ID.Number))
}

// RecordKey names a record of the store.
type RecordKey struct {
	Workspace messages.WSID
	ID        messages.RecordID
}

// ParseLSN reads an LSN, and reports whether it is one by its length.
func ParseLSN(b []byte) (messages.LSN, bool) {
	if len(b) != LSNKeyLen {
		return 0, false
	}
	return messages.LSN(binary.BigEndian.Uint64(b)), true
}

// PlaceOf names a value for error messages.
func PlaceOf(bucket []byte, key string, args ...any) string {
	return fmt.Sprintf("bucket %s, ", bucket) + fmt.Sprintf(key, args...)
}

// PutUint64 writes a big-endian integer of 8 bytes.
func PutUint64(b []byte, n uint64) { binary.BigEndian.PutUint64(b, n) }

// Uint64 reads a big-endian integer of 8 bytes.
func Uint64(b []byte) uint64 { return binary.BigEndian.Uint64(b) }

// Uint32 reads a big-endian integer of 4 bytes.
func Uint32(b []byte) uint32 { return binary.BigEndian.Uint32(b) }

// DedupKey names the one event of a workspace that may have a deduplication id.
type DedupKey struct {
	Workspace messages.WSID
	ID        messages.DedupID
}

// Hash is what the projection sorts by. The store's id is part of it, so that whoever
// chooses ids cannot make many of them meet: what meets is only slow, never wrong.
func (k *DedupKey) Hash(id StoreID) uint64 {
	var b [len(StoreID{}) + WorkspaceKeyLen + len(messages.DedupID{})]byte
	n := copy(b[:], id[:])
	PutUint64(b[n:], uint64(k.Workspace))
	copy(b[n+WorkspaceKeyLen:], k.ID[:])
	sum := sha256.Sum256(b[:])
	return Uint64(sum[:])
}

// ParseRecordKey reads a key of bucket index, which has its length.
func ParseRecordKey(k []byte) RecordKey {
	return RecordKey{Workspace: messages.WSID(Uint64(k)), ID: messages.RecordID{
		Seq:    messages.SeqID(binary.BigEndian.Uint16(k[WorkspaceKeyLen:])),
		Number: messages.Number(Uint64(k[IndexPrefixLen:])),
	}}
}
