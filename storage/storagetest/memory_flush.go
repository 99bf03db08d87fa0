package storagetest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// Flush moves the partition's checkpoint, and the numbers with it.
func (m *Memory) Flush(ctx context.Context, f storage.Flush) error {
	p, unlock, err := m.partition(ctx, f.Partition)
	if err != nil {
		return err
	}
	defer unlock()
	if err := p.fence(f.Partition, f.Epoch); err != nil {
		return err
	}
	if f.Checkpoint < f.Expected || f.Checkpoint > p.last()+1 || (p.checkpoint != f.Expected && p.checkpoint != f.Checkpoint) {
		return fmt.Errorf("%w: partition %d: got %d after %d, the stored one is %d and the log ends at %d",
			storage.ErrCheckpoint, f.Partition, f.Checkpoint, f.Expected, p.checkpoint, p.last())
	}
	if p.checkpoint == f.Checkpoint {
		return nil
	}
	changes := m.disk.derive(p.log[f.Expected-1 : f.Checkpoint-1])
	if err := m.disk.compareNumbers(&f, changes); err != nil {
		return err
	}
	for _, c := range changes {
		c.workspace.projected, c.workspace.numbers = c.workspace.kind, c.after
		c.workspace.zones = c.zones
		c.workspace.close(m.disk.kinds[c.workspace.kind])
	}
	p.checkpoint = f.Checkpoint
	return nil
}

// Numbers returns the last numbers given out as of the checkpoint.
func (m *Memory) Numbers(ctx context.Context, id messages.WSID, periods ...messages.SequencePeriod) (storage.WorkspaceNumbers, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return storage.WorkspaceNumbers{}, err
	}
	defer unlock()
	ws := m.disk.workspaces[id]
	if ws == nil {
		return storage.WorkspaceNumbers{Workspace: id}, nil
	}
	n := storage.WorkspaceNumbers{Workspace: id, Kind: ws.projected, Closed: slices.Clone(ws.closed), Zones: ws.zones}
	for i, last := range ws.numbers {
		older := last.Period != 0 && m.disk.kinds[ws.kind][last.Seq].Restart.Keep == 0 &&
			i+newestPeriods < len(ws.numbers) && ws.numbers[i+newestPeriods].Seq == last.Seq
		if older && !slices.Contains(n.Older, last.Seq) {
			n.Older = append(n.Older, last.Seq)
		}
		if !older || slices.Contains(periods, last.SequencePeriod()) {
			n.Numbers = append(n.Numbers, last)
		}
	}
	return n, nil
}

// newestPeriods are listed of a sequence that keeps all, without being asked for: few, so that those who
// forget to ask are found.
const newestPeriods = 2

// change is what a run of events makes of a workspace's numbers.
type change struct {
	workspace *memWorkspace
	// said are the largest numbers that these events alone say, after is what they
	// and the stored numbers make together.
	said, after []messages.SequenceNumber
	zones       calendar.Zones
}

// derive merges the events' numbers into those that are projected.
func (d *disk) derive(events []*messages.Event) map[messages.WSID]*change {
	changes := make(map[messages.WSID]*change)
	for _, e := range events {
		c := changes[e.Workspace]
		if c == nil {
			ws := d.workspaces[e.Workspace]
			c = &change{workspace: ws, after: slices.Clone(ws.numbers), zones: ws.zones}
			changes[e.Workspace] = c
		}
		c.zones = messages.MergeZone(c.zones, e.Zone, e.RegisteredAt)
		seqs := d.kinds[e.WorkspaceKind]
		c.raise(messages.SequenceNumber{Seq: messages.SeqWLogOffset, Number: messages.Number(e.WLogOffset)})
		for _, n := range slices.Concat(e.Numbers, e.Moves) {
			c.merge(seqs, n)
		}
		for i := range e.Records {
			if e.Records[i].New {
				c.merge(seqs, e.Records[i].ID.SequenceNumber())
			}
		}
	}
	return changes
}

// merge ignores what is below the sequence's initial value: it is not a number
// of the sequence, and must not be taken for one that was given out. One in a closed
// period changes nothing either.
func (c *change) merge(seqs sequences, n messages.SequenceNumber) {
	if n.Number >= seqs[n.Seq].Initial && !c.workspace.isClosed(n.SequencePeriod()) {
		c.raise(n)
	}
}

func (c *change) raise(n messages.SequenceNumber) {
	c.said, c.after = raise(c.said, n), raise(c.after, n)
}

// raise merges by maximum into numbers that are in order of their sequences and periods.
func raise(numbers []messages.SequenceNumber, n messages.SequenceNumber) []messages.SequenceNumber {
	i, ok := slices.BinarySearchFunc(numbers, n, messages.SequenceNumber.ComparePlace)
	if !ok {
		return slices.Insert(numbers, i, n)
	}
	numbers[i].Number = max(numbers[i].Number, n.Number)
	return numbers
}

// numberOf returns the number of a sequence's period, 0 if it is not listed.
func numberOf(numbers []messages.SequenceNumber, p messages.SequencePeriod) messages.Number {
	at := messages.SequenceNumber{Seq: p.Seq, Period: p.Period}
	i, ok := slices.BinarySearchFunc(numbers, at, messages.SequenceNumber.ComparePlace)
	if !ok {
		return 0
	}
	return numbers[i].Number
}

// close closes periods that are not kept any more, and forgets their numbers.
func (w *memWorkspace) close(seqs sequences) {
	var closed []messages.SequencePeriod
	for _, id := range slices.Sorted(maps.Keys(seqs)) {
		def := seqs[id]
		if below := max(w.closedBelow(id), def.Restart.ClosedBelow(periodsOf(w.numbers, id))); below != 0 {
			closed = append(closed, messages.SequencePeriod{Seq: id, Period: below})
		}
	}
	w.closed = closed
	w.numbers = slices.DeleteFunc(slices.Clone(w.numbers), func(n messages.SequenceNumber) bool { return w.isClosed(n.SequencePeriod()) })
}

// closedBelow returns the first period of a sequence that is not closed, zero if none is.
func (w *memWorkspace) closedBelow(id messages.SeqID) calendar.Date {
	for _, c := range w.closed {
		if c.Seq == id {
			return c.Period
		}
	}
	return 0
}

func (w *memWorkspace) isClosed(p messages.SequencePeriod) bool {
	return p.Period < w.closedBelow(p.Seq)
}

// periodsOf returns the periods of a sequence that have numbers.
func periodsOf(numbers []messages.SequenceNumber, id messages.SeqID) (periods []calendar.Date) {
	for _, n := range numbers {
		if n.Seq == id {
			periods = append(periods, n.Period)
		}
	}
	return periods
}

// listChanges returns the changes as a Flush lists them.
func listChanges(changes map[messages.WSID]*change) []storage.WorkspaceNumbers {
	list := make([]storage.WorkspaceNumbers, 0, len(changes))
	for _, id := range slices.Sorted(maps.Keys(changes)) {
		c := changes[id]
		w := storage.WorkspaceNumbers{Workspace: id}
		if c.workspace.projected == 0 {
			w.Kind = c.workspace.kind
		}
		for _, n := range c.after {
			if numberOf(c.workspace.numbers, n.SequencePeriod()) != n.Number {
				w.Numbers = append(w.Numbers, n)
			}
		}
		list = append(list, w)
	}
	return list
}

// claim is one value of a Flush: of a workspace's sequence, or its kind.
type claim struct {
	workspace messages.WSID
	// seq is a sequence, or kindClaim, so that claims of a workspace that differ in
	// a number are told by that.
	seq    uint32
	period calendar.Date
	value  uint64
}

// kindClaim stands behind every sequence.
const kindClaim = 1 << 16

// compareNumbers returns a [*storage.NumbersError] for the first difference
// between what the caller claims and what the events change. A wrong kind is
// named as sequence 0.
func (d *disk) compareNumbers(f *storage.Flush, changes map[messages.WSID]*change) error {
	wanted := claimsOf(listChanges(changes))
	got := slices.DeleteFunc(claimsOf(f.Numbers), func(c claim) bool { return d.changesNothing(c, changes[c.workspace]) })
	for i := range max(len(got), len(wanted)) {
		switch {
		case i >= len(got):
			return numbersError(f, wanted[i], 0, wanted[i].value)
		case i >= len(wanted):
			return numbersError(f, got[i], got[i].value, 0)
		case got[i] == wanted[i]:
		case got[i].before(wanted[i]):
			return numbersError(f, got[i], got[i].value, 0)
		case wanted[i].before(got[i]):
			return numbersError(f, wanted[i], 0, wanted[i].value)
		default:
			return numbersError(f, got[i], got[i].value, wanted[i].value)
		}
	}
	return nil
}

func claimsOf(list []storage.WorkspaceNumbers) []claim {
	claims := make([]claim, 0, 4*len(list))
	for _, w := range list {
		for _, n := range w.Numbers {
			claims = append(claims, claim{workspace: w.Workspace, seq: uint32(n.Seq), period: n.Period, value: uint64(n.Number)})
		}
		if w.Kind != 0 {
			claims = append(claims, claim{workspace: w.Workspace, seq: kindClaim, value: uint64(w.Kind)})
		}
	}
	return claims
}

// changesNothing reports whether a claim is about a value that stays as it is,
// and says either that value or the largest that these events say. The latter
// comes from a replay of the tail, which meets low explicit ids without knowing
// the stored number.
func (d *disk) changesNothing(c claim, change *change) bool {
	ws := d.workspaces[c.workspace]
	switch {
	case ws == nil:
		return false
	case c.seq == kindClaim:
		return c.value == uint64(ws.projected)
	}
	at := messages.SequencePeriod{Seq: messages.SeqID(c.seq), Period: c.period}
	if ws.isClosed(at) {
		return true
	}
	stored := numberOf(ws.numbers, at)
	if change == nil {
		return c.value == uint64(stored)
	}
	isSaid := c.value == uint64(numberOf(change.said, at))
	return numberOf(change.after, at) == stored && (c.value == uint64(stored) || isSaid)
}

func (c claim) before(other claim) bool {
	if c.workspace != other.workspace {
		return c.workspace < other.workspace
	}
	return cmp.Or(cmp.Compare(c.seq, other.seq), cmp.Compare(c.period, other.period)) < 0
}

func numbersError(f *storage.Flush, c claim, got, want uint64) error {
	return &storage.NumbersError{
		Partition:  f.Partition,
		Workspace:  c.workspace,
		Seq:        messages.SeqID(c.seq % kindClaim),
		Period:     c.period,
		Got:        messages.Number(got),
		Want:       messages.Number(want),
		Checkpoint: f.Checkpoint,
	}
}
