package sequencer

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/partita-go/partita/messages"
)

// search is for the append that had a deduplication id before. What the log says
// about that stays true, so that a search goes on during an actualization.
type search struct {
	generation, serial uint64
	// appends wait for what is found.
	appends []waiting
}

// refuseUnlessRepeated refuses an Append for what its workspace is like, unless it
// is like that because the same append was written before.
func (c *Core) refuseUnlessRepeated(w *waiting, err error) {
	if w.append.DedupID.IsZero() {
		c.refuseWaiter(w, err)
		return
	}
	c.search(w, 0, err)
}

// search asks for the events of the append that had an Append's deduplication id;
// first is 0 if it is not known whether there is one.
func (c *Core) search(w *waiting, first messages.WLogOffset, otherwise error) uint64 {
	c.lastSearch++
	c.searches = append(c.searches, search{generation: c.generation, serial: c.lastSearch})
	c.out.Reader = append(c.out.Reader, &messages.LoadEvents{
		Generation: c.generation, Load: c.lastSearch, Workspace: w.append.Workspace, DedupID: w.append.DedupID, First: first, Trace: w.append.Trace,
	})
	c.joinSearch(w, c.lastSearch, otherwise)
	return c.lastSearch
}

// joinSearch lets an Append wait for a search that was begun.
func (c *Core) joinSearch(w *waiting, serial uint64, otherwise error) {
	c.release(w)
	w.otherwise = otherwise
	for i := len(c.searches) - 1; i >= 0; i-- {
		if s := &c.searches[i]; s.serial == serial {
			s.appends = append(s.appends, *w)
			return
		}
	}
}

// eventsLoaded handles the reader's answer to a search.
func (c *Core) eventsLoaded(m *messages.EventsLoaded) {
	i := slices.IndexFunc(c.searches, func(s search) bool { return s.generation == m.Generation && s.serial == m.Load })
	if i < 0 {
		return
	}
	found := c.searches[i]
	c.searches = slices.Delete(c.searches, i, i+1)
	for i := range found.appends {
		w := &found.appends[i]
		switch {
		case m.Err != nil:
			c.refuseWaiter(w, outcomeUnknown(m.Err))
		case len(m.Events) == 0 || m.Events[0].DedupID != w.append.DedupID:
			c.refuseWaiter(w, w.otherwise)
		default:
			c.answerRepeated(w, m.Events)
		}
	}
}

// abandonSearches answers those whose append may have been written before.
func (c *Core) abandonSearches(cause error) {
	for i := range c.searches {
		for j := range c.searches[i].appends {
			c.refuseWaiter(&c.searches[i].appends[j], outcomeUnknown(cause))
		}
	}
	c.searches = nil
}

// answerRepeated answers an Append whose deduplication id stands in events that
// are durable.
func (c *Core) answerRepeated(w *waiting, events []messages.Event) {
	first, numbers := &events[0], numbersOf(events)
	if !sameAppend(w.append, events, numbers) {
		c.refuseWaiter(w, fmt.Errorf("%w: workspace %d, id %v is at offset %d",
			messages.ErrDedupMismatch, first.Workspace, first.DedupID, first.WLogOffset))
		return
	}
	c.reply(w.from, &messages.Appended{
		Partition:    c.partition,
		PLogOffset:   first.PLogOffset,
		WLogOffset:   first.WLogOffset,
		RegisteredAt: first.RegisteredAt,
		Numbers:      numbers,
		Repeated:     true,
	})
	c.answered(w)
}

func numbersOf(events []messages.Event) []messages.SequenceNumber {
	var numbers []messages.SequenceNumber
	for i := range events {
		numbers = append(numbers, events[i].Numbers...)
	}
	return numbers
}

// sameAppend reports whether an append would write events like these. numbers are
// those of all of them.
func sameAppend(m *messages.Append, events []messages.Event, numbers []messages.SequenceNumber) bool {
	if len(events) != len(m.Drafts) || events[0].WorkspaceKind != m.Kind {
		return false
	}
	for i := range events {
		d, e := &m.Drafts[i], &events[i]
		if d.Zone != e.Zone {
			return false
		}
		if !bytes.Equal(d.Body, e.Body) || d.Date != e.Date || !sameGiven(d, e) || !sameRecords(d.Records, e.Records, numbers) {
			return false
		}
	}
	return true
}

// sameGiven reports whether the numbers and the moves of an event are those of a draft.
func sameGiven(d *messages.Draft, e *messages.Event) bool {
	return int(e.Brought) == len(d.Brought) && sameTaken(d.Brought, e.Numbers[:e.Brought]) && sameTaken(d.Moves, e.Moves) &&
		sameNumbers(d.Wanted, e.Numbers[e.Brought:])
}

func sameNumbers(wanted []messages.Wanted, given []messages.SequenceNumber) bool {
	for _, w := range wanted {
		n := w.Numbers()
		if n > len(given) || slices.ContainsFunc(given[:n], func(g messages.SequenceNumber) bool { return g.Seq != w.Seq }) {
			return false
		}
		given = given[n:]
	}
	return len(given) == 0
}

func sameRecords(drafts []messages.DraftRecord, records []messages.Record, numbers []messages.SequenceNumber) bool {
	return slices.EqualFunc(drafts, records, func(d messages.DraftRecord, r messages.Record) bool {
		id := d.ID
		if id == (messages.RecordID{}) {
			if d.Number < 0 || d.Number >= len(numbers) {
				return false
			}
			id = numbers[d.Number].Record()
		}
		return id == r.ID && d.New == r.New && bytes.Equal(d.Data, r.Data)
	})
}
