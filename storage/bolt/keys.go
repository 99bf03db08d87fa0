package bolt

import (
	"encoding/binary"
	"fmt"

	"github.com/partita-go/partita/messages"
)

// File names inside a store's directory.
const (
	logFileName   = "log.db"
	stateFileName = "state.db"
	walFileName   = "log.wal"

	subscriptionsFileName = "subscriptions.db"
)

// Buckets. All integers in keys are big endian, so that the byte order of keys is
// the order of numbers.
//
//	log.db    header       "header"                         -> header
//	                       "wal"                            -> sealed id 16, as long as there is a log.wal
//	          log          LSN 8                            -> event
//	          epochs       partition 4                      -> sealed epoch 8
//	state.db  header       "header"                         -> header
//	                       "projected"                      -> sealed LSN 8
//	                       "dedup"                          -> sealed list of runs
//	          plog         partition 4, PLogOffset 8        -> LSN 8
//	          wlog         WSID 8, WLogOffset 8             -> LSN 8
//	          records      WSID 8, SeqID 2, Number 8        -> row
//	          numbers      WSID 8, SeqID 2                  -> sealed last number 8; SeqID 0: sealed kind 8
//	          checkpoints  partition 4                      -> sealed checkpoint
//	          conflicts    place 1, WSID 8, SeqID 2         -> sealed conflict
//	          dedup        serial 8, last hash 8            -> block of a run
//	subscriptions.db
//	          header         "header"                       -> header
//	                         "subscriptions"                -> sealed count 8
//	          subscriptions  name                           -> sealed definition
//	          positions      name, 0 1, partition 4         -> sealed offset 8
//	          parked         name, 0 1, partition 4, offset 8 -> sealed parked event
var (
	bucketHeader      = []byte("header")
	bucketLog         = []byte("log")
	bucketEpochs      = []byte("epochs")
	bucketPLog        = []byte("plog")
	bucketWLog        = []byte("wlog")
	bucketRecords     = []byte("records")
	bucketNumbers     = []byte("numbers")
	bucketCheckpoints = []byte("checkpoints")
	bucketConflicts   = []byte("conflicts")
	bucketDedup       = []byte("dedup")

	keyHeader    = []byte("header")
	keyWAL       = []byte("wal")
	keyProjected = []byte("projected")
	keyDedup     = []byte("dedup")
	keyWitness   = []byte("witness")

	bucketSubscriptions = []byte("subscriptions")
	bucketPositions     = []byte("positions")
	bucketParked        = []byte("parked")
	keySubscriptions    = []byte("subscriptions")

	logBuckets   = [][]byte{bucketHeader, bucketLog, bucketEpochs}
	stateBuckets = [][]byte{
		bucketHeader, bucketPLog, bucketWLog, bucketRecords,
		bucketNumbers, bucketCheckpoints, bucketConflicts, bucketDedup,
	}

	subscriptionsBuckets = [][]byte{bucketHeader, bucketSubscriptions, bucketPositions, bucketParked}
)

// Lengths of keys in bytes.
const (
	lsnKeyLen        = 8
	partitionKeyLen  = 4
	plogKeyLen       = 12
	wlogKeyLen       = 16
	recordKeyLen     = 18
	numberKeyLen     = 10
	conflictKeyLen   = 11
	workspaceKeyLen  = 8
	recordPrefixLen  = numberKeyLen
	indexedLSNLen    = 8
	sealedNumberLen  = 12
	checkpointLen    = 36
	witnessLen       = 16
	sealedOverhead   = 4
	conflictValueLen = 40
)

// kindSeq is the SeqID under which the numbers bucket keeps a workspace's kind.
const kindSeq messages.SeqID = 0

func appendLSNKey(b []byte, lsn messages.LSN) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(lsn))
}

func appendPartitionKey(b []byte, p messages.PartitionID) []byte {
	return binary.BigEndian.AppendUint32(b, uint32(p))
}

func appendPLogKey(b []byte, p messages.PartitionID, o messages.PLogOffset) []byte {
	return binary.BigEndian.AppendUint64(appendPartitionKey(b, p), uint64(o))
}

func appendWLogKey(b []byte, ws messages.WSID, o messages.WLogOffset) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(ws))
	return binary.BigEndian.AppendUint64(b, uint64(o))
}

func appendNumberKey(b []byte, ws messages.WSID, seq messages.SeqID) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(ws))
	return binary.BigEndian.AppendUint16(b, uint16(seq))
}

func appendRecordKey(b []byte, k recordKey) []byte {
	return binary.BigEndian.AppendUint64(appendNumberKey(b, k.ws, k.id.Seq), uint64(k.id.Number))
}

// recordKey names a record of the store.
type recordKey struct {
	ws messages.WSID
	id messages.RecordID
}

func parseLSN(b []byte) (messages.LSN, bool) {
	if len(b) != lsnKeyLen {
		return 0, false
	}
	return messages.LSN(binary.BigEndian.Uint64(b)), true
}

// placeOf names a value for error messages.
func placeOf(bucket []byte, key string, args ...any) string {
	return fmt.Sprintf("bucket %s, ", bucket) + fmt.Sprintf(key, args...)
}

func putBE64(b []byte, n uint64) { binary.BigEndian.PutUint64(b, n) }

func be64(b []byte) uint64 { return binary.BigEndian.Uint64(b) }

func be32(b []byte) uint32 { return binary.BigEndian.Uint32(b) }
