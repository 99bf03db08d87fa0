package partition

import (
	"context"
	"maps"
	"slices"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// Descriptor returns the application that the store holds.
func (r *Reader) Descriptor() messages.Descriptor { return r.store.Descriptor() }

// Numbers returns the last numbers given out to a workspace, ordered by sequence and period. They
// are as of one event of its log, which was the last one at some moment of the call; its offset
// is the number of [messages.SeqWLogOffset]. A workspace without events has kind 0 and no
// numbers. Of a sequence that restarts it returns what the method of that name of [storage.Projections]
// does: those of the newest periods, and of those that are asked for; and which are closed.
func (r *Reader) Numbers(ctx context.Context, ws messages.WSID, periods ...messages.SequencePeriod) (storage.WorkspaceNumbers, error) {
	// Those that are stored may be older than the log's end. They say themselves how old.
	stored, err := r.store.Numbers(ctx, ws, periods...)
	if err != nil {
		return storage.WorkspaceNumbers{}, err
	}
	last := lastNumbers{stored: stored, numbers: make(map[messages.SequencePeriod]messages.Number, len(stored.Numbers))}
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
	return last.of(ws), nil
}

var wlogOffset = messages.SequencePeriod{Seq: messages.SeqWLogOffset}

// lastNumbers are the last numbers of a workspace's sequences.
type lastNumbers struct {
	stored  storage.WorkspaceNumbers
	numbers map[messages.SequencePeriod]messages.Number
	// sequences are the workspace's, known once an event was added.
	sequences map[messages.SeqID]messages.Sequence
}

func (l *lastNumbers) add(d *messages.Descriptor, e *messages.Event) {
	if l.sequences == nil {
		l.stored.Kind, l.sequences = e.WorkspaceKind, make(map[messages.SeqID]messages.Sequence)
		kind, _ := d.Kind(e.WorkspaceKind)
		for _, s := range kind.All() {
			l.sequences[s.ID] = s
		}
	}
	l.numbers[wlogOffset] = messages.Number(e.WLogOffset)
	l.stored.Zones = messages.MergeZone(l.stored.Zones, e.Zone, e.RegisteredAt)
	for _, n := range e.Numbering().Numbers {
		if n.Number >= l.sequences[n.Seq].Initial {
			l.numbers[n.SequencePeriod()] = max(l.numbers[n.SequencePeriod()], n.Number)
		}
	}
}

func (l *lastNumbers) of(ws messages.WSID) storage.WorkspaceNumbers {
	all := storage.WorkspaceNumbers{Workspace: ws, Kind: l.stored.Kind, Older: l.stored.Older, Zones: l.stored.Zones}
	periods := slices.SortedFunc(maps.Keys(l.numbers), messages.SequencePeriod.Compare)
	for len(periods) > 0 {
		n := 1
		for n < len(periods) && periods[n].Seq == periods[0].Seq {
			n++
		}
		l.addSequence(&all, periods[:n])
		periods = periods[n:]
	}
	return all
}

// addSequence adds the numbers of a sequence in the periods that are not closed.
func (l *lastNumbers) addSequence(all *storage.WorkspaceNumbers, periods []messages.SequencePeriod) {
	seq := periods[0].Seq
	dates := make([]calendar.Date, len(periods))
	for i, p := range periods {
		dates[i] = p.Period
	}
	restart := l.sequences[seq].Restart
	closed := restart.ClosedBelow(dates)
	for _, c := range l.stored.Closed {
		if c.Seq == seq {
			closed = max(closed, c.Period)
		}
	}
	if closed != 0 {
		all.Closed = append(all.Closed, messages.SequencePeriod{Seq: seq, Period: closed})
	}
	for _, p := range periods {
		if p.Period >= closed {
			all.Numbers = append(all.Numbers, messages.SequenceNumber{Seq: seq, Period: p.Period, Number: l.numbers[p]})
		}
	}
}
