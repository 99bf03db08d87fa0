package statedb

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// A row lies in the event that wrote it, and a pointer in the head leads there. When a sequence has many, they become
// packs: so a range of rows is in few places, and a row is copied into state.db once as a rule. Packs of a sequence never
// overlap: rows between those of a pack go into it.
const (
	// packPointers is how many pointers a sequence has at most before they become rows of packs. Others of the workspace
	// that have half as many join it: mostly the same events have written them.
	packPointers = 16
	// packRows and packBytes are how many rows a pack has at most, and how much data, unless it is one row.
	packRows  = 64
	packBytes = 8 << 10
)

// packer is what making packs needs, used again for each workspace.
type packer struct {
	// value reads the log.
	value  func(messages.LSN) []byte
	wanted []wantedRow
	view   format.EventView
	// partition is the workspace's, as the events say.
	partition messages.PartitionID
	rows      []format.Row
	merged    []format.Row
	old       format.Pack
	// next is the id of the next pack, 0 if it is not known yet.
	next format.PackID
}

// wantedRow is a pointer on its way into a pack. found is set when row is.
type wantedRow struct {
	seq   int
	row   format.Row
	found bool
}

// pack makes packs of pointers where there are many.
func (w *Writer) pack() error {
	sequences := w.Head.Sequences
	if !slices.ContainsFunc(sequences, func(s format.HeadSequence) bool { return len(s.Pointers) >= packPointers }) {
		return nil
	}
	p := &w.packer
	p.wanted = p.wanted[:0]
	for i := range sequences {
		if s := &sequences[i]; len(s.Pointers) >= packPointers/2 {
			for _, at := range s.Pointers {
				p.wanted = append(p.wanted, wantedRow{seq: i, row: format.Row{Number: at.Number, LSN: at.LSN}})
			}
		}
	}
	slices.SortFunc(p.wanted, func(a, b wantedRow) int { return cmp.Compare(a.row.LSN, b.row.LSN) })
	p.readRows(w.ws, sequences)
	slices.SortFunc(p.wanted, func(a, b wantedRow) int {
		return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.row.Number, b.row.Number))
	})
	for wanted := p.wanted; len(wanted) > 0; {
		n := 1
		for n < len(wanted) && wanted[n].seq == wanted[0].seq {
			n++
		}
		if err := w.packSequence(&sequences[wanted[0].seq], wanted[:n]); err != nil {
			return err
		}
		wanted = wanted[n:]
	}
	return nil
}

// readRows reads the rows in the order of the log. Of an event that cannot be read the pointers stay: whoever reads one
// is told of the damage.
func (p *packer) readRows(ws messages.WSID, sequences []format.HeadSequence) {
	read := messages.LSN(0)
	ok := false
	for i := range p.wanted {
		at := &p.wanted[i]
		if at.row.LSN != read {
			read = at.row.LSN
			value := p.value(read)
			ok = value != nil && p.view.Decode(read, value) == nil && p.view.Workspace == ws
		}
		if !ok {
			continue
		}
		p.partition = p.view.Partition
		id := messages.RecordID{Seq: sequences[at.seq].Seq, Number: at.row.Number}
		// The last write of a record in an event counts.
		for _, rec := range slices.Backward(p.view.Records) {
			if rec.ID == id {
				at.row.Offset, at.row.Data, at.found = p.view.PLogOffset, rec.Data, true
				break
			}
		}
	}
}

// packSequence puts the rows that were found, ordered by number, into packs of their sequence.
func (w *Writer) packSequence(s *format.HeadSequence, wanted []wantedRow) error {
	p := &w.packer
	p.rows, s.Pointers = p.rows[:0], s.Pointers[:0]
	for i := range wanted {
		if at := &wanted[i]; at.found {
			p.rows = append(p.rows, at.row)
		} else {
			s.Pointers = append(s.Pointers, format.Pointer{Number: at.row.Number, LSN: at.row.LSN})
		}
	}
	for rows := p.rows; len(rows) > 0; {
		n, err := w.putSpan(s, rows)
		if err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// putSpan puts as many of the rows as belong to one pack, or behind all, and returns how many these are.
func (w *Writer) putSpan(s *format.HeadSequence, rows []format.Row) (int, error) {
	at, next, err := w.packFor(s, rows[0].Number)
	if err != nil {
		return 0, err
	}
	n := 1
	for n < len(rows) && rows[n].Number < next {
		n++
	}
	rows = rows[:n]
	isLast := next == math.MaxUint64
	if at.ID == 0 || isLast && rows[0].Number > at.Last && n >= packPointers/2 {
		return n, w.putPacks(s, format.PackEntry{}, rows)
	}
	p := &w.packer
	key := format.RecordKey{Workspace: w.ws, ID: messages.RecordID{Seq: s.Seq, Number: at.First}}
	if err := readPack(w.packs, key, &at, &p.old); err != nil {
		return n, err
	}
	p.merged = mergeRows(p.merged[:0], p.old.Rows, rows)
	return n, w.putPacks(s, at, p.merged)
}

// packFor returns the entry of the last pack that begins at or before a number, zero if there is none, and where the pack
// behind it begins.
func (w *Writer) packFor(s *format.HeadSequence, n messages.Number) (at format.PackEntry, next messages.Number, err error) {
	next = math.MaxUint64
	if s.Packs == 0 {
		return at, next, nil
	}
	sought := format.AppendIndexKey(nil, format.RecordKey{Workspace: w.ws, ID: messages.RecordID{Seq: s.Seq, Number: n}})
	prefix := sought[:format.IndexPrefixLen]
	c := w.index.Cursor()
	k, v, err := atOrBefore(c, format.BucketIndex, sought)
	if err != nil {
		return at, next, err
	}
	if bytes.HasPrefix(k, prefix) {
		if at, err = format.DecodePackEntry(k, v); err != nil {
			return at, next, format.DamagedIndex(k, err)
		}
		k, _ = c.Next()
	} else {
		k, _ = c.Seek(sought)
	}
	if len(k) == format.IndexKeyLen && bytes.HasPrefix(k, prefix) {
		next = format.ParseRecordKey(k).ID.Number
	}
	return at, next, nil
}

// mergeRows merges two lists of rows that are ordered by number. Of a number that is in both the newer one counts.
func mergeRows(merged, old, newer []format.Row) []format.Row {
	for _, row := range newer {
		i, found := findRow(old, row.Number)
		merged = append(append(merged, old[:i]...), row)
		if found {
			i++
		}
		old = old[i:]
	}
	return append(merged, old...)
}

// putPacks puts rows into packs of about as many rows, as far as their data lets them. The first takes the place of an old
// pack, if there is one.
func (w *Writer) putPacks(s *format.HeadSequence, old format.PackEntry, rows []format.Row) error {
	size := 0
	for i := range rows {
		size += len(rows[i].Data)
	}
	parts := max((len(rows)+packRows-1)/packRows, (size+packBytes-1)/packBytes)
	share := (len(rows) + parts - 1) / parts
	for len(rows) > 0 {
		n := fitting(rows[:min(share, len(rows))])
		if old.ID == 0 {
			old.ID = w.nextPack()
			s.Packs++
		}
		if err := w.putPack(s.Seq, old.ID, rows[:n]); err != nil {
			return err
		}
		old, rows = format.PackEntry{}, rows[n:]
	}
	return nil
}

// fitting returns how many of the rows a pack takes, one at least.
func fitting(rows []format.Row) int {
	size := len(rows[0].Data)
	for n := 1; n < len(rows); n++ {
		if size += len(rows[n].Data); size > packBytes {
			return n
		}
	}
	return len(rows)
}

func (w *Writer) putPack(seq messages.SeqID, id format.PackID, rows []format.Row) error {
	pack := format.Pack{Workspace: w.ws, Seq: seq, Partition: w.packer.partition, Rows: rows}
	key := format.AppendPackKey(make([]byte, 0, format.PackKeyLen), id)
	if err := w.put(w.packs, key, pack.Append(w.scratch[:0], key)); err != nil {
		return err
	}
	e := format.PackEntry{ID: id, First: rows[0].Number, Last: rows[len(rows)-1].Number}
	place := format.RecordKey{Workspace: w.ws, ID: messages.RecordID{Seq: seq, Number: e.First}}
	key = format.AppendIndexKey(make([]byte, 0, format.IndexKeyLen), place)
	return w.put(w.index, key, e.Append(w.scratch[:0], key))
}

func (w *Writer) nextPack() format.PackID {
	if w.packer.next == 0 {
		w.packer.next = 1
		if k, _ := w.packs.Cursor().Last(); len(k) == format.PackKeyLen {
			w.packer.next = format.PackID(format.Uint64(k)) + 1
		}
	}
	w.packer.next++
	return w.packer.next - 1
}
