package statedb

import (
	"bytes"
	"encoding/binary"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// headPeriods is how many periods of a sequence that keeps all of them a head has; the older ones are in bucket index.
const headPeriods = 8

// PeriodBytes returns how much the periods in a head take at most, by kind; nil if no sequence restarts.
func PeriodBytes(d *messages.Descriptor) (bytes map[messages.WSKind]int64) {
	const most = binary.MaxVarintLen32 + binary.MaxVarintLen64
	for _, k := range d.Kinds {
		for i := range k.Sequences {
			s := &k.Sequences[i]
			if !s.Restarts() {
				continue
			}
			periods := headPeriods
			if s.Restart.Keep > 0 {
				periods = max(s.Restart.Keep, s.Restart.MostAhead()+1)
			}
			if bytes == nil {
				bytes = make(map[messages.WSKind]int64)
			}
			bytes[k.ID] += int64(periods) * most
		}
	}
	return bytes
}

// olderPut is what is to be written of a period in bucket index: its last number, or 0 if it is there no more.
type olderPut struct {
	seq messages.SeqID
	format.PeriodNumber
}

// RaisePeriods merges the last numbers that events have given out of a sequence that restarts, ordered by period, by
// maximum into those of the head. Then it closes the periods that are not kept. It only reads: Store writes.
func (w *Writer) RaisePeriods(seq messages.SeqID, restart *messages.Restart, numbers []messages.SequenceNumber) error {
	s := w.Head.Sequence(seq)
	if s.Older && restart.Keep > 0 {
		if err := w.gather(s); err != nil {
			return err
		}
	}
	for _, n := range numbers {
		if err := w.raisePeriod(s, n); err != nil {
			return err
		}
	}
	w.closePeriods(s, restart)
	for restart.Keep == 0 && len(s.Periods) > headPeriods {
		w.older = append(w.older, olderPut{seq, s.Periods[0]})
		s.Periods, s.Older = slices.Delete(s.Periods, 0, 1), true
	}
	return nil
}

func (w *Writer) raisePeriod(s *format.HeadSequence, n messages.SequenceNumber) error {
	if n.Period < s.ClosedBelow {
		return nil
	}
	if s.HasOlder(n.Period) {
		stored, err := olderNumber(w.tx, w.ws, n.SequencePeriod())
		if n.Number > stored {
			w.older = append(w.older, olderPut{n.Seq, format.PeriodNumber{Period: n.Period, Number: n.Number}})
		}
		return err
	}
	i, found := s.InPeriod(n.Period)
	if !found {
		s.Periods = slices.Insert(s.Periods, i, format.PeriodNumber{Period: n.Period})
	}
	s.Periods[i].Number = max(s.Periods[i].Number, n.Number)
	return nil
}

// closePeriods forgets the periods that are not kept any more. The head has all of them, unless all are kept.
func (w *Writer) closePeriods(s *format.HeadSequence, restart *messages.Restart) {
	if restart.Keep == 0 {
		return
	}
	w.periods = w.periods[:0]
	for _, p := range s.Periods {
		w.periods = append(w.periods, p.Period)
	}
	s.ClosedBelow = max(s.ClosedBelow, restart.ClosedBelow(w.periods))
	kept, _ := s.InPeriod(s.ClosedBelow)
	s.Periods = slices.Delete(s.Periods, 0, kept)
}

// gatheredBytes is what a transaction takes in memory at most, garbage included, for a period that it takes out of bucket
// index: bbolt has each key of a page that changes, and what was read of it is sorted out in the head.
const gatheredBytes = 640

// gather takes the older periods of a sequence into the head: it has kept all of them until now, and does so no more.
func (w *Writer) gather(s *format.HeadSequence) error {
	var all []format.PeriodNumber
	err := EachOlder(w.tx, w.ws, s, func(p format.PeriodNumber) error {
		all = append(all, p)
		return nil
	})
	if err != nil {
		return err
	}
	for _, p := range all {
		w.older = append(w.older, olderPut{s.Seq, format.PeriodNumber{Period: p.Period}})
	}
	s.Periods, s.Older = slices.Insert(s.Periods, 0, all...), false
	w.Gathered += int64(len(all)) * gatheredBytes
	return nil
}

// putOlder writes what RaisePeriods has changed in bucket index.
func (w *Writer) putOlder() error {
	for _, p := range w.older {
		key := olderKey(w.ws, messages.SequencePeriod{Seq: p.seq, Period: p.Period})
		var err error
		if p.Number == 0 {
			err = w.index.Delete(key)
		} else {
			err = w.put(w.index, key, format.SealedUint(w.scratch[:0], format.BucketIndex, key, uint64(p.Number)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func olderKey(ws messages.WSID, p messages.SequencePeriod) []byte {
	at := format.RecordKey{Workspace: ws, ID: messages.RecordID{Seq: p.Seq, Number: messages.Number(p.Period)}}
	return format.AppendIndexKey(make([]byte, 0, format.IndexKeyLen), at)
}

// olderNumber returns the last number of a period that bucket index may have, 0 if it has none.
func olderNumber(tx *bbolt.Tx, ws messages.WSID, p messages.SequencePeriod) (messages.Number, error) {
	b := tx.Bucket(format.BucketIndex)
	key := olderKey(ws, p)
	if v := b.Get(key); v != nil {
		return DecodeOlder(key, v)
	}
	return 0, missing(b.Cursor(), format.BucketIndex, key, format.CheckIndex)
}

// DecodeOlder reads an entry of bucket index that is a period's last number.
func DecodeOlder(k, v []byte) (messages.Number, error) {
	n, err := format.UnsealUint(format.BucketIndex, k, v)
	if err == nil && n == 0 {
		err = format.ErrLayout
	}
	if err != nil {
		return 0, format.DamagedPeriod(k, err)
	}
	return messages.Number(n), nil
}

// EachOlder reads the periods of a sequence that are in bucket index, of which there is at least one.
func EachOlder(tx *bbolt.Tx, ws messages.WSID, s *format.HeadSequence, each func(format.PeriodNumber) error) error {
	first := olderKey(ws, messages.SequencePeriod{Seq: s.Seq, Period: s.ClosedBelow})
	prefix := first[:format.IndexPrefixLen]
	c := tx.Bucket(format.BucketIndex).Cursor()
	k, v := c.Seek(first)
	if !bytes.HasPrefix(k, prefix) {
		return format.DamagedPeriod(first, format.ErrMissing)
	}
	before := calendar.Date(0)
	for ; bytes.HasPrefix(k, prefix); k, v = c.Next() {
		n, err := DecodeOlder(k, v)
		if err != nil {
			return err
		}
		at := format.ParseRecordKey(k).ID.Number
		period := calendar.Date(at)
		if messages.Number(period) != at || period <= before || !s.HasOlder(period) {
			return format.DamagedPeriod(k, format.ErrMisplaced)
		}
		if err := each(format.PeriodNumber{Period: period, Number: n}); err != nil {
			return err
		}
		before = period
	}
	return nil
}

// NumberIn returns the last number of a sequence, in its period if it restarts, 0 if there is none. The head is its
// workspace's.
func NumberIn(tx *bbolt.Tx, ws messages.WSID, h *format.Head, p messages.SequencePeriod) (messages.Number, error) {
	if p.Period == 0 {
		return h.NumberOf(p.Seq), nil
	}
	s := h.Find(p.Seq)
	if s == nil {
		return 0, nil
	}
	if s.HasOlder(p.Period) {
		return olderNumber(tx, ws, p)
	}
	if i, found := s.InPeriod(p.Period); found {
		return s.Periods[i].Number, nil
	}
	return 0, nil
}
