package storagetest

import (
	"slices"

	"github.com/partita-go/partita/messages"
)

// cloneEvents returns copies that share nothing with the events.
func cloneEvents(events []messages.Event) []messages.Event {
	clones := make([]messages.Event, len(events))
	for i := range events {
		clones[i] = cloneEvent(&events[i])
	}
	return clones
}

// cloneEvent returns a copy that shares nothing with the event.
func cloneEvent(e *messages.Event) messages.Event {
	c := *e
	c.Numbers, c.Moves = slices.Clone(e.Numbers), slices.Clone(e.Moves)
	c.Body = slices.Clone(e.Body)
	c.Records = slices.Clone(e.Records)
	for i := range c.Records {
		c.Records[i].Data = slices.Clone(c.Records[i].Data)
	}
	c.Sections = slices.Clone(e.Sections)
	for i := range c.Sections {
		c.Sections[i].Data = slices.Clone(c.Sections[i].Data)
	}
	return c
}
