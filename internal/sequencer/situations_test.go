package sequencer

import (
	"errors"

	"github.com/partita-go/partita/messages"
)

// hitReply counts the situation that a reply shows.
func (w *world) hitReply(c *call) {
	switch m := c.message.(type) {
	case *messages.Start:
		w.hitStartReply(c)
	case *messages.Next:
		w.hitNextReply(c, m)
	case *messages.Raise:
		w.hitRaiseReply(c, m)
	case *messages.Flush:
		w.hitFlushReply(c)
	case *messages.Cancel:
		w.hitIf(refusalOf(c) == nil, "cancelled")
	case *messages.Actualize:
		w.hitIf(refusalOf(c) == nil, "actualized")
	}
}

func (w *world) hitIf(holds bool, what string) {
	if holds {
		w.hit(what)
	}
}

func (w *world) hitStartReply(c *call) {
	o := c.owner
	if o.granted {
		w.hitIf(o.waited != "", o.waited)
		w.hitIf(w.truth[o.ws].kind == 0 && w.lastKind[o.ws] != 0 && w.lastKind[o.ws] != o.kind, "kind chosen anew")
		w.lastKind[o.ws] = o.kind
		return
	}
	err := refusalOf(c)
	w.hitIf(errors.Is(err, messages.ErrKindMismatch), "kind mismatch")
	w.hitIf(errors.Is(err, messages.ErrDeadlineExceeded), "deadline passed")
	switch busyReason(c) {
	case messages.BusyUnflushed:
		w.hit("busy: unflushed")
	case messages.BusyActualizing:
		w.hit("busy: actualizing")
	case messages.BusyStopping:
		w.hit("busy: stopping")
	case messages.BusyMailboxFull:
	}
}

func (w *world) hitNextReply(c *call, m *messages.Next) {
	err := refusalOf(c)
	w.hitIf(err == nil, "number")
	w.hitIf(errors.Is(err, messages.ErrOverflow), "overflow")
	unknown := errors.Is(err, messages.ErrUnknownSequence)
	w.hitIf(unknown && m.Seq == messages.SeqWLogOffset, "WLog offset asked for")
	w.hitIf(unknown && m.Seq != messages.SeqWLogOffset, "unknown sequence")
}

func (w *world) hitRaiseReply(c *call, m *messages.Raise) {
	err := refusalOf(c)
	w.hitIf(err == nil, "raised")
	w.hitIf(err == nil && m.ID.Number < w.kinds()[c.owner.kind][m.ID.Seq].Initial, "raised to a low id")
	w.hitIf(errors.Is(err, messages.ErrExplicitID), "raised above the cap")
	w.hitIf(errors.Is(err, messages.ErrUnknownSequence), "raised a foreign sequence")
}

func (w *world) hitFlushReply(c *call) {
	o := c.owner
	late := w.open != o
	switch err := refusalOf(c); {
	case err == nil && !late:
		w.hit("flushed")
	case err == nil && o.flushed:
		w.hit("flush repeated by its owner")
	case err == nil:
		w.hit("flushed late")
	case errors.Is(err, messages.ErrFenced):
		w.hit("late flush fenced")
	case errors.Is(err, messages.ErrOutcomeUnknown):
		w.hit("late flush unknown")
	}
	if refusalOf(c) == nil {
		o.flushed = true
	}
}

// hitCore counts the situations that the core's state shows.
func (w *world) hitCore() {
	w.hitIf(w.core.state == messages.StateAlarming, "alarming")
	for _, r := range w.core.ready {
		w.hitIf(!w.core.cache.Contains(r.ws.id), "evicted while waiting")
	}
}
