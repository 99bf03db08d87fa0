package httpapi

import (
	"fmt"
	"strings"

	"github.com/partita-go/partita/messages"
)

// severalSequences says that a name does not tell which sequence is meant: stores of earlier versions may have such names.
const severalSequences = "the workspace kind has several sequences %.80q: want its id"

// named is a sequence that has a name, or that several have it.
type named struct {
	id      messages.SeqID
	several bool
}

// namesOf returns the sequences of a kind by their names. Its own go before those built in: stores of earlier versions may
// have their names.
func namesOf(kind *messages.Kind) map[string]named {
	names, own := make(map[string]named), make(map[string]bool)
	for _, s := range (messages.Kind{}).All() {
		names[s.Name] = named{id: s.ID}
	}
	for i := range kind.Sequences {
		s := &kind.Sequences[i]
		names[s.Name] = named{s.ID, own[s.Name]}
		own[s.Name] = true
	}
	return names
}

// sequence returns the sequence of the path, of a workspace: its id, or its name. What has digits only is an id.
func (c *call) sequence(ws messages.WSID) (messages.SeqID, error) {
	const field = "sequence"
	name := c.r.PathValue(field)
	if strings.Trim(name, "0123456789") == "" {
		return inPath(c, field, messages.ParseSeqID)
	}
	numbers, err := c.api.reader.Numbers(c.r.Context(), ws)
	if err != nil {
		return 0, err
	}
	if numbers.Kind == 0 {
		return 0, noEvent(ws)
	}
	kind, _ := c.api.descriptor.Kind(numbers.Kind)
	found := namesOf(&kind)[name]
	switch {
	case found.several:
		return 0, &problem{kind: malformed, field: field, detail: fmt.Sprintf(severalSequences, name)}
	case found.id == 0:
		return 0, &problem{kind: notFound, field: field, cause: messages.ErrUnknownSequence, detail: fmt.Sprintf("the workspace kind has no sequence %.80q", name)}
	}
	return found.id, nil
}

// noEvent is the problem that a workspace has no event.
func noEvent(ws messages.WSID) *problem {
	return &problem{kind: notFound, field: "wsid", detail: fmt.Sprintf("workspace %d has no event", ws)}
}
