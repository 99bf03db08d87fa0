package bolt

import (
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/tail"
)

// generation is what is remembered of many workspaces. Nothing in it has a pointer, so that the garbage collector passes
// hundreds of thousands of ends by. Nil is an empty one.
type generation struct {
	// places says where a workspace is. What has no place any more stays until the generation is forgotten.
	places     map[messages.WSID]uint32
	workspaces []keptEnds
	records    []keptRecord
}

// keptEnds is where the keys of a workspace end, as [workspaceEnds] is.
type keptEnds struct {
	wlog messages.WLogOffset
	// records is the place of the first one of its sequences, from 1; 0 if there is none.
	records uint32
	kind    messages.WSKind
	whole   bool
}

// keptRecord is the largest number of the records of a sequence.
type keptRecord struct {
	number messages.Number
	// next is the place of the workspace's next one.
	next uint32
	seq  messages.SeqID
}

// kept is what a generation has of a workspace, nothing if its keptEnds is nil. It holds until something is put into the
// generation.
type kept struct {
	in *generation
	*keptEnds
}

// size is how many ends there are.
func (g *generation) size() int {
	if g == nil {
		return 0
	}
	return len(g.workspaces) + len(g.records)
}

func (g *generation) find(ws messages.WSID) kept {
	if g != nil {
		if place, ok := g.places[ws]; ok {
			return kept{g, &g.workspaces[place]}
		}
	}
	return kept{}
}

func (g *generation) put(ws messages.WSID, e keptEnds) kept {
	if g.places == nil {
		g.places = make(map[messages.WSID]uint32)
	}
	g.places[ws] = uint32(len(g.workspaces))
	e.records = 0
	g.workspaces = append(g.workspaces, e)
	return kept{g, &g.workspaces[len(g.workspaces)-1]}
}

func (e kept) known() bool { return e.keptEnds != nil }

// end returns the end of a sequence, nil if it is not known.
func (e kept) end(seq messages.SeqID) *keptRecord {
	for place := e.records; place != 0; {
		r := &e.in.records[place-1]
		if r.seq == seq {
			return r
		}
		place = r.next
	}
	return nil
}

// add takes in the end of a sequence that has none.
func (e kept) add(seq messages.SeqID, number messages.Number) {
	e.in.records = append(e.in.records, keptRecord{number: number, next: e.records, seq: seq})
	e.records = uint32(len(e.in.records))
}

// appendTo appends the ends of its sequences.
func (e kept) appendTo(ends []messages.SequenceNumber) []messages.SequenceNumber {
	for place := e.records; place != 0; {
		r := &e.in.records[place-1]
		ends = append(ends, messages.SequenceNumber{Seq: r.seq, Number: r.number})
		place = r.next
	}
	return ends
}

// size is how many ends it is.
func (e kept) size() int {
	n := 1
	for place := e.records; place != 0; place = e.in.records[place-1].next {
		n++
	}
	return n
}

// isContinuedBy reports whether an event is the workspace's next one.
func (e kept) isContinuedBy(n *newEvent) bool {
	return n.wlog == e.wlog+1 && (e.wlog == 0 || n.wsKind == e.kind)
}

// areBelow reports whether all new records lie above the ends.
func (e kept) areBelow(records []tail.Record) bool {
	for _, r := range records {
		if r.IsNew && !e.isBelow(r) {
			return false
		}
	}
	return true
}

// isBelow reports whether a record lies above the end of its sequence, which is known.
func (e kept) isBelow(r tail.Record) bool {
	if end := e.end(r.Seq); end != nil {
		return r.Number > end.number
	}
	return e.whole
}

// raise takes a record in, if the end of its sequence is known.
func (e kept) raise(r tail.Record) {
	if end := e.end(r.Seq); end != nil {
		end.number = max(end.number, r.Number)
	} else if e.whole {
		e.add(r.Seq, r.Number)
	}
}
