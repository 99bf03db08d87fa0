package messages

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// TrustLevel says which keys a store checks for being free before it appends. A taken place in a
// log is never overwritten: where nothing looks before the append, the flush meets it. Nor is a
// foreign record by an event that was read back when the store was opened. Else updates of records
// are puts at every level.
type TrustLevel uint8

const (
	// TrustNone appends only where the keys of log entries and of new records are free.
	TrustNone TrustLevel = 0
	// TrustRecords appends only where the keys of log entries are free, and puts records.
	TrustRecords TrustLevel = 1
	// TrustAll checks no key before it appends, and puts records.
	TrustAll TrustLevel = 2
)

// Kind defines a workspace kind: its application sequences. The built-in
// sequences are added to every kind and are not listed.
type Kind struct {
	ID        WSKind
	Name      string
	Sequences []Sequence
}

// All returns the kind's sequences, built-in ones included, ordered by id.
func (k Kind) All() []Sequence {
	all := []Sequence{
		{ID: SeqWLogOffset, Name: "WLogOffset", Initial: 1, Largest: math.MaxUint64},
		{ID: SeqCRecordID, Name: "CRecordID", Initial: InitialCRecordID, Largest: math.MaxUint64},
		{ID: SeqOWRecordID, Name: "OWRecordID", Initial: InitialOWRecordID, Largest: InitialCRecordID - 1},
	}
	all = append(all, k.Sequences...)
	slices.SortFunc(all, func(a, b Sequence) int { return int(a.ID) - int(b.ID) })
	return all
}

// Descriptor is what a store must be opened with again: it fixes how the
// application's workspaces are cut into partitions and numbered.
type Descriptor struct {
	Application string
	Partitions  uint32
	TrustLevel  TrustLevel
	Kinds       []Kind
}

// MaxPartitions is the largest number of partitions of an application.
const MaxPartitions = 1 << 16

// Kind returns the definition of a kind.
func (d *Descriptor) Kind(id WSKind) (Kind, bool) {
	for _, k := range d.Kinds {
		if k.ID == id {
			return k, true
		}
	}
	return Kind{}, false
}

// Normalized returns a copy whose kinds and sequences are ordered by id and
// share nothing with d. A list without elements is nil. Two descriptors that mean
// the same are deeply equal when normalized.
func (d *Descriptor) Normalized() Descriptor {
	n := *d
	n.Kinds = append([]Kind(nil), d.Kinds...)
	slices.SortFunc(n.Kinds, func(a, b Kind) int { return int(a.ID) - int(b.ID) })
	for i := range n.Kinds {
		seqs := append([]Sequence(nil), n.Kinds[i].Sequences...)
		slices.SortFunc(seqs, func(a, b Sequence) int { return int(a.ID) - int(b.ID) })
		for j := range seqs {
			seqs[j].Largest = seqs[j].Max()
			seqs[j].Formats = append([]string(nil), seqs[j].Formats...)
		}
		n.Kinds[i].Sequences = seqs
	}
	return n
}

// Validate returns an [ErrDescriptor] that names the first wrong field, or nil.
func (d *Descriptor) Validate() error {
	switch {
	case d.Application == "" || len(d.Application) > MaxNameBytes:
		return fmt.Errorf("%w: application name: got %d bytes, want 1 to %d", ErrDescriptor, len(d.Application), MaxNameBytes)
	case d.Partitions == 0 || d.Partitions > MaxPartitions:
		return fmt.Errorf("%w: partitions: got %d, want 1 to %d", ErrDescriptor, d.Partitions, MaxPartitions)
	case d.TrustLevel > TrustAll:
		return fmt.Errorf("%w: trust level: got %d, want 0 to 2", ErrDescriptor, d.TrustLevel)
	case len(d.Kinds) == 0:
		return fmt.Errorf("%w: kinds: got none, want at least one", ErrDescriptor)
	}
	seen := make(map[WSKind]bool, len(d.Kinds))
	for _, k := range d.Kinds {
		if k.ID == 0 || seen[k.ID] {
			return fmt.Errorf("%w: kind %d: ids must be unique and not 0", ErrDescriptor, k.ID)
		}
		seen[k.ID] = true
		if err := k.validate(); err != nil {
			return err
		}
	}
	return nil
}

// MaxSequences is the largest number of application sequences of a kind.
const MaxSequences = 1024

func (k Kind) validate() error {
	if len(k.Sequences) > MaxSequences {
		return fmt.Errorf("%w: kind %d: got %d sequences, want at most %d", ErrDescriptor, k.ID, len(k.Sequences), MaxSequences)
	}
	seen := make(map[SeqID]bool, len(k.Sequences))
	for _, s := range k.Sequences {
		if seen[s.ID] {
			return fmt.Errorf("%w: kind %d, sequence %d: defined twice", ErrDescriptor, k.ID, s.ID)
		}
		seen[s.ID] = true
		if err := s.validate(); err != nil {
			return fmt.Errorf("%w: kind %d, sequence %d: %w", ErrDescriptor, k.ID, s.ID, err)
		}
	}
	return nil
}

// Extends returns nil if a store made under old may be opened under d: the
// same application, partitions and trust level, and every kind and sequence of
// old. Kinds and sequences may be added, never removed. Of a sequence Largest may be raised, Formats
// and Keep of its restart may change, and Ahead may be raised: if it fell, a period could be closed
// before it has begun. Otherwise it returns an [ErrDescriptor] that says got and want of each difference.
func (d *Descriptor) Extends(old *Descriptor) error {
	return d.extends(old, sides{is: "got", was: "the store has"})
}

// Covers returns nil if an application can be deployed over a store that is open under d: if d
// extends the application's descriptor. Otherwise it returns an [ErrDescriptor] that says what is different.
func (d *Descriptor) Covers(application *Descriptor) error {
	return d.extends(application, sides{is: "the store has", was: "the application has"})
}

// sides say whose a descriptor is, and whose the one that it extends.
type sides struct{ is, was string }

// differs says what is different.
func (s sides) differs(what string, is, was any) string {
	return fmt.Sprintf("%s: %s %+v, %s %+v", what, s.is, is, s.was, was)
}

// misses says that there is none.
func (s sides) misses(what string) string {
	return fmt.Sprintf("%s: %s none, %s it", what, s.is, s.was)
}

// maxDifferences is how many differences an error tells.
const maxDifferences = 8

func (d *Descriptor) extends(old *Descriptor, s sides) error {
	all := d.sameStore(old, s)
	for i := range old.Kinds {
		all = append(all, d.extendsKind(&old.Kinds[i], s)...)
	}
	if len(all) == 0 {
		return nil
	}
	if more := len(all) - maxDifferences; more > 0 {
		all = append(all[:maxDifferences], fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("%w: %s", ErrDescriptor, strings.Join(all, "; "))
}

func (d *Descriptor) sameStore(old *Descriptor, s sides) (all []string) {
	if d.Application != old.Application {
		all = append(all, s.differs("application", strconv.Quote(d.Application), strconv.Quote(old.Application)))
	}
	if d.Partitions != old.Partitions {
		all = append(all, s.differs("partitions", d.Partitions, old.Partitions))
	}
	if d.TrustLevel != old.TrustLevel {
		all = append(all, s.differs("trust level", d.TrustLevel, old.TrustLevel))
	}
	return all
}

func (d *Descriptor) extendsKind(was *Kind, s sides) (all []string) {
	where := was.in()
	is, ok := d.Kind(was.ID)
	switch {
	case !ok:
		return []string{s.misses(where)}
	case is.Name != was.Name:
		all = append(all, s.differs(fmt.Sprintf("kind %d: name", was.ID), strconv.Quote(is.Name), strconv.Quote(was.Name)))
	}
	for i := range was.Sequences {
		for _, difference := range is.extends(&was.Sequences[i], s) {
			all = append(all, where+", "+difference)
		}
	}
	return all
}

// in names the kind, and the sequence, that something is about.
func (k *Kind) in() string     { return fmt.Sprintf("kind %d %q", k.ID, k.Name) }
func (s *Sequence) in() string { return fmt.Sprintf("sequence %d %q", s.ID, s.Name) }

// extends returns what of a sequence a kind does not have as it was.
func (k Kind) extends(was *Sequence, s sides) (all []string) {
	where := was.in()
	is := k.sequence(was.ID)
	if is == nil {
		return []string{s.misses(where)}
	}
	if is.Name != was.Name {
		all = append(all, s.differs(fmt.Sprintf("sequence %d: name", was.ID), strconv.Quote(is.Name), strconv.Quote(was.Name)))
	}
	if is.Initial != was.Initial {
		all = append(all, s.differs(where+": initial", is.Initial, was.Initial))
	}
	if !is.Restart.sameAs(&was.Restart) {
		all = append(all, s.differs(where+": restart", is.Restart.fixed(), was.Restart.fixed()))
	}
	if got, least := is.Restart.MostAhead(), was.Restart.MostAhead(); got < least {
		all = append(all, s.differs(where+": fewer periods ahead", got, least))
	}
	if largest := was.kept(is.Max()); largest < was.Max() {
		all = append(all, s.differs(where+": smaller largest number", largest, was.Max()))
	}
	return all
}

func (k Kind) sequence(id SeqID) *Sequence {
	i := slices.IndexFunc(k.Sequences, func(s Sequence) bool { return s.ID == id })
	if i < 0 {
		return nil
	}
	return &k.Sequences[i]
}

// WithoutRules returns a copy whose sequences have no largest number of their own, never restart and have no
// formats.
func (d *Descriptor) WithoutRules() Descriptor {
	n := d.Normalized()
	for _, k := range n.Kinds {
		for i, s := range k.Sequences {
			k.Sequences[i] = Sequence{ID: s.ID, Name: s.Name, Initial: s.Initial, Largest: max(s.Largest, LargestDefault)}
		}
	}
	return n
}

// Over returns what a store made under old has once it was opened under d, which extends
// old: d normalized, but for what stays as it was.
func (d *Descriptor) Over(old *Descriptor) Descriptor {
	n := d.Normalized()
	for i := range n.Kinds {
		was, _ := old.Kind(n.Kinds[i].ID)
		for j := range n.Kinds[i].Sequences {
			s := &n.Kinds[i].Sequences[j]
			if before := was.sequence(s.ID); before != nil {
				s.Largest = before.kept(s.Largest)
			}
		}
	}
	return n
}
