package statedb

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// headList is how many events a head names, until they go into a list of their own.
const headList = 64

// ReadHead reads the head of a workspace into h. One without events has the zero value, and neither lists nor packs.
func ReadHead(tx *bbolt.Tx, ws messages.WSID, h *format.Head) error {
	b := tx.Bucket(format.BucketWorkspaces)
	key := format.AppendWorkspaceKey(make([]byte, 0, format.WorkspaceKeyLen), ws)
	// Put writes where Get looks. A cursor goes one page further: it may find what Put would not replace.
	if v := b.Get(key); v != nil {
		_, err := DecodeHead(key, v, h)
		return err
	}
	h.Reset()
	if k, _ := tx.Bucket(format.BucketIndex).Cursor().Seek(key); bytes.HasPrefix(k, key) {
		return format.DamagedHead(ws, format.ErrMissing)
	}
	return missing(b.Cursor(), format.BucketWorkspaces, key, checkHead)
}

// readHead is ReadHead with the cursors of a snapshot, for whoever only reads.
func readHead(s *boltfile.Snapshot, ws messages.WSID, h *format.Head) error {
	key := format.AppendWorkspaceKey(make([]byte, 0, format.WorkspaceKeyLen), ws)
	if k, v := s.Cursor(format.BucketWorkspaces).Seek(key); bytes.Equal(k, key) {
		_, err := DecodeHead(k, v, h)
		return err
	}
	return ReadHead(s.Tx, ws, h)
}

// DecodeHead reads an entry of bucket workspaces into h.
func DecodeHead(k, v []byte, h *format.Head) (messages.WSID, error) {
	if len(k) != format.WorkspaceKeyLen {
		return 0, &storage.DamagedError{Where: format.PlaceOf(format.BucketWorkspaces, "key %x", k), Cause: format.ErrLayout}
	}
	ws := messages.WSID(format.Uint64(k))
	if err := h.Decode(k, v); err != nil {
		return ws, format.DamagedHead(ws, err)
	}
	return ws, nil
}

func checkHead(k, v []byte) error {
	h, _ := checkedHeads.Get().(*format.Head)
	defer checkedHeads.Put(h)
	_, err := DecodeHead(k, v, h)
	return err
}

// checkedHeads are the memory of heads that are read to see whether they are sound.
var checkedHeads = sync.Pool{New: func() any { return new(format.Head) }}

// Numbers returns the last numbers of a workspace, and its kind: of a sequence that restarts those of the newest periods,
// and of those that are asked for; or of all, if it keeps only some of them: it may have kept all until now, and
// which of them the next flush closes follows from all. read is called with the workspace's head.
func Numbers(
	state *boltfile.File, ws messages.WSID, keepsSome func(messages.WSKind, messages.SeqID) bool, read func(*format.Head),
	periods ...messages.SequencePeriod,
) (n storage.WorkspaceNumbers, err error) {
	err = state.Read(func(snapshot *boltfile.Snapshot) error {
		var h format.Head
		if err := readHead(snapshot, ws, &h); err != nil {
			return err
		}
		tx := snapshot.Tx
		read(&h)
		n = storage.WorkspaceNumbers{Workspace: ws, Kind: h.Kind, Numbers: NumbersOf(nil, &h), Closed: h.Closed(), Zones: h.Zones}
		older := false
		for i := range h.Sequences {
			s := &h.Sequences[i]
			switch older = older || s.Older; {
			case !s.Older:
			case !keepsSome(h.Kind, s.Seq):
				n.Older = append(n.Older, s.Seq)
			default:
				if err := addAllOlder(tx, &n, s); err != nil {
					return err
				}
			}
		}
		if !older {
			return nil
		}
		return addOlder(tx, &n, &h, periods)
	})
	if err != nil {
		return storage.WorkspaceNumbers{}, err
	}
	return n, nil
}

func addAllOlder(tx *bbolt.Tx, n *storage.WorkspaceNumbers, s *format.HeadSequence) error {
	return EachOlder(tx, n.Workspace, s, func(p format.PeriodNumber) error {
		n.Numbers = append(n.Numbers, messages.SequenceNumber{Seq: s.Seq, Period: p.Period, Number: p.Number})
		return nil
	})
}

// addOlder adds the numbers of older periods that are asked for, if those of their sequence are not all listed.
func addOlder(tx *bbolt.Tx, n *storage.WorkspaceNumbers, h *format.Head, periods []messages.SequencePeriod) error {
	periods = slices.Clone(periods)
	slices.SortFunc(periods, messages.SequencePeriod.Compare)
	for _, at := range slices.Compact(periods) {
		if s := h.Find(at.Seq); s == nil || !s.HasOlder(at.Period) || !slices.Contains(n.Older, at.Seq) {
			continue
		}
		last, err := olderNumber(tx, n.Workspace, at)
		if err != nil {
			return err
		}
		if last != 0 {
			n.Numbers = append(n.Numbers, messages.SequenceNumber{Seq: at.Seq, Period: at.Period, Number: last})
		}
	}
	slices.SortFunc(n.Numbers, messages.SequenceNumber.ComparePlace)
	return nil
}

// NumbersOf appends the last numbers that a head has, ordered by sequence and period.
func NumbersOf(numbers []messages.SequenceNumber, h *format.Head) []messages.SequenceNumber {
	if h.Last != 0 {
		numbers = append(numbers, messages.SequenceNumber{Seq: messages.SeqWLogOffset, Number: messages.Number(h.Last)})
	}
	for i := range h.Sequences {
		s := &h.Sequences[i]
		if s.Number != 0 {
			numbers = append(numbers, messages.SequenceNumber{Seq: s.Seq, Number: s.Number})
		}
		for _, p := range s.Periods {
			numbers = append(numbers, messages.SequenceNumber{Seq: s.Seq, Period: p.Period, Number: p.Number})
		}
	}
	return numbers
}

// WLogEnd returns the last offset of a workspace's log.
func WLogEnd(state *boltfile.File, ws messages.WSID) (messages.WLogOffset, error) {
	var h format.Head
	err := state.Read(func(s *boltfile.Snapshot) error { return readHead(s, ws, &h) })
	return h.Last, err
}

// WLog finds entries of a workspace's log, all of which must be there.
func WLog(state *boltfile.File, ws messages.WSID, from, to messages.WLogOffset) (lsns []messages.LSN, err error) {
	err = state.Read(func(s *boltfile.Snapshot) error {
		var h format.Head
		if err := readHead(s, ws, &h); err != nil {
			return err
		}
		lsns, err = WLogIn(s.Tx, ws, &h, from, to)
		return err
	})
	return lsns, err
}

// WLogIn finds entries of a workspace's log with its head. What is behind the head's end is missing.
func WLogIn(tx *bbolt.Tx, ws messages.WSID, h *format.Head, from, to messages.WLogOffset) (lsns []messages.LSN, err error) {
	b := tx.Bucket(format.BucketIndex)
	key := make([]byte, 0, format.IndexKeyLen)
	lsns = make([]messages.LSN, 0, to-from+headList)
	listed := h.Listed()
	for next := from; next < to && next <= listed; next = from + messages.WLogOffset(len(lsns)) {
		first := next - (next-1)%headList
		key = format.AppendIndexKey(key[:0], listKey(ws, first))
		before := len(lsns)
		v := b.Get(key)
		if v == nil {
			return lsns, format.DamagedIndex(key, format.ErrMissing)
		}
		if lsns, err = format.DecodeList(lsns, format.BucketIndex, key, v); err != nil {
			return lsns, format.DamagedIndex(key, err)
		}
		if len(lsns)-before != headList {
			return lsns[:before], format.DamagedIndex(key, format.ErrLayout)
		}
		lsns = append(lsns[:before], lsns[before+int(next-first):]...)
	}
	if next := from + messages.WLogOffset(len(lsns)); next < to && next <= h.Last {
		lsns = append(lsns, h.LSNs[next-listed-1:]...)
	}
	if want := int(to - from); len(lsns) >= want {
		return lsns[:want], nil
	}
	where := format.PlaceOf(format.BucketWorkspaces, "workspace %d, offset %d", ws, from+messages.WLogOffset(len(lsns)))
	return lsns, &storage.DamagedError{Where: where, Cause: format.ErrMissing}
}

// IsListed reports whether a list of the workspace's log begins with an offset.
func IsListed(h *format.Head, first messages.WLogOffset) bool {
	return first != 0 && first <= h.Listed() && (first-1)%headList == 0
}

// listKey names the list of a workspace's log that begins with an offset.
func listKey(ws messages.WSID, first messages.WLogOffset) format.RecordKey {
	return format.RecordKey{Workspace: ws, ID: messages.RecordID{Seq: messages.SeqWLogOffset, Number: messages.Number(first)}}
}

// maxCountedWorkspaces bounds the time that counting takes: less than a microsecond each.
const maxCountedWorkspaces = 100_000

// CountWorkspaces counts the workspaces that have a head.
func CountWorkspaces(ctx context.Context, state *boltfile.File) (n uint64, more bool, err error) {
	err = state.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket(format.BucketWorkspaces).Cursor()
		var before []byte
		for k, _ := c.First(); len(k) == format.WorkspaceKeyLen && bytes.Compare(k, before) > 0; k, _ = c.Next() {
			if n == maxCountedWorkspaces {
				more = true
				return nil
			}
			if n%boltfile.ImageChunk == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			n++
			before = k
		}
		return nil
	})
	return n, more, err
}
