package bolt

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/dedup"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/schema"
)

// collect reads the events of all flushes once, in the order of the log, and
// gathers what they change. A flush with a damaged event is refused.
func (p *projection) collect() error {
	events, records := 0, 0
	for _, r := range p.group {
		events += len(r.entries)
		// Those of the last event are not counted.
		records += int(r.entries[len(r.entries)-1].records - r.entries[0].records)
	}
	p.records = make([]recordPut, 0, records+records/16+len(p.group))
	order := make([]indexPut, 0, events)
	lsns := make([]messages.LSN, 0, events)
	for _, r := range p.group {
		for i := range r.entries {
			order = append(order, indexPut{r: r, e: &r.entries[i], o: r.from + messages.PLogOffset(i)})
		}
	}
	if len(p.group) > 1 {
		slices.SortFunc(order, func(a, b indexPut) int { return cmp.Compare(a.e.lsn, b.e.lsn) })
	}
	for _, at := range order {
		lsns = append(lsns, at.e.lsn)
	}
	places := placesOf(order)
	for next := 0; next < len(order); next++ {
		err := p.s.log.Events(lsns[next:], func(v *format.EventView) error {
			at := order[next]
			p.witness = format.Witness{LSN: v.LSN, CRC: v.CRC}
			if at.r.refusal == nil {
				at.r.refusal = p.gather(at, v, places.of[next], &places.numbers[places.of[next]])
			}
			next++
			return nil
		})
		if err == nil {
			break
		}
		var damage *storage.DamagedError
		if next >= len(order) || !asEventDamage(err, lsns[next], &damage) {
			return err
		}
		// This flush is refused; the others go on behind the damaged event.
		damage.Partition, damage.PLogOffset = order[next].r.partition.id, order[next].o
		order[next].r.refusal = damage
	}
	p.wlog = inPlaces(order, func(i int) uint32 { return places.of[i] }, places.n(), compareWLog)
	p.records = inPlaces(p.records, func(i int) uint32 { return p.records[i].place }, places.n(), compareRecords)
	p.shareNumbers(&places)
	return nil
}

// asEventDamage reports whether an error says that the entry of the log with this
// LSN is damaged, and not more than that.
func asEventDamage(err error, lsn messages.LSN, damage **storage.DamagedError) bool {
	return errors.As(err, damage) && (*damage).Where == format.LogPlace(lsn)
}

// gather takes what an event changes. An error refuses its flush.
func (p *projection) gather(at indexPut, v *format.EventView, place uint32, numbers *lastNumbers) error {
	e := at.e
	if err := v.Belongs(at.r.partition.id, at.o); err != nil {
		return format.DamagedEvent(e.lsn, at.r.partition.id, at.o, err)
	}
	if v.Workspace != e.ws || v.WLogOffset != e.wlog {
		return format.DamagedEvent(e.lsn, at.r.partition.id, at.o, format.ErrMisplaced)
	}
	all, ok := p.s.schema.Kinds[v.WorkspaceKind]
	if !ok {
		return format.DamagedEvent(e.lsn, at.r.partition.id, at.o, fmt.Errorf("kind %d: %w", v.WorkspaceKind, messages.ErrUnknownKind))
	}
	if v.WLogOffset == 1 {
		numbers.raise(format.KindSeq, messages.Number(v.WorkspaceKind))
	}
	numbers.raise(messages.SeqWLogOffset, messages.Number(v.WLogOffset))
	for _, n := range v.Numbering() {
		// A number below the initial value, a singleton's say, says nothing about
		// the sequence.
		if seq := schema.Sequence(all, n.Seq); seq != nil && n.Number >= seq.Initial {
			numbers.raise(n.Seq, n.Number)
		}
	}
	if !v.DedupID.IsZero() {
		key := format.DedupKey{Workspace: v.Workspace, ID: v.DedupID}
		p.ids = append(p.ids, idPut{r: at.r, entry: dedup.Entry{Hash: key.Hash(p.s.files.ID), LSN: v.LSN}})
	}
	for i := range v.Records {
		rec := &v.Records[i]
		key := format.RecordKey{Workspace: v.Workspace, ID: rec.ID}
		row := format.Row{Partition: v.Partition, Offset: v.PLogOffset, LSN: v.LSN, Data: rec.Data}
		value := format.AppendRow(p.arena.Reserve(len(rec.Data)+format.MaxRowOverhead), key, &row)
		write := uint32(len(p.records))
		p.records = append(p.records, recordPut{indexPut: at, key: key, value: value, isNew: rec.New, place: place, write: write})
	}
	return nil
}

// shareNumbers gives each flush the numbers of its partition's workspaces, ordered
// by key.
func (p *projection) shareNumbers(places *places) {
	flushes := make(map[messages.PartitionID]*flushRequest, len(p.group))
	for _, r := range p.group {
		flushes[r.partition.id] = r
	}
	for place, ws := range places.workspaces {
		r := flushes[messages.PartitionOf(ws, p.s.schema.Partitions)]
		for _, n := range places.numbers[place] {
			r.derived = append(r.derived, numberPut{ws: ws, seq: n.Seq, number: n.Number})
		}
	}
}

// places are the workspaces of some events by their ids, and what is known of each. What
// belongs to one is put there at once, so that only the few things of one workspace are
// left to be sorted by comparing them.
type places struct {
	workspaces []messages.WSID
	numbers    []lastNumbers
	// of has the workspace's index for each event.
	of []uint32
}

// lastNumbers are the last numbers of a workspace's sequences, ordered by sequence.
type lastNumbers []messages.SequenceNumber

// raise merges by maximum.
func (l *lastNumbers) raise(seq messages.SeqID, n messages.Number) {
	i, found := slices.BinarySearchFunc(*l, seq, func(have messages.SequenceNumber, seq messages.SeqID) int {
		return cmp.Compare(have.Seq, seq)
	})
	if !found {
		*l = slices.Insert(*l, i, messages.SequenceNumber{Seq: seq})
	}
	(*l)[i].Number = max((*l)[i].Number, n)
}

// placesOf finds the workspaces of events.
func placesOf(events []indexPut) places {
	type eventOf struct {
		ws messages.WSID
		i  int
	}
	byID := make([]eventOf, 0, len(events))
	for i := range events {
		byID = append(byID, eventOf{events[i].e.ws, i})
	}
	slices.SortFunc(byID, func(a, b eventOf) int { return cmp.Compare(a.ws, b.ws) })
	p := places{of: make([]uint32, len(events))}
	for i, e := range byID {
		if i == 0 || e.ws != byID[i-1].ws {
			p.workspaces = append(p.workspaces, e.ws)
		}
		p.of[e.i] = uint32(len(p.workspaces) - 1)
	}
	p.numbers = make([]lastNumbers, p.n())
	return p
}

func (p *places) n() int { return len(p.workspaces) }

// inPlaces returns items ordered by the place of each, and in one place by comparison, which must
// tell any two of them apart.
func inPlaces[T any](items []T, placeOf func(i int) uint32, places int, compare func(a, b T) int) []T {
	next := make([]int, places+1)
	for i := range items {
		next[placeOf(i)+1]++
	}
	for place := range places {
		next[place+1] += next[place]
	}
	ordered := make([]T, len(items))
	for i := range items {
		place := placeOf(i)
		ordered[next[place]] = items[i]
		next[place]++
	}
	start := 0
	for _, end := range next[:places] {
		slices.SortFunc(ordered[start:end], compare)
		start = end
	}
	return ordered
}
