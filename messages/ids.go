package messages

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// PartitionID names a partition of an application: 0 to partitions-1.
// The partition of a workspace is WSID mod partitions.
type PartitionID uint32

// WSID names a workspace, which is a tenant. Every value is legal, but 0 only in applications that
// allow it.
type WSID uint64

// WSKind is the kind of a workspace. It is fixed by the workspace's first
// event and decides which sequences the workspace has. Zero is not a kind.
type WSKind uint16

// SeqID names a sequence of a workspace kind. 1 to 15 are reserved for
// built-in sequences, applications define theirs from [FirstApplicationSeq].
type SeqID uint16

// Number is a number of a sequence. Zero means "none given out yet".
type Number uint64

// PLogOffset is an event's place in its partition's log: 1, 2, 3 … without
// holes. Zero means "before the first".
type PLogOffset uint64

// WLogOffset is an event's place in its workspace's log: 1, 2, 3 … without
// holes. Zero means "before the first".
type WLogOffset uint64

// LSN is the log sequence number: an event's place in a store's physical log,
// which holds the logs of all partitions interleaved in commit order.
type LSN uint64

// Epoch numbers the take-overs of a partition. A write under an older epoch
// than the partition's current one is refused.
type Epoch uint64

// RawID is a record's placeholder inside a command, 1 to 65535. The command
// processor replaces it by a real [RecordID]. Zero is not a raw id.
type RawID uint16

// Timestamp is a time in microseconds since the Unix epoch. Zero means "none".
type Timestamp int64

// TimestampOf returns t in microseconds since the Unix epoch, and the first or last
// timestamp for what is before or behind them: about 292,000 years from 1970.
func TimestampOf(t time.Time) Timestamp {
	const perSecond = 1_000_000
	switch s := t.Unix(); {
	case t.IsZero():
		return 0
	case s >= math.MaxInt64/perSecond:
		return math.MaxInt64
	case s <= math.MinInt64/perSecond:
		return math.MinInt64
	}
	return Timestamp(t.UnixMicro())
}

// Time returns the timestamp as a time in UTC, and the zero time for zero.
func (t Timestamp) Time() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(t)).UTC()
}

// String returns the timestamp in RFC 3339 form, "none" for zero.
func (t Timestamp) String() string {
	if t == 0 {
		return "none"
	}
	return t.Time().Format(time.RFC3339Nano)
}

func (p PartitionID) String() string { return strconv.FormatUint(uint64(p), 10) }
func (w WSID) String() string        { return strconv.FormatUint(uint64(w), 10) }
func (k WSKind) String() string      { return strconv.FormatUint(uint64(k), 10) }
func (s SeqID) String() string       { return strconv.FormatUint(uint64(s), 10) }
func (n Number) String() string      { return strconv.FormatUint(uint64(n), 10) }
func (o PLogOffset) String() string  { return strconv.FormatUint(uint64(o), 10) }
func (o WLogOffset) String() string  { return strconv.FormatUint(uint64(o), 10) }
func (l LSN) String() string         { return strconv.FormatUint(uint64(l), 10) }
func (e Epoch) String() string       { return strconv.FormatUint(uint64(e), 10) }
func (r RawID) String() string       { return strconv.FormatUint(uint64(r), 10) }

// ParsePartitionID reads a decimal partition id.
func ParsePartitionID(s string) (PartitionID, error) {
	return parse[PartitionID](s, "partition id", 32)
}

// ParseWSID reads a decimal workspace id.
func ParseWSID(s string) (WSID, error) { return parse[WSID](s, "workspace id", 64) }

// ParseSeqID reads a decimal sequence id.
func ParseSeqID(s string) (SeqID, error) { return parse[SeqID](s, "sequence id", 16) }

// ParseNumber reads a decimal number of a sequence.
func ParseNumber(s string) (Number, error) { return parse[Number](s, "number", 64) }

// ParsePLogOffset reads a decimal offset of a partition's log.
func ParsePLogOffset(s string) (PLogOffset, error) { return parse[PLogOffset](s, "PLog offset", 64) }

// ParseWLogOffset reads a decimal offset of a workspace's log.
func ParseWLogOffset(s string) (WLogOffset, error) { return parse[WLogOffset](s, "WLog offset", 64) }

func parse[T ~uint16 | ~uint32 | ~uint64](s, what string, bits int) (T, error) {
	n, err := strconv.ParseUint(s, 10, bits)
	if err != nil {
		return 0, fmt.Errorf("%w: %s: got %.40q, want a whole number of at most %d bits", ErrSyntax, what, s, bits)
	}
	return T(n), nil
}

// PartitionOf returns the partition of a workspace: the whole WSID mod the
// number of partitions. It returns 0 if partitions is 0.
func PartitionOf(ws WSID, partitions uint32) PartitionID {
	if partitions == 0 {
		return 0
	}
	return PartitionID(uint64(ws) % uint64(partitions))
}
