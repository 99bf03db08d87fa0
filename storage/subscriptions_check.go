package storage

import (
	"fmt"
	"maps"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/partita-go/partita/messages"
)

// Validate returns an [ErrSubscription] that says what contradicts the application or the
// subscription itself, or nil. It does not know where the logs end.
func (s *Subscription) Validate(d *messages.Descriptor) error {
	if err := ValidateSubscriptionName(s.Name); err != nil {
		return err
	}
	if err := s.validate(d); err != nil {
		return s.wrong(err)
	}
	if err := s.validateNext(d, s.Next); err != nil {
		return s.wrong(err)
	}
	for i := range s.Parked {
		if err := s.ValidateParked(d, &s.Parked[i]); err != nil {
			return err
		}
	}
	return nil
}

// ValidateParked is what Validate checks of each event that is parked.
func (s *Subscription) ValidateParked(d *messages.Descriptor, e *ParkedEvent) error {
	if err := s.validateParked(d, e, s.Position(e.Partition)); err != nil {
		return s.wrong(err)
	}
	return nil
}

// ValidateMove is Validate of a move of the subscription, of which only the source and the
// positions need to be known.
func (s *Subscription) ValidateMove(d *messages.Descriptor, m *SubscriptionMove) error {
	if err := s.validateNext(d, m.Next); err != nil {
		return s.wrong(err)
	}
	for i := range m.Park {
		e := &m.Park[i]
		next, moves := m.Next[e.Partition]
		if !moves {
			next = s.Position(e.Partition)
		}
		if err := s.validateParked(d, e, next); err != nil {
			return s.wrong(err)
		}
	}
	return nil
}

// Position returns the next offset of a log that the subscription reads.
func (s *Subscription) Position(p messages.PartitionID) uint64 { return max(s.Next[p], 1) }

func (s *Subscription) wrong(err error) error {
	return fmt.Errorf("%w: %q: %w", ErrSubscription, s.Name, err)
}

// ValidateSubscriptionName returns an [ErrSubscription] if a subscription cannot have the
// name.
func ValidateSubscriptionName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: the name is empty", ErrSubscription)
	case len(name) > MaxSubscriptionName:
		return fmt.Errorf("%w: the name has %d bytes, want at most %d", ErrSubscription, len(name), MaxSubscriptionName)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: the name %q is not UTF-8", ErrSubscription, name)
	}
	for _, r := range name {
		if unicode.IsControl(r) {
			return fmt.Errorf("%w: the name %q has the control character %U", ErrSubscription, name, r)
		}
	}
	return nil
}

// validate checks the source against the application.
func (s *SubscriptionSource) validate(d *messages.Descriptor) error {
	switch {
	case s.Partition != nil && s.Workspace != nil:
		return fmt.Errorf("got partition %d and workspace %d, want one at most", *s.Partition, *s.Workspace)
	case s.Partition != nil && uint64(*s.Partition) >= uint64(d.Partitions):
		return fmt.Errorf("got partition %d, the application has %d", *s.Partition, d.Partitions)
	}
	for i, k := range s.Kinds {
		if i > 0 && s.Kinds[i-1] >= k {
			return fmt.Errorf("kinds: got %d behind %d, want them to ascend", k, s.Kinds[i-1])
		}
		if !slices.ContainsFunc(d.Kinds, func(have messages.Kind) bool { return have.ID == k }) {
			return fmt.Errorf("%w: %d", messages.ErrUnknownKind, k)
		}
	}
	return nil
}

// Reads reports whether the source has a log under a partition.
func (s *SubscriptionSource) Reads(d *messages.Descriptor, p messages.PartitionID) bool {
	switch {
	case s.Partition != nil:
		return p == *s.Partition
	case s.Workspace != nil:
		return p == messages.PartitionOf(*s.Workspace, d.Partitions)
	}
	return uint64(p) < uint64(d.Partitions)
}

// Equal reports whether both read the same.
func (s *SubscriptionSource) Equal(o *SubscriptionSource) bool {
	return same(s.Partition, o.Partition) && same(s.Workspace, o.Workspace) && slices.Equal(s.Kinds, o.Kinds)
}

func same[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func (s *SubscriptionSource) validateNext(d *messages.Descriptor, next map[messages.PartitionID]uint64) error {
	for _, p := range slices.Sorted(maps.Keys(next)) {
		switch {
		case !s.Reads(d, p):
			return fmt.Errorf("it does not read partition %d", p)
		case next[p] == 0:
			return fmt.Errorf("partition %d: got position 0, want at least 1", p)
		}
	}
	return nil
}

func (s *SubscriptionSource) validateParked(d *messages.Descriptor, e *ParkedEvent, next uint64) error {
	switch {
	case !s.Reads(d, e.Partition):
		return fmt.Errorf("it does not read partition %d", e.Partition)
	case e.Offset == 0 || e.Offset >= next:
		return fmt.Errorf("partition %d: got parked offset %d, want 1 to %d, before the position", e.Partition, e.Offset, next-1)
	}
	return nil
}

// CutSubscriptionReason returns as much of a reason as is kept, cut between characters.
func CutSubscriptionReason(reason string) string {
	if len(reason) <= MaxSubscriptionReason {
		return reason
	}
	end := MaxSubscriptionReason
	for end > MaxSubscriptionReason-utf8.UTFMax && !utf8.RuneStart(reason[end]) {
		end--
	}
	return reason[:end]
}

// Compare orders parked events by partition and offset.
func (e *ParkedEvent) Compare(o *ParkedEvent) int {
	if e.Partition != o.Partition {
		return int(int64(e.Partition) - int64(o.Partition))
	}
	switch {
	case e.Offset < o.Offset:
		return -1
	case e.Offset > o.Offset:
		return 1
	}
	return 0
}
