package bolt

import (
	"fmt"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// schema answers what an event may contain. It is made of a descriptor once and
// never changes.
type schema struct {
	partitions uint32
	trust      messages.TrustLevel
	kinds      map[messages.WSKind][]messages.Sequence
}

func newSchema(d *messages.Descriptor) *schema {
	s := &schema{partitions: d.Partitions, trust: d.TrustLevel, kinds: make(map[messages.WSKind][]messages.Sequence, len(d.Kinds))}
	for _, k := range d.Kinds {
		s.kinds[k.ID] = k.All()
	}
	return s
}

// sequence finds a sequence among a kind's, which are ordered by id.
func sequence(all []messages.Sequence, id messages.SeqID) *messages.Sequence {
	i, ok := slices.BinarySearchFunc(all, id, func(s messages.Sequence, id messages.SeqID) int {
		return int(s.ID) - int(id)
	})
	if !ok {
		return nil
	}
	return &all[i]
}

// checkEvent returns an [storage.ErrInvalidEvent] that names the first field that
// contradicts the descriptor, or nil. numbering are the event's numbers and then
// the explicit ids of its new records; given reports whether an event of the batch before
// it gave its workspace a number.
func (s *schema) checkEvent(e *messages.Event, numbering []messages.SequenceNumber, given func(messages.SequenceNumber) bool) error {
	all, known := s.kinds[e.WorkspaceKind]
	switch {
	case e.Kind != messages.EventBusiness:
		return invalid(e, "event kind: got %d, want %d", e.Kind, messages.EventBusiness)
	case messages.PartitionOf(e.Workspace, s.partitions) != e.Partition:
		return invalid(e, "workspace %d: %w", e.Workspace, messages.ErrWrongPartition)
	case !known:
		return invalid(e, "kind %d: %w", e.WorkspaceKind, messages.ErrUnknownKind)
	case e.PLogOffset == 0 || e.WLogOffset == 0:
		return invalid(e, "offsets: got PLog %d, WLog %d, want at least 1", e.PLogOffset, e.WLogOffset)
	case len(e.Numbers) > messages.MaxEventNumbers:
		return invalid(e, "%d numbers: %w", len(e.Numbers), messages.ErrTooManyNumbers)
	}
	for _, s := range e.Sections {
		if s.Tag != 0 && s.Tag <= messages.MaxReservedTag {
			return invalid(e, "section: got tag %d, tags up to %d are the runtime's", s.Tag, messages.MaxReservedTag)
		}
	}
	if err := checkNumbers(e, all, numbering, given); err != nil {
		return err
	}
	return checkRecords(e, all)
}

func checkNumbers(e *messages.Event, all []messages.Sequence, numbering []messages.SequenceNumber, given func(messages.SequenceNumber) bool) error {
	for i, n := range numbering {
		seq := sequence(all, n.Seq)
		if seq == nil || n.Seq == messages.SeqWLogOffset {
			return invalid(e, "sequence %d: %w", n.Seq, messages.ErrUnknownSequence)
		}
		explicit := i >= len(e.Numbers)
		switch {
		case explicit && (n.Number == 0 || n.Number > seq.MaxExplicit() && !given(n)):
			return invalid(e, "record %v: want an id from 1 to %d: %w", messages.RecordID(n), seq.MaxExplicit(), messages.ErrExplicitID)
		case !explicit && (n.Number < seq.Initial || n.Number > seq.Max()):
			return invalid(e, "sequence %d: got number %d, want %d to %d", n.Seq, n.Number, seq.Initial, seq.Max())
		}
	}
	return nil
}

func checkRecords(e *messages.Event, all []messages.Sequence) error {
	for i := range e.Records {
		id := e.Records[i].ID
		seq := sequence(all, id.Seq)
		if seq == nil || id.Seq == messages.SeqWLogOffset {
			return invalid(e, "record %v: %w", id, messages.ErrUnknownSequence)
		}
		if id.Number == 0 || id.Number > seq.Max() {
			return invalid(e, "record %v: want a number from 1 to %d", id, seq.Max())
		}
	}
	if id, twice := createdTwice(e.Records); twice {
		return invalid(e, "record %v is created twice", id)
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

func invalid(e *messages.Event, format string, args ...any) error {
	return &storage.InvalidEventError{Partition: e.Partition, PLogOffset: e.PLogOffset, Cause: fmt.Errorf(format, args...)}
}
