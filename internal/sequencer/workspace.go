package sequencer

import (
	"fmt"
	"slices"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// wlogOffset is the index of the WLog offset among a kind's sequences, which are
// ordered by id.
const wlogOffset = 0

// kindDef is a workspace kind with its sequences, built-in ones included,
// ordered by id.
type kindDef struct {
	id        messages.WSKind
	sequences []messages.Sequence
	// ids are the sequences' ids alone, close together for looking up.
	ids []messages.SeqID
	// restarts are how the sequences restart, nil for one that never does; nil if none does.
	restarts []*restartDef
	// numbers is how many numbers a workspace has in the cache.
	numbers int
}

func newKindDef(k messages.Kind) *kindDef {
	def := &kindDef{id: k.ID, sequences: k.All()}
	def.numbers = len(def.sequences)
	for i := range def.sequences {
		s := &def.sequences[i]
		def.ids = append(def.ids, s.ID)
		if d := newRestartDef(s); d != nil {
			if def.restarts == nil {
				def.restarts = make([]*restartDef, len(def.sequences))
			}
			def.restarts[i] = d
			def.numbers += d.room()
		}
	}
	return def
}

// index returns a sequence's place in the kind, or -1.
func (k *kindDef) index(seq messages.SeqID) int {
	i, ok := slices.BinarySearch(k.ids, seq)
	if !ok {
		return -1
	}
	return i
}

// ofRecords returns the place of a sequence whose numbers can be ids of records: not of the WLog offset, nor of
// one that restarts, whose numbers repeat.
func (k *kindDef) ofRecords(seq messages.SeqID) (i int, ok bool) {
	i = k.index(seq)
	return i, i > wlogOffset && k.restart(i) == nil
}

// workspace holds the last numbers given out in a workspace, all sequences of
// its kind. It is complete: what is not in it was not given out.
type workspace struct {
	id   messages.WSID
	kind *kindDef
	// fixed says that the workspace has an event, so that its kind cannot change.
	fixed bool
	lasts
	// spans are, of each sequence that restarts, what is known of its periods; nil if none does.
	spans []span
	// delta is what the workspace has in the pending of that serial, kept at hand for
	// its next event. It holds on to no more than the delta itself.
	delta  *delta
	serial uint64
	// pins counts those who count on these very numbers: who waits in the queue, in
	// the batch, and the open transaction.
	pins int
	// reserved is the place among the batch's reserved numbers, from 1; 0 if there
	// are none.
	reserved int
}

// deltaIn returns the workspace's delta in p, made if it was not there.
func (w *workspace) deltaIn(p *pending) *delta {
	if w.serial != p.serial {
		w.delta, w.serial = p.of(w.id, w.kind), p.serial
	}
	return w.delta
}

func newWorkspace(id messages.WSID, kind *kindDef) *workspace {
	own := &struct {
		workspace
		few fewNumbers
	}{}
	own.id = id
	own.begin(kind, &own.few)
	return &own.workspace
}

// take is take of the workspace, which may not begin if it is 0.
func (c *Core) take(w *workspace, kind *kindDef) error {
	if w.id == 0 && c.noZero && !w.fixed && w.reserved == 0 {
		return messages.ErrWorkspaceZero
	}
	return w.take(kind)
}

// take makes sure that the workspace is of a kind, which its first event fixes, be
// it one that is not durable yet.
func (w *workspace) take(kind *kindDef) error {
	if w.kind == kind {
		return nil
	}
	if w.fixed || w.reserved > 0 {
		return fmt.Errorf("%w: workspace %d: got kind %d, want %d", messages.ErrKindMismatch, w.id, kind.id, w.kind.id)
	}
	w.become(kind)
	return nil
}

// become changes the kind of a workspace that has no event, in place: others may
// wait with this very copy.
func (w *workspace) become(kind *kindDef) { w.begin(kind, nil) }

func (w *workspace) begin(kind *kindDef, few *fewNumbers) {
	w.kind, w.lasts, w.spans = kind, newLasts(kind, few), nil
	if kind.restarts != nil {
		w.spans = make([]span, len(kind.sequences))
	}
}

// changedIn counts the last numbers that are others in a reservation.
func (w *workspace) changedIn(reserved *lasts) (changed int) {
	for i, n := range reserved.last {
		if was, _ := w.in(w.kind, i, reserved.periodOf(i)); n != was {
			changed++
		}
	}
	if w.sharesOthers(reserved) {
		return changed
	}
	for _, o := range reserved.others {
		i := w.kind.index(o.Seq)
		if was, _ := w.in(w.kind, i, o.Period); o.Number != was && o.Period != reserved.periodOf(i) {
			changed++
		}
	}
	return changed
}

// merge takes over what a delta knows better.
func (w *workspace) merge(d *delta) {
	if d.kind != w.kind {
		// Only possible while the workspace has no event that the caller knew of.
		w.become(d.kind)
	}
	w.fixed = true
	for _, change := range d.changes {
		w.zones = newZones(w.zones.merged().Merge(change), change)
	}
	w.lasts.merge(w.kind, &d.lasts)
	for i := range w.spans {
		w.close(i)
	}
}

// raise merges a number by maximum, and reports whether it is another now.
func (w *workspace) raise(i int, period calendar.Date, n messages.Number) bool {
	was, raised := w.lasts.raise(w.kind, i, period, n)
	if raised && was == 0 && w.spans != nil {
		w.close(i)
	}
	return raised
}
