package check

import (
	"context"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/statedb"
	"github.com/partita-go/partita/storage/verify"
)

// astray finds entries of the index, and packs, to which nothing leads. What leads somewhere where nothing is, whoever
// reads it finds.
func (m *Image) astray(ctx context.Context, each func(*verify.RowEntry, error) error) error {
	var led leading
	err := m.files.State.Scan(ctx, format.BucketIndex, nil, func(k, v []byte) error {
		if len(k) != format.IndexKeyLen {
			return m.files.State.BadKey(format.BucketIndex, k)
		}
		key := format.ParseRecordKey(k)
		if err := m.files.State.View(func(tx *bbolt.Tx) error { return led.to(tx, key, k, v) }); err != nil {
			return each(&verify.RowEntry{Workspace: key.Workspace, ID: key.ID}, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	var pack format.Pack
	var of ofHead
	return m.files.State.Scan(ctx, format.BucketPacks, nil, func(k, v []byte) error {
		if len(k) != format.PackKeyLen {
			return m.files.State.BadKey(format.BucketPacks, k)
		}
		id := format.PackID(format.Uint64(k))
		if err := pack.Decode(k, v); err != nil {
			return &storage.DamagedError{Where: m.files.State.PlaceOf(format.BucketPacks, "pack %d", id), Cause: err}
		}
		key := format.RecordKey{Workspace: pack.Workspace, ID: messages.RecordID{Seq: pack.Seq, Number: pack.First}}
		return m.files.State.View(func(tx *bbolt.Tx) error {
			if of.leadsTo(tx, key, id) {
				return nil
			}
			return each(&verify.RowEntry{Workspace: key.Workspace, ID: key.ID}, format.DamagedPack(key, id, format.ErrMisplaced))
		})
	})
}

// ofHead is the head of the workspace whose packs were looked at last: they lie beside each other.
type ofHead struct {
	ws   messages.WSID
	head format.Head
	read bool
}

// leadsTo reports whether a head or the index leads to a pack that begins with a record. What is damaged is told elsewhere.
func (o *ofHead) leadsTo(tx *bbolt.Tx, k format.RecordKey, id format.PackID) bool {
	if !o.read || o.ws != k.Workspace {
		o.ws, o.read = k.Workspace, statedb.ReadHead(tx, k.Workspace, &o.head) == nil
	}
	if s := o.head.Find(k.ID.Seq); o.read && s != nil {
		if i := s.PackAt(k.ID.Number); i >= 0 {
			return s.Packs[i].First == k.ID.Number && s.Packs[i].ID == id
		}
	}
	at := format.AppendIndexKey(nil, k)
	e, err := format.DecodePackEntry(at, tx.Bucket(format.BucketIndex).Get(at))
	return err == nil && e.ID == id
}

// leading follows the entries of the index in their order.
type leading struct {
	key  format.RecordKey
	head format.Head
	read bool
	// lost says that the head cannot be read, which was told.
	lost bool
	// next is where the next entry of the sequence must begin, and end where that is the head's: there must be none.
	next, end messages.Number
}

// to returns damage if nothing leads to an entry.
func (l *leading) to(tx *bbolt.Tx, key format.RecordKey, k, v []byte) error {
	other := !l.read || l.key.Workspace != key.Workspace
	otherSequence := other || l.key.ID.Seq != key.ID.Seq
	l.read, l.key = true, key
	if other {
		err := statedb.ReadHead(tx, key.Workspace, &l.head)
		if l.lost = err != nil; l.lost {
			return err
		}
	}
	if l.lost {
		return nil
	}
	if otherSequence {
		l.beginSequence(key.ID.Seq)
	}
	if key.ID.Seq == messages.SeqWLogOffset {
		if statedb.IsListed(&l.head, messages.WLogOffset(key.ID.Number)) {
			return nil
		}
		return format.DamagedIndex(k, format.ErrMisplaced)
	}
	if s := l.head.Find(key.ID.Seq); s != nil && s.Older {
		return toPeriod(s, key, k, v)
	}
	if key.ID.Number != l.next || l.next == l.end {
		return format.DamagedIndex(k, format.ErrMisplaced)
	}
	e, err := format.DecodePackEntry(k, v)
	if err != nil {
		return format.DamagedIndex(k, err)
	}
	l.next = e.Next
	return nil
}

// beginSequence says where the entries of a sequence begin, and end.
func (l *leading) beginSequence(seq messages.SeqID) {
	l.next, l.end = 0, 0
	if s := l.head.Find(seq); s != nil && len(s.Packs) > 0 {
		l.next, l.end = s.First, s.Packs[0].First
	}
}

// toPeriod returns damage if an entry is not the last number of an older period.
func toPeriod(s *format.HeadSequence, key format.RecordKey, k, v []byte) error {
	if period := calendar.Date(key.ID.Number); messages.Number(period) != key.ID.Number || !s.HasOlder(period) {
		return format.DamagedPeriod(k, format.ErrMisplaced)
	}
	_, err := statedb.DecodeOlder(k, v)
	return err
}
