package verify

import (
	"context"

	"github.com/partita-go/partita/messages"
)

// together is what the pass over a log expects of the next events.
type together struct {
	// left is how many events must still follow first, which was appended with them.
	left  uint32
	first place
}

// checkTogether makes sure that an event stands right before those that it was
// appended together with, which have no id of their own.
func (r *run) checkTogether(l *position, e *messages.Event, where place) {
	t := &l.together
	if t.left > 0 {
		t.left--
		if e.Workspace != t.first.workspace || !e.DedupID.IsZero() || e.Together != 0 {
			r.fault(CheckTogether, where, "workspace %d, id %v, together %d among the events appended with offset %d, want workspace %d and neither",
				e.Workspace, e.DedupID, e.Together, t.first.offset, t.first.workspace)
			t.left = 0
		}
	}
	if e.Together != 0 {
		*t = together{left: e.Together, first: where}
	}
}

// checkTogetherEnd makes sure that nothing is missing at the end of the log.
func (r *run) checkTogetherEnd(l *position) {
	if t := &l.together; t.left > 0 {
		r.fault(CheckTogether, t.first, "%d of the events appended together with it are not there", t.left)
	}
}

// checkID makes sure that the event's deduplication id leads to the event. Two
// events with one id cannot both pass.
func (r *run) checkID(ctx context.Context, w *workspace, e *messages.Event) error {
	if e.DedupID.IsZero() {
		return nil
	}
	found, err := r.store.Find(ctx, w.id, e.DedupID)
	if err != nil {
		return r.readFault(placeOf(e), "find id", err)
	}
	if found != e.WLogOffset {
		r.fault(CheckDedup, placeOf(e), "workspace %d: id %v is found at offset %d, want %d", w.id, e.DedupID, found, e.WLogOffset)
	}
	return nil
}
