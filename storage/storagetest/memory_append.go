package storagetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// Append writes a batch, all of it or nothing: everything is judged first, then
// written. An empty batch only asks whether its epoch is the current one.
func (m *Memory) Append(ctx context.Context, b storage.Batch) error {
	events := cloneEvents(b.Events)
	p, unlock, err := m.partition(ctx, b.Partition)
	if errors.Is(err, messages.ErrWrongPartition) {
		return fmt.Errorf("%w: %w", storage.ErrInvalidEvent, err)
	}
	if err != nil {
		return err
	}
	defer unlock()
	if err := p.fence(b.Partition, b.Epoch); err != nil {
		return err
	}
	if err := m.disk.roomFor(p, len(events)); err != nil {
		return err
	}
	j := judge{disk: m.disk, partition: p, batch: b, events: events}
	if err := j.judgeAll(); err != nil {
		return err
	}
	for i := range events {
		m.disk.write(p, &events[i])
	}
	m.disk.tell(b.Partition, events)
	return nil
}

func (d *disk) roomFor(p *memPartition, events int) error {
	tail := int(p.last() + 1 - p.checkpoint)
	if d.tailLimit == 0 || tail == 0 || tail+events <= d.tailLimit {
		return nil
	}
	return fmt.Errorf("%w: got %d more, %d of at most %d events are in it", storage.ErrTailFull, events, tail, d.tailLimit)
}

func (d *disk) write(p *memPartition, e *messages.Event) {
	p.log = append(p.log, e)
	d.events++
	ws := d.workspaces[e.Workspace]
	if ws == nil {
		ws = &memWorkspace{
			kind: e.WorkspaceKind,
			rows: make(map[messages.RecordID]storage.Row),
			ids:  make(map[messages.DedupID]messages.WLogOffset),
		}
		d.workspaces[e.Workspace] = ws
	}
	if e.WLogOffset <= messages.WLogOffset(len(ws.wlog)) {
		// Trust level 2 puts. A reader may be looking at the old slice.
		ws.wlog = slices.Clone(ws.wlog)
		ws.wlog[e.WLogOffset-1] = e
	} else {
		ws.wlog = append(ws.wlog, e)
	}
	if !e.DedupID.IsZero() {
		ws.ids[e.DedupID] = e.WLogOffset
	}
	for _, r := range e.Records {
		ws.rows[r.ID] = storage.Row{ID: r.ID, Data: r.Data, Partition: e.Partition, PLogOffset: e.PLogOffset}
	}
}

// judge says whether a batch may be written.
type judge struct {
	disk      *disk
	partition *memPartition
	batch     storage.Batch
	events    []messages.Event

	// written holds the records of what is judged so far.
	written map[rowKey]bool
}

type rowKey struct {
	workspace messages.WSID
	id        messages.RecordID
}

// judgeAll judges the events. What conflicts with the log although it is there
// already is a duplicate: an append that is repeated meets its own records.
func (j *judge) judgeAll() error {
	for i := range j.events {
		if err := j.judge(i); err != nil {
			if errors.Is(err, storage.ErrConflict) {
				return cmp.Or(j.duplicates(), err)
			}
			return err
		}
	}
	return j.duplicates()
}

func (j *judge) judge(i int) error {
	e := &j.events[i]
	for _, check := range []func(int, *messages.Event) error{
		j.identity, j.order, j.contents, j.sections, j.together, j.workspace, j.records,
	} {
		switch err := check(i, e); {
		case errors.Is(err, storage.ErrInvalidEvent):
			return &storage.InvalidEventError{Partition: j.batch.Partition, PLogOffset: e.PLogOffset, Cause: err}
		case err != nil:
			return fmt.Errorf("partition %d, offset %d: %w", j.batch.Partition, e.PLogOffset, err)
		}
	}
	return nil
}

// identity checks that the event is this batch's.
func (j *judge) identity(_ int, e *messages.Event) error {
	d := &j.disk.desc
	switch {
	case e.Kind != messages.EventBusiness:
		return fmt.Errorf("%w: event kind: got %d, want %d", storage.ErrInvalidEvent, e.Kind, messages.EventBusiness)
	case e.Partition != j.batch.Partition || e.Epoch != j.batch.Epoch:
		return fmt.Errorf("%w: got partition %d and epoch %d, the batch has %d and %d",
			storage.ErrInvalidEvent, e.Partition, e.Epoch, j.batch.Partition, j.batch.Epoch)
	case messages.PartitionOf(e.Workspace, d.Partitions) != e.Partition:
		return fmt.Errorf("%w: %w: workspace %d", storage.ErrInvalidEvent, messages.ErrWrongPartition, e.Workspace)
	case j.disk.kinds[e.WorkspaceKind] == nil:
		return fmt.Errorf("%w: %w: %d", storage.ErrInvalidEvent, messages.ErrUnknownKind, e.WorkspaceKind)
	}
	return nil
}

// order checks that the event continues the partition's log.
func (j *judge) order(i int, e *messages.Event) error {
	var previous *messages.Event
	if i > 0 {
		previous = &j.events[i-1]
	} else if n := len(j.partition.log); n > 0 {
		previous = j.partition.log[n-1]
	}
	if previous == nil {
		previous = &messages.Event{}
	}
	if e.PLogOffset != previous.PLogOffset+1 {
		return fmt.Errorf("%w: PLog offset: got %d, want %d", storage.ErrOutOfOrder, e.PLogOffset, previous.PLogOffset+1)
	}
	if e.RegisteredAt < previous.RegisteredAt {
		return fmt.Errorf("%w: got %d, the predecessor has %d", storage.ErrTimeFell, e.RegisteredAt, previous.RegisteredAt)
	}
	return nil
}

// contents checks the numbers and records against the descriptor.
func (j *judge) contents(at int, e *messages.Event) error {
	if err := checkSaid(e); err != nil {
		return err
	}
	seqs := j.disk.kinds[e.WorkspaceKind]
	for i, n := range slices.Concat(e.Numbers, e.Moves) {
		if err := seqs.check(n); err != nil {
			return err
		}
		def := seqs[n.Seq]
		if err := def.CheckPeriod(e.Date, n.Period); err != nil {
			return fmt.Errorf("%w: %w", storage.ErrInvalidEvent, err)
		}
		named := e.Date != 0 || i < int(e.Brought) || i >= len(e.Numbers)
		if err := def.CheckDecided(e.RegisteredAt, n.Period); err != nil && def.Restarts() && !named {
			return fmt.Errorf("%w: %w", storage.ErrInvalidEvent, err)
		}
		if first := seqs[n.Seq].Initial; n.Number < first {
			return fmt.Errorf("%w: sequence %d: got number %d, want at least %d", storage.ErrInvalidEvent, n.Seq, n.Number, first)
		}
	}
	return j.rows(at, e)
}

// checkSaid checks what an event says besides its numbers and records.
func checkSaid(e *messages.Event) error {
	if e.Date != 0 && !e.Date.Valid() {
		return fmt.Errorf("%w: got business date %d, want one like 20260329", storage.ErrInvalidEvent, e.Date)
	}
	if e.Zone != "" && !calendar.IsZoneName(e.Zone) {
		return fmt.Errorf("%w: got time zone %q, want a name like Europe/Zurich", storage.ErrInvalidEvent, e.Zone)
	}
	if e.Trace != 0 && e.Trace.Validate() != nil {
		return fmt.Errorf("%w: %w", storage.ErrInvalidEvent, e.Trace.Validate())
	}
	if len(e.Numbers) > messages.MaxEventNumbers {
		return fmt.Errorf("%w: got %d numbers, want at most %d", storage.ErrInvalidEvent, len(e.Numbers), messages.MaxEventNumbers)
	}
	if len(e.Moves) > messages.MaxEventNumbers || int64(e.Brought) > int64(len(e.Numbers)) {
		return fmt.Errorf("%w: got %d moves, and %d of %d numbers brought along", storage.ErrInvalidEvent, len(e.Moves), e.Brought, len(e.Numbers))
	}
	return nil
}

// rows checks the records against the descriptor.
func (j *judge) rows(at int, e *messages.Event) error {
	seqs := j.disk.kinds[e.WorkspaceKind]
	for i := range e.Records {
		id := e.Records[i].ID
		if err := seqs.check(id.SequenceNumber()); err != nil {
			return err
		}
		def := seqs[id.Seq]
		if def.Restarts() {
			return fmt.Errorf("%w: record %v of a sequence that restarts", storage.ErrInvalidEvent, id)
		}
		limit := def.MaxExplicit()
		gives := func(g messages.Event) bool {
			return g.Workspace == e.Workspace && slices.Contains(g.Numbers, id.SequenceNumber())
		}
		if e.Records[i].New && id.Number > limit && !slices.ContainsFunc(j.events[:at+1], gives) {
			return fmt.Errorf("%w: %w: got %v, want at most %d", storage.ErrInvalidEvent, messages.ErrExplicitID, id, limit)
		}
	}
	return nil
}

// check refuses what is no number of the kind's sequences. The WLog offset is
// not a number that an event lists.
func (s sequences) check(n messages.SequenceNumber) error {
	def, ok := s[n.Seq]
	switch {
	case !ok || n.Seq == messages.SeqWLogOffset:
		return fmt.Errorf("%w: %w: %d", storage.ErrInvalidEvent, messages.ErrUnknownSequence, n.Seq)
	case n.Number == 0 || n.Number > def.Max():
		return fmt.Errorf("%w: sequence %d: got number %d, want 1 to %d", storage.ErrInvalidEvent, n.Seq, n.Number, def.Max())
	}
	return nil
}

// workspace checks that the event continues the workspace's log.
func (j *judge) workspace(i int, e *messages.Event) error {
	last, overwritable := j.predecessor(i, e.Workspace)
	if last == nil {
		last = &messages.Event{WorkspaceKind: e.WorkspaceKind}
	}
	switch {
	case e.WorkspaceKind != last.WorkspaceKind:
		return fmt.Errorf("%w: %w: workspace %d: got kind %d, it has %d",
			storage.ErrInvalidEvent, messages.ErrKindMismatch, e.Workspace, e.WorkspaceKind, last.WorkspaceKind)
	case e.WLogOffset == last.WLogOffset+1:
		return nil
	case e.WLogOffset == 0 || e.WLogOffset > last.WLogOffset || !overwritable:
		return fmt.Errorf("%w: workspace %d: WLog offset: got %d, want %d", storage.ErrOutOfOrder, e.Workspace, e.WLogOffset, last.WLogOffset+1)
	case j.disk.desc.TrustLevel == messages.TrustAll:
		return nil
	}
	return j.conflict(storage.PlaceWLog, e, messages.RecordID{})
}

// predecessor returns the workspace's last event, nil if it has none. It is
// overwritable, as far as the trust level goes, if the tail knows nothing of the
// workspace.
func (j *judge) predecessor(i int, id messages.WSID) (last *messages.Event, overwritable bool) {
	for i--; i >= 0; i-- {
		if j.events[i].Workspace == id {
			return &j.events[i], false
		}
	}
	ws := j.disk.workspaces[id]
	if ws == nil {
		return nil, false
	}
	last = ws.wlog[len(ws.wlog)-1]
	return last, last.PLogOffset < j.partition.checkpoint
}

// records checks that the keys of new records are free, if the trust level asks
// for it.
func (j *judge) records(_ int, e *messages.Event) error {
	if j.disk.desc.TrustLevel != messages.TrustNone {
		return nil
	}
	for i := range e.Records {
		key := rowKey{workspace: e.Workspace, id: e.Records[i].ID}
		if e.Records[i].New && (j.written[key] || j.disk.has(key)) {
			return j.conflict(storage.PlaceRecord, e, key.id)
		}
		if j.written == nil {
			j.written = make(map[rowKey]bool)
		}
		j.written[key] = true
	}
	return nil
}

func (d *disk) has(key rowKey) bool {
	ws := d.workspaces[key.workspace]
	if ws == nil {
		return false
	}
	_, ok := ws.rows[key.id]
	return ok
}

func (j *judge) conflict(place storage.Place, e *messages.Event, record messages.RecordID) error {
	return &storage.ConflictError{
		Place:      place,
		Partition:  e.Partition,
		PLogOffset: e.PLogOffset,
		Workspace:  e.Workspace,
		WLogOffset: e.WLogOffset,
		Record:     record,
	}
}

// Find returns the offset of the workspace's event that has the id, 0 if there is
// none.
func (m *Memory) Find(ctx context.Context, id messages.WSID, dedup messages.DedupID) (messages.WLogOffset, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	return m.disk.find(id, dedup), nil
}

func (d *disk) find(id messages.WSID, dedup messages.DedupID) messages.WLogOffset {
	if ws := d.workspaces[id]; ws != nil {
		return ws.ids[dedup]
	}
	return 0
}

// duplicates returns a [*storage.DuplicateError] with all events of the batch whose
// ids are in the log, or earlier in the batch.
func (j *judge) duplicates() error {
	type key struct {
		workspace messages.WSID
		id        messages.DedupID
	}
	here := make(map[key]messages.WLogOffset)
	var list []storage.Duplicate
	for i := range j.events {
		e := &j.events[i]
		if e.DedupID.IsZero() {
			continue
		}
		k := key{e.Workspace, e.DedupID}
		first := j.disk.find(e.Workspace, e.DedupID)
		if first == 0 {
			first = here[k]
		}
		if first == 0 {
			here[k] = e.WLogOffset
			continue
		}
		list = append(list, storage.Duplicate{PLogOffset: e.PLogOffset, Workspace: e.Workspace, ID: e.DedupID, First: first})
	}
	if list == nil {
		return nil
	}
	return &storage.DuplicateError{Partition: j.batch.Partition, Duplicates: list}
}

// sections checks that the event leaves the runtime its tags.
func (j *judge) sections(_ int, e *messages.Event) error {
	for _, s := range e.Sections {
		if s.Tag >= 1 && s.Tag <= messages.MaxReservedTag {
			return fmt.Errorf("%w: section: got tag %d, tags up to %d are the runtime's", storage.ErrInvalidEvent, s.Tag, messages.MaxReservedTag)
		}
	}
	return nil
}

// together checks that the events follow which the event was appended with.
func (j *judge) together(i int, e *messages.Event) error {
	for n := 1; n <= int(e.Together); n++ {
		if i+n >= len(j.events) {
			return fmt.Errorf("%w: got %d events behind it in the batch, want %d", storage.ErrInvalidEvent, n-1, e.Together)
		}
		next := &j.events[i+n]
		if next.Workspace != e.Workspace || !next.DedupID.IsZero() || next.Together != 0 {
			return fmt.Errorf("%w: got workspace %d, id %v and together %d at offset %d, want workspace %d and neither",
				storage.ErrInvalidEvent, next.Workspace, next.DedupID, next.Together, next.PLogOffset, e.Workspace)
		}
	}
	return nil
}
