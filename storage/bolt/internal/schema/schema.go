package schema

import (
	"fmt"
	"slices"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// Schema answers what an event may contain. It is made of a descriptor once and
// never changes.
type Schema struct {
	Partitions uint32
	Trust      messages.TrustLevel
	Kinds      map[messages.WSKind][]messages.Sequence
}

// New returns the schema of an application's descriptor.
func New(d *messages.Descriptor) *Schema {
	s := &Schema{Partitions: d.Partitions, Trust: d.TrustLevel, Kinds: make(map[messages.WSKind][]messages.Sequence, len(d.Kinds))}
	for _, k := range d.Kinds {
		s.Kinds[k.ID] = k.All()
	}
	return s
}

// Sequence finds a sequence among a kind's, which are ordered by id.
func Sequence(all []messages.Sequence, id messages.SeqID) *messages.Sequence {
	i, ok := slices.BinarySearchFunc(all, id, func(s messages.Sequence, id messages.SeqID) int {
		return int(s.ID) - int(id)
	})
	if !ok {
		return nil
	}
	return &all[i]
}

// KeepsSome reports whether a sequence of a kind keeps only some of its periods.
func (s *Schema) KeepsSome(kind messages.WSKind, seq messages.SeqID) bool {
	def := Sequence(s.Kinds[kind], seq)
	return def != nil && def.Restart.Keep > 0
}

// CheckEvent returns an [storage.ErrInvalidEvent] that names the first field that
// contradicts the descriptor, or nil. numbering are the event's numbers, then
// the explicit ids of its new records, then its moves; given reports whether an event of the batch before
// it gave its workspace a number.
func (s *Schema) CheckEvent(e *messages.Event, numbering []messages.SequenceNumber, given func(messages.SequenceNumber) bool) error {
	all, known := s.Kinds[e.WorkspaceKind]
	switch {
	case e.Kind != messages.EventBusiness:
		return Invalid(e, "event kind: got %d, want %d", e.Kind, messages.EventBusiness)
	case messages.PartitionOf(e.Workspace, s.Partitions) != e.Partition:
		return Invalid(e, "workspace %d: %w", e.Workspace, messages.ErrWrongPartition)
	case !known:
		return Invalid(e, "kind %d: %w", e.WorkspaceKind, messages.ErrUnknownKind)
	case e.PLogOffset == 0 || e.WLogOffset == 0:
		return Invalid(e, "offsets: got PLog %d, WLog %d, want at least 1", e.PLogOffset, e.WLogOffset)
	}
	if err := checkSections(e); err != nil {
		return err
	}
	if err := checkNumbers(e, all, numbering, given); err != nil {
		return err
	}
	return checkRecords(e, all)
}

// checkSections checks what stands in an event's sections, and its sections.
func checkSections(e *messages.Event) error {
	switch {
	case e.Date != 0 && !e.Date.Valid():
		return Invalid(e, "business date: got %d, want one like 20260329", e.Date)
	case e.Trace != 0 && e.Trace.Validate() != nil:
		return Invalid(e, "%w", e.Trace.Validate())
	case e.Zone != "" && !calendar.IsZoneName(e.Zone):
		return Invalid(e, "time zone: got %.40q, want a name like Europe/Zurich", e.Zone)
	case len(e.Numbers) > messages.MaxEventNumbers || len(e.Moves) > messages.MaxEventNumbers:
		return Invalid(e, "%d numbers, %d moves: %w", len(e.Numbers), len(e.Moves), messages.ErrTooManyNumbers)
	case uint64(e.Brought) > uint64(len(e.Numbers)):
		return Invalid(e, "brought along: got %d of %d numbers", e.Brought, len(e.Numbers))
	}
	for _, s := range e.Sections {
		if s.Tag != 0 && s.Tag <= messages.MaxReservedTag {
			return Invalid(e, "section: got tag %d, tags up to %d are the runtime's", s.Tag, messages.MaxReservedTag)
		}
	}
	return nil
}

func checkNumbers(e *messages.Event, all []messages.Sequence, numbering []messages.SequenceNumber, given func(messages.SequenceNumber) bool) error {
	for i, n := range numbering {
		seq := Sequence(all, n.Seq)
		if seq == nil || n.Seq == messages.SeqWLogOffset {
			return Invalid(e, "sequence %d: %w", n.Seq, messages.ErrUnknownSequence)
		}
		explicit := i >= len(e.Numbers) && i < len(numbering)-len(e.Moves)
		switch {
		case explicit && (n.Number == 0 || n.Number > seq.MaxExplicit() && !given(n)):
			return Invalid(e, "record %v: want an id from 1 to %d: %w", n.Record(), seq.MaxExplicit(), messages.ErrExplicitID)
		case !explicit && (n.Number < seq.Initial || n.Number > seq.Max()):
			return Invalid(e, "sequence %d: got number %d, want %d to %d", n.Seq, n.Number, seq.Initial, seq.Max())
		}
		decided := e.Date == 0 && i >= int(e.Brought) && i < len(e.Numbers)
		if err := checkPeriod(e, seq, n.Period, decided); err != nil {
			return err
		}
	}
	return nil
}

// checkPeriod checks the period of a number, which the registration time may have decided.
func checkPeriod(e *messages.Event, seq *messages.Sequence, period calendar.Date, decided bool) error {
	err := seq.CheckPeriod(e.Date, period)
	if err == nil && decided && seq.Restarts() {
		err = seq.CheckDecided(e.RegisteredAt, period)
	}
	if err != nil {
		return Invalid(e, "%w", err)
	}
	return nil
}

func checkRecords(e *messages.Event, all []messages.Sequence) error {
	for i := range e.Records {
		id := e.Records[i].ID
		seq := Sequence(all, id.Seq)
		if seq == nil || id.Seq == messages.SeqWLogOffset {
			return Invalid(e, "record %v: %w", id, messages.ErrUnknownSequence)
		}
		if id.Number == 0 || id.Number > seq.Max() {
			return Invalid(e, "record %v: want a number from 1 to %d", id, seq.Max())
		}
		if seq.Restarts() {
			return Invalid(e, "record %v: its sequence restarts, so that its numbers can't be ids", id)
		}
	}
	if id, twice := createdTwice(e.Records); twice {
		return Invalid(e, "record %v is created twice", id)
	}
	return nil
}

// createdTwice finds a record that is written before, or after, it is created
// again in the same event.
func createdTwice(records []messages.Record) (messages.RecordID, bool) {
	if len(records) < 2 {
		return messages.RecordID{}, false
	}
	seen := make(map[messages.RecordID]struct{}, len(records))
	for i := range records {
		_, was := seen[records[i].ID]
		if was && records[i].New {
			return records[i].ID, true
		}
		seen[records[i].ID] = struct{}{}
	}
	return messages.RecordID{}, false
}

// Invalid says what is wrong with an event.
func Invalid(e *messages.Event, format string, args ...any) error {
	return &storage.InvalidEventError{Partition: e.Partition, PLogOffset: e.PLogOffset, Cause: fmt.Errorf(format, args...)}
}
