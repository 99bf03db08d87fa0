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

// Numbers returns the last numbers given out to a workspace, ordered by sequence. They are
// as of one event of its log, which was the last one at some moment of the call; its offset
// is the number of [messages.SeqWLogOffset]. A workspace without events has kind 0 and no
// numbers.
func (r *Reader) Numbers(ctx context.Context, ws messages.WSID) (storage.WorkspaceNumbers, error) {
	// Those that are stored may be older than the log's end. They say themselves how old.
	stored, err := r.store.Numbers(ctx, ws)
	if err != nil {
		return storage.WorkspaceNumbers{}, err
	}
	last := lastNumbers{kind: stored.Kind, numbers: make(map[messages.SeqID]messages.Number, len(stored.Numbers))}
	for _, n := range stored.Numbers {
		last.numbers[n.Seq] = n.Number
	}
	descriptor := r.Descriptor()
	for e, err := range r.store.WLog(ctx, ws, messages.WLogOffset(last.numbers[messages.SeqWLogOffset])+1) {
		if err != nil {
			return storage.WorkspaceNumbers{}, err
		}
		last.add(&descriptor, &e)
	}
	return last.of(ws), nil
}

// lastNumbers are the last numbers of a workspace's sequences.
type lastNumbers struct {
	kind    messages.WSKind
	numbers map[messages.SeqID]messages.Number
	// initial are the sequences' initial values, known once an event was added.
	initial map[messages.SeqID]messages.Number
}

func (l *lastNumbers) add(d *messages.Descriptor, e *messages.Event) {
	if l.initial == nil {
		l.kind, l.initial = e.WorkspaceKind, make(map[messages.SeqID]messages.Number)
		kind, _ := d.Kind(e.WorkspaceKind)
		for _, s := range kind.All() {
			l.initial[s.ID] = s.Initial
		}
	}
	l.numbers[messages.SeqWLogOffset] = messages.Number(e.WLogOffset)
	for _, n := range e.Numbering().Numbers {
		if n.Number >= l.initial[n.Seq] {
			l.numbers[n.Seq] = max(l.numbers[n.Seq], n.Number)
		}
	}
}

func (l *lastNumbers) of(ws messages.WSID) storage.WorkspaceNumbers {
	all := storage.WorkspaceNumbers{Workspace: ws, Kind: l.kind}
	for _, seq := range slices.Sorted(maps.Keys(l.numbers)) {
		all.Numbers = append(all.Numbers, messages.SequenceNumber{Seq: seq, Number: l.numbers[seq]})
	}
	return all
}
