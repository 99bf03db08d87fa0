package ids

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"
)

// TraceID names a trace, a temporary object, or whatever else is forgotten within half a year. It needs no store. From the
// top:
//
//	 63  62            38  37      22  21   10  9      0
//	┌───┬─────────────────┬──────────┬────────┬─────────┐
//	│ 0 │     second      │   node   │ chunk  │ counter │
//	└───┴─────────────────┴──────────┴────────┴─────────┘
//	  1         25             16        12        10
//
// The second is that of the Unix epoch modulo 2^25: after 388 days it begins again. The counter is 1 to 1023, so that no
// id is 0. The zero value is no id.
type TraceID uint64

const (
	secondBits  = 25
	nodeBits    = 16
	chunkBits   = 12
	counterBits = 10

	chunkShift  = counterBits
	nodeShift   = chunkShift + chunkBits
	secondShift = nodeShift + nodeBits

	maxCounter = 1<<counterBits - 1
	// chunks is how many chunks a second of a node has.
	chunks     = 1 << chunkBits
	secondMask = 1<<secondBits - 1
)

// TracePeriod is after which time the seconds of trace ids begin again. The order of two ids, and the time in an id, are
// known if they are less than half of it apart.
const TracePeriod = (1 << secondBits) * time.Second

// ParseTraceID reads what [TraceID.String] returns: 16 hexadecimal digits in lower case. It returns [ErrID] for anything
// else.
func ParseTraceID(s string) (TraceID, error) {
	n, err := strconv.ParseUint(s, 16, 64)
	if t := TraceID(n); err == nil && t.Validate() == nil && t.String() == s {
		return t, nil
	}
	return 0, badText("trace id", s, "16 hexadecimal digits in lower case, a top bit of 0 and a counter of 1 to 1023")
}

// TraceOfW3C returns the trace id that stands for a trace-id of W3C Trace Context: its last 63 bits, with a last bit of 1
// if they cannot be one otherwise.
func TraceOfW3C(traceID [16]byte) TraceID {
	t := TraceID(binary.BigEndian.Uint64(traceID[8:]) &^ (1 << 63))
	if t.Validate() != nil {
		t |= 1
	}
	return t
}

// Validate returns [ErrID] unless the top bit is 0 and the counter is not.
func (t TraceID) Validate() error {
	switch {
	case t>>63 != 0:
		return fmt.Errorf("%w: trace id %016x: the top bit is 1", ErrID, uint64(t))
	case t&maxCounter == 0:
		return fmt.Errorf("%w: trace id %016x: got counter 0, want 1 to %d", ErrID, uint64(t), maxCounter)
	}
	return nil
}

// ValidateAt is [TraceID.Validate], and returns [ErrTooFar] if the id was made more than most before now, or after it.
// Half of [TracePeriod] and more allows any time. Allow for clocks that differ, and for the second that is cut off.
func (t TraceID) ValidateAt(now time.Time, most time.Duration) error {
	if err := t.Validate(); err != nil {
		return err
	}
	if off := now.Truncate(time.Second).Sub(t.Time(now)); off.Abs() > most {
		return fmt.Errorf("%w: trace id %s: got %v from %v, want at most %v",
			ErrTooFar, t, off.Abs(), now.UTC().Format(time.RFC3339), most)
	}
	return nil
}

// Time returns the second in which the id was made, in UTC: of all that it can be, the one that is nearest to another
// time.
func (t TraceID) Time(near time.Time) time.Time {
	second := near.Unix()
	return time.Unix(second+signed(uint64(t>>secondShift)-uint64(second)), 0).UTC()
}

// Compare returns -1 if t is before u, 1 if it is behind, 0 if they are the same. That is right across the end of a
// period, for ids that were made less than half of [TracePeriod] from each other.
func (t TraceID) Compare(u TraceID) int {
	switch d := signed(uint64(t>>secondShift) - uint64(u>>secondShift)); {
	case d < 0 || d == 0 && t < u:
		return -1
	case t == u:
		return 0
	}
	return 1
}

// signed returns a difference of seconds modulo the period as one of -2^24 to 2^24-1.
func signed(difference uint64) int64 {
	const unused = 64 - secondBits
	return int64(difference<<unused) >> unused
}

// Node returns the number of the node whose generator made the id.
func (t TraceID) Node() uint16 { return uint16(t >> nodeShift) }

func (t TraceID) append(b []byte) []byte {
	if t == 0 {
		return b
	}
	return hex.AppendEncode(b, binary.BigEndian.AppendUint64(nil, uint64(t)))
}
