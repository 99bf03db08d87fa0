package partition

import (
	"context"
	"maps"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// Descriptor returns the application that the store holds.
func (r *Reader) Descriptor() messages.Descriptor { return r.store.Descriptor() }

// Numbers returns the last numbers given out to a workspace, ordered by sequence and period; of old periods that
// SeqData keeps, those that are in Older are not listed. They are
// as of one event of its log, which was the last one at some moment of the call; its offset
// is the number of [messages.SeqWLogOffset]. A workspace without events has kind 0 and no
// numbers.
func (r *Reader) Numbers(ctx context.Context, ws messages.WSID) (storage.WorkspaceNumbers, error) {
	// Those that are stored may be older than the log's end. They say themselves how old.
	stored, err := r.store.Numbers(ctx, ws)
	if err != nil {
		return storage.WorkspaceNumbers{}, err
	}
	last := lastNumbers{WorkspaceNumbers: stored, numbers: make(map[messages.SequencePeriod]messages.Number, len(stored.Numbers))}
	for _, n := range stored.Numbers {
		last.numbers[n.SequencePeriod()] = n.Number
	}
	descriptor := r.Descriptor()
	for e, err := range r.store.WLog(ctx, ws, messages.WLogOffset(last.numbers[wlogOffset])+1) {
		if err != nil {
			return storage.WorkspaceNumbers{}, err
		}
		last.add(&descriptor, &e)
	}
	return last.all(ws), nil
}

// wlogOffset is the sequence that numbers a workspace's events.
var wlogOffset = messages.SequencePeriod{Seq: messages.SeqWLogOffset}

// lastNumbers are the last numbers of a workspace's sequences.
type lastNumbers struct {
	storage.WorkspaceNumbers
	numbers map[messages.SequencePeriod]messages.Number
	// initial are the sequences' initial values, known once an event was added.
	initial map[messages.SeqID]messages.Number
}

func (l *lastNumbers) add(d *messages.Descriptor, e *messages.Event) {
	if l.initial == nil {
		l.Kind, l.initial = e.WorkspaceKind, make(map[messages.SeqID]messages.Number)
		kind, _ := d.Kind(e.WorkspaceKind)
		for _, s := range kind.All() {
			l.initial[s.ID] = s.Initial
		}
	}
	l.numbers[wlogOffset] = messages.Number(e.WLogOffset)
	for _, n := range e.Numbering().Numbers {
		if n.Number >= l.initial[n.Seq] {
			l.numbers[n.SequencePeriod()] = max(l.numbers[n.SequencePeriod()], n.Number)
		}
	}
}

func (l *lastNumbers) all(ws messages.WSID) storage.WorkspaceNumbers {
	l.Workspace, l.WorkspaceNumbers.Numbers = ws, nil
	for _, p := range slices.SortedFunc(maps.Keys(l.numbers), messages.SequencePeriod.Compare) {
		n := messages.SequenceNumber{Seq: p.Seq, Period: p.Period, Number: l.numbers[p]}
		l.WorkspaceNumbers.Numbers = append(l.WorkspaceNumbers.Numbers, n)
	}
	return l.WorkspaceNumbers
}
