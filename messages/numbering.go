package messages

import "slices"

// Numbering is what one event says about the sequences of its partition, and
// all that actualization needs of it.
type Numbering struct {
	Epoch         Epoch
	PLogOffset    PLogOffset
	Workspace     WSID
	WorkspaceKind WSKind
	WLogOffset    WLogOffset
	RegisteredAt  Timestamp

	// Numbers are the numbers given out or brought, the ids of new records, and what sequences were
	// moved to, in this order. They are merged by maximum; those below their sequence's initial
	// value are ignored. WLogOffset is not repeated here.
	Numbers []SequenceNumber
}

// Numbering returns what the event says about the sequences. New records whose
// id is also among the numbers given out are not listed twice.
func (e *Event) Numbering() Numbering {
	return Numbering{
		Epoch:         e.Epoch,
		PLogOffset:    e.PLogOffset,
		Workspace:     e.Workspace,
		WorkspaceKind: e.WorkspaceKind,
		WLogOffset:    e.WLogOffset,
		RegisteredAt:  e.RegisteredAt,
		Numbers:       append(AppendExplicit(slices.Clip(e.Numbers), e.Numbers, e.Records), e.Moves...),
	}
}

// AppendExplicit appends to dst the ids of the new records that are not among the
// numbers that their event was given, and returns it.
func AppendExplicit(dst, numbers []SequenceNumber, records []Record) []SequenceNumber {
	var given NumberSet
	for i := range records {
		r := &records[i]
		if id := r.ID.SequenceNumber(); r.New && !given.Has(numbers, id) {
			dst = append(dst, id)
		}
	}
	return dst
}

// NumberSet finds ids among the numbers of an event: cheaply for a few, and for any
// number of them in about the same time each. The zero value is ready for use. It is
// not safe for concurrent use.
type NumberSet struct {
	// next is where an id is expected: records mostly come in the order of their
	// numbers.
	next int
	// many holds the numbers once there are many.
	many map[SequenceNumber]struct{}
	held int
}

// fewNumbers is up to how many numbers a linear search beats building a set.
const fewNumbers = 32

// Has reports whether id is among the numbers. They must be those of the calls
// before, which more may have joined behind them.
func (s *NumberSet) Has(numbers []SequenceNumber, id SequenceNumber) bool {
	switch {
	case s.next < len(numbers) && numbers[s.next] == id:
		s.next++
		return true
	case len(numbers) <= fewNumbers:
		return slices.Contains(numbers, id)
	}
	if s.many == nil {
		s.many = make(map[SequenceNumber]struct{}, len(numbers))
	}
	for _, n := range numbers[s.held:] {
		s.many[n] = struct{}{}
	}
	s.held = len(numbers)
	_, ok := s.many[id]
	return ok
}
