package statedb

import (
	"bytes"
	"cmp"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// A row lies in the event that wrote it, and a pointer in the head leads there. When a sequence has many, they become
// packs: so a range of rows is in few places, and a row is copied into state.db once as a rule. Packs of a sequence never
// overlap: rows between those of a pack go into it.
const (
	// packPointers is how many pointers a sequence has at most before they become rows of packs. Others of the workspace
	// that have half as many join it: mostly the same events have written them.
	packPointers = 2 * PackedBy
	// packRows and packBytes are how many rows a pack has at most, and how much data, unless it is one row.
	packRows  = 64
	packBytes = 8 << 10
)

// PackedBy is from how many records of a transaction on a workspace probably gets packs: half of them may be enough, with
// the pointers that it has.
const PackedBy = 8

// A head leads to so many packs at most, all sequences together, and headPacks of one; but to one of each. When a sequence
// has more, bucket index gets all but half of them. So it is written once in 16 packs, and who reads what is new does not
// search it. Packs of lower numbers than those of the head go there at once, if there are others.
const (
	headPacks    = 31
	headPacksAll = 256
)

// packer is what making packs needs, used again for each workspace.
type packer struct {
	// value reads the log.
	value  func(messages.LSN) []byte
	wanted []wantedRow
	// unread are those of them that must be read, by their places in wanted.
	unread []int
	view   format.EventView
	// partition is the workspace's, as the events say.
	partition messages.PartitionID
	spans     []packSpan
	// rows has the rows that were found, both those of spans that are merged with the rows of a pack.
	rows, both []format.Row
	old        format.Pack
	// next is the id of the next pack, 0 if it is not known yet.
	next format.PackID
	// headPacks is how many packs of a sequence the head leads to, at most.
	headPacks int
}

// wantedRow is a pointer on its way into a pack. found is set when row is.
type wantedRow struct {
	seq   int
	row   format.Row
	found bool
}

// packSpan is what becomes one pack, or several beside each other.
type packSpan struct {
	seq *format.HeadSequence
	// indexed says that bucket index leads to the packs, since it does to those around them.
	indexed bool
	// at is the last pack that begins at or before the rows, zero if there is none. It is replaced if its rows are among
	// the span's.
	at      format.PackEntry
	replace bool
	rows    []format.Row
	// next is where the pack behind them begins, 0 if there is none.
	next messages.Number
}

// pack makes packs of pointers where there are many. All that can be damaged is read before anything is written: what is
// refused leaves nothing behind.
func (w *Writer) pack() error {
	sequences := w.Head.Sequences
	if !slices.ContainsFunc(sequences, func(s format.HeadSequence) bool { return len(s.Pointers) >= packPointers }) {
		return nil
	}
	p := &w.packer
	p.wanted, p.unread, p.partition = p.wanted[:0], p.unread[:0], w.Partition
	read := w.Rows
	for i := range sequences {
		if s := &sequences[i]; len(s.Pointers) >= packPointers/2 {
			read = p.want(i, s, read)
		}
	}
	p.readRows(w.ws, sequences)
	p.spans, p.rows, p.both = p.spans[:0], p.rows[:0], p.both[:0]
	for wanted := p.wanted; len(wanted) > 0; {
		n := 1
		for n < len(wanted) && wanted[n].seq == wanted[0].seq {
			n++
		}
		if err := w.planSequence(&sequences[wanted[0].seq], wanted[:n]); err != nil {
			return err
		}
		wanted = wanted[n:]
	}
	if err := w.findNextPack(); err != nil {
		return err
	}
	for i := range p.spans {
		if err := w.putSpan(&p.spans[i]); err != nil {
			return err
		}
	}
	for i := range p.spans {
		if err := w.indexPacks(p.spans[i].seq); err != nil {
			return err
		}
	}
	return nil
}

// mostPacks is how many packs of a sequence the head leads to.
func (w *Writer) mostPacks() int {
	return max(1, min(w.packer.headPacks, headPacksAll/len(w.Head.Sequences)))
}

// want wants the rows of a sequence, in the order of their numbers. Those among the rows that were read are found. It
// returns the rows behind them.
func (p *packer) want(seq int, s *format.HeadSequence, read []ReadRow) []ReadRow {
	for _, at := range s.Pointers {
		for len(read) > 0 && (read[0].Seq < s.Seq || read[0].Seq == s.Seq && read[0].Number < at.Number) {
			read = read[1:]
		}
		wanted := wantedRow{seq: seq, row: format.Row{Number: at.Number, LSN: at.LSN}}
		if len(read) > 0 && read[0].Seq == s.Seq && read[0].Number == at.Number && read[0].LSN == at.LSN {
			wanted.row, wanted.found = read[0].Row, true
		} else {
			p.unread = append(p.unread, len(p.wanted))
		}
		p.wanted = append(p.wanted, wanted)
	}
	return read
}

// readRows reads the rows that were not found yet, in the order of the log. Of an event that cannot be read the pointers
// stay: whoever reads one is told of the damage.
func (p *packer) readRows(ws messages.WSID, sequences []format.HeadSequence) {
	slices.SortFunc(p.unread, func(a, b int) int { return cmp.Compare(p.wanted[a].row.LSN, p.wanted[b].row.LSN) })
	read := messages.LSN(0)
	ok := false
	for _, i := range p.unread {
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

// planSequence makes spans of the rows that were found, ordered by number.
func (w *Writer) planSequence(s *format.HeadSequence, wanted []wantedRow) error {
	p := &w.packer
	first, spans := len(p.rows), len(p.spans)
	s.Pointers = s.Pointers[:0]
	for i := range wanted {
		if at := &wanted[i]; at.found {
			p.rows = append(p.rows, at.row)
		} else {
			s.Pointers = append(s.Pointers, format.Pointer{Number: at.row.Number, LSN: at.row.LSN})
		}
	}
	for rows := p.rows[first:]; len(rows) > 0; {
		n, err := w.planSpan(s, rows)
		if err != nil {
			return err
		}
		rows = rows[n:]
	}
	most := len(s.Packs)
	for _, span := range p.spans[spans:] {
		most += 3*parts(span.rows) + 1 // full ones, the last one, and two by two they have more than packBytes
	}
	if most <= w.mostPacks() {
		return nil
	}
	return w.checkIndexEnd(s)
}

// planSpan makes a span of as many of the rows as belong to one pack, or behind all, and returns how many these are.
func (w *Writer) planSpan(s *format.HeadSequence, rows []format.Row) (int, error) {
	at, err := w.packFor(s, rows[0].Number)
	if err != nil {
		return 0, err
	}
	next := at.Next
	if at.ID == 0 {
		next = s.First
	}
	n := 1
	for n < len(rows) && (next == 0 || rows[n].Number < next) {
		n++
	}
	span := packSpan{seq: s, at: at, rows: rows[:n], next: next, indexed: s.Indexed() && rows[0].Number < s.Packs[0].First}
	behindAll := next == 0 && rows[0].Number > at.Last && n >= packPointers/2
	if at.ID != 0 && !behindAll {
		span.replace = true
		if span.rows, err = w.merged(s.Seq, &at, span.rows); err != nil {
			return 0, err
		}
	}
	w.packer.spans = append(w.packer.spans, span)
	return n, nil
}

// merged returns the rows of a pack with others between them.
func (w *Writer) merged(seq messages.SeqID, at *format.PackEntry, rows []format.Row) ([]format.Row, error) {
	p := &w.packer
	key := format.RecordKey{Workspace: w.ws, ID: messages.RecordID{Seq: seq, Number: at.First}}
	id := format.AppendPackKey(make([]byte, 0, format.PackKeyLen), at.ID)
	if err := readPack(id, w.packs.Get(id), key, at, &p.old, AllRows(seq)); err != nil {
		return nil, err
	}
	first := len(p.both)
	p.both = mergeRows(p.both, p.old.Rows, rows)
	return p.both[first:], nil
}

// putSpan writes a span, and lets the pack before it, or the head, lead to it.
func (w *Writer) putSpan(span *packSpan) error {
	old := format.PackID(0)
	switch {
	case span.replace:
		old = span.at.ID
	case span.at.ID != 0:
		span.at.Next = span.rows[0].Number
		span.seq.PutPack(span.at) // the last one of all
	default:
		span.seq.First = span.rows[0].Number
	}
	return w.putPacks(span, old)
}

// packFor returns the entry of the last pack that begins at or before a number, zero if there is none.
func (w *Writer) packFor(s *format.HeadSequence, n messages.Number) (at format.PackEntry, err error) {
	switch {
	case s.First == 0:
		return at, nil
	case n < s.First:
		return at, w.checkIndexBegin(s)
	}
	if i := s.PackAt(n); i >= 0 {
		return s.Packs[i], nil
	}
	return w.indexAt(w.index.Cursor(), s, n)
}

// indexAt returns the entry of the last pack that the index has at or before a number. The cursor stands there.
func (w *Writer) indexAt(c *bbolt.Cursor, s *format.HeadSequence, n messages.Number) (at format.PackEntry, err error) {
	key := format.RecordKey{Workspace: w.ws, ID: messages.RecordID{Seq: s.Seq, Number: n}}
	if at, err = packAt(c, key, s.First); err != nil {
		return at, err
	}
	// A cursor goes one page further than Put: what Put would not replace must not be written beside.
	key.ID.Number = at.First
	if found := format.AppendIndexKey(nil, key); w.index.Get(found) == nil {
		return at, astray(format.BucketIndex, found)
	}
	return at, nil
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

// putPacks puts the rows of a span into packs of about as many rows, as far as their data lets them. The first takes the
// place of an old pack, if there is one. Behind the last the pack begins that the span's next says.
func (w *Writer) putPacks(span *packSpan, old format.PackID) error {
	rows := span.rows
	n := parts(rows)
	share := (len(rows) + n - 1) / n
	for len(rows) > 0 {
		n := fitting(rows[:min(share, len(rows))])
		e := format.PackEntry{ID: old, First: rows[0].Number, Last: rows[n-1].Number, Next: span.next}
		if n < len(rows) {
			e.Next = rows[n].Number
		}
		if e.ID == 0 {
			e.ID = w.packer.next
			w.packer.next++
		}
		if err := w.putPack(span, &e, rows[:n]); err != nil {
			return err
		}
		old, rows = 0, rows[n:]
	}
	return nil
}

// parts is how many packs rows take, if their data is of about the same length.
func parts(rows []format.Row) int {
	size := 0
	for i := range rows {
		size += len(rows[i].Data)
	}
	return max((len(rows)+packRows-1)/packRows, (size+packBytes-1)/packBytes)
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

func (w *Writer) putPack(span *packSpan, e *format.PackEntry, rows []format.Row) error {
	pack := format.Pack{Workspace: w.ws, Seq: span.seq.Seq, Partition: w.packer.partition, Rows: rows}
	key := format.AppendPackKey(make([]byte, 0, format.PackKeyLen), e.ID)
	if err := w.put(w.packs, key, pack.Append(w.scratch[:0], key)); err != nil {
		return err
	}
	if span.indexed {
		return w.putIndex(span.seq.Seq, e)
	}
	span.seq.PutPack(*e)
	return nil
}

// indexPacks lets bucket index lead to older packs, if the head leads to many.
func (w *Writer) indexPacks(s *format.HeadSequence) error {
	most := w.mostPacks()
	if len(s.Packs) <= most {
		return nil
	}
	older := s.Packs[:len(s.Packs)-(most+1)/2]
	for i := range older {
		if err := w.putIndex(s.Seq, &older[i]); err != nil {
			return err
		}
	}
	s.Packs = slices.Delete(s.Packs, 0, len(older))
	return nil
}

// checkIndexBegin makes sure that the index has nothing before the first pack: another one may go there.
func (w *Writer) checkIndexBegin(s *format.HeadSequence) error {
	prefix := format.AppendSequenceKey(make([]byte, 0, format.IndexPrefixLen), w.ws, s.Seq)
	k, _ := w.index.Cursor().Seek(prefix)
	first := format.AppendIndexKey(nil, format.RecordKey{Workspace: w.ws, ID: messages.RecordID{Seq: s.Seq, Number: s.First}})
	switch found := bytes.HasPrefix(k, prefix); {
	case s.Indexed() && !found:
		return format.DamagedIndex(first, format.ErrMissing)
	case found && (!s.Indexed() || !bytes.Equal(k, first)):
		return format.DamagedIndex(k, format.ErrMisplaced)
	case found && w.index.Get(first) == nil:
		return astray(format.BucketIndex, first)
	}
	return nil
}

// checkIndexEnd makes sure that the index leads to the first pack of the head, and that nothing is behind it: packs of the
// head may go there.
func (w *Writer) checkIndexEnd(s *format.HeadSequence) (err error) {
	c := chain{cursor: w.index.Cursor(), key: format.RecordKey{Workspace: w.ws, ID: messages.RecordID{Seq: s.Seq}}, rest: s.Packs}
	if s.Indexed() {
		if c.entry, err = w.indexAt(c.cursor, s, s.Packs[0].First-1); err != nil {
			return err
		}
		return c.next()
	}
	return w.checkIndexBegin(s)
}

func (w *Writer) putIndex(seq messages.SeqID, e *format.PackEntry) error {
	place := format.RecordKey{Workspace: w.ws, ID: messages.RecordID{Seq: seq, Number: e.First}}
	key := format.AppendIndexKey(make([]byte, 0, format.IndexKeyLen), place)
	return w.put(w.index, key, e.Append(w.scratch[:0], key))
}

// findNextPack finds an id that no pack has. Where the last pack's key is damaged nobody knows one.
func (w *Writer) findNextPack() error {
	if w.packer.next != 0 {
		return nil
	}
	last := format.PackID(0)
	if k, v := w.packs.Cursor().Last(); k != nil {
		if err := w.packer.old.Decode(k, v); err != nil {
			return &storage.DamagedError{Where: format.PlaceOf(format.BucketPacks, "key %x", k), Cause: err}
		}
		last = format.PackID(format.Uint64(k))
	}
	w.packer.next = last + 1
	return nil
}
