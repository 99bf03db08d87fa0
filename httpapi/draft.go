package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// request is what an append asks for.
type request struct {
	to     partition.AppendTo
	drafts []partition.Draft
	// together says that the drafts stand in a list, also if there is but one.
	together bool
}

// leastDraft is what a draft takes of the setting GroupBytes at the least. So a body with more of them is refused before they
// take memory.
const leastDraft = 256

// decode reads the body of a request to append events: where to, and what.
func (a *API) decode(body []byte, r *request) error {
	if err := wellFormed(body); err != nil {
		return err
	}
	o := newObject(invalidEvent, "", body)
	kind := a.kindMember(o)
	r.to.Kind = kind.ID
	if expected, there := textMember(o, "expected_offset", messages.ParseWLogOffset); there {
		r.to.Expected = &expected
	}
	d := drafting{sequences: sequencesOf(&kind), kind: &kind, most: max(1, a.app.Config().Settings.GroupBytes/leastDraft)}
	if r.together = o.has("drafts"); r.together {
		o.each("drafts", d.read)
	} else {
		d.read(o)
	}
	if r.drafts = d.drafts; len(r.drafts) == 0 {
		o.fail("drafts", "got none, want at least one")
	}
	return o.end()
}

// kindMember takes a workspace kind: its id, or its name.
func (a *API) kindMember(o *object) (kind messages.Kind) {
	switch raw := o.members["kind"]; {
	case raw == nil:
		o.fail("kind", "it is missing")
	case raw[0] == '"':
		name, _ := member[string](o, "kind", "a name")
		named := func(k messages.Kind) bool { return k.Name == name }
		i := slices.IndexFunc(a.descriptor.Kinds, named)
		switch {
		case i < 0:
			o.refuse("kind", messages.ErrUnknownKind, "the application has no workspace kind %.80q", name)
		case slices.ContainsFunc(a.descriptor.Kinds[i+1:], named):
			o.fail("kind", "the application has several workspace kinds %.80q: want its id", name)
		default:
			kind = a.descriptor.Kinds[i]
		}
	default:
		id, _ := member[messages.WSKind](o, "kind", "a number from 1 to 65535, or a name")
		var known bool
		if kind, known = a.descriptor.Kind(id); !known {
			o.refuse("kind", messages.ErrUnknownKind, "the application has no workspace kind %d", id)
		}
	}
	return kind
}

// read reads the next draft, from the members of an object.
func (d *drafting) read(o *object) {
	if len(d.drafts) == d.most {
		o.err = &problem{kind: tooLarge, field: "drafts", cause: messages.ErrTooLarge, detail: fmt.Sprintf("got more drafts than fit into one append, want at most %d", d.most)}
		return
	}
	d.before, d.count, d.draft = d.before+d.count, 0, partition.Draft{}
	d.draft.Date, _ = textMember(o, "date", calendar.ParseDate)
	d.takeOver(o)
	o.each("wanted", d.want)
	o.each("records", d.record)
	d.draft.Zone, _ = textMember(o, "zone", zoneName)
	d.draft.Body = o.content("body")
	d.drafts = append(d.drafts, d.draft)
}

// zoneName reads a name that a zone can have. Whether there is one is asked later: the request may repeat one that
// another machine has answered, which knows it.
func zoneName(text string) (string, error) {
	if !calendar.IsZoneName(text) {
		return "", fmt.Errorf("%w: got %.40q, want a name like Europe/Zurich", calendar.ErrZone, text)
	}
	return text, nil
}

// wellFormed returns a problem unless a body is one JSON value.
func wellFormed(body []byte) error {
	if !utf8.Valid(body) {
		return &problem{kind: malformed, detail: "the body is not UTF-8"}
	}
	if json.Valid(body) {
		return nil
	}
	var value json.RawMessage
	switch err := json.NewDecoder(bytes.NewReader(body)).Decode(&value); {
	case errors.Is(err, io.EOF):
		return &problem{kind: malformed, detail: "the body is empty, want a JSON object"}
	case err != nil:
		return &problem{kind: malformed, detail: "the body is not JSON: " + err.Error()}
	}
	return &problem{kind: malformed, detail: "something follows the JSON value in the body"}
}

// sequencesOf are those whose numbers an event of a workspace kind can have or name.
func sequencesOf(kind *messages.Kind) map[messages.SeqID]messages.Sequence {
	known := make(map[messages.SeqID]messages.Sequence)
	for _, s := range kind.All() {
		known[s.ID] = s
	}
	delete(known, messages.SeqWLogOffset)
	return known
}

// drafting are drafts that are being read.
type drafting struct {
	drafts    []partition.Draft
	sequences map[messages.SeqID]messages.Sequence
	kind      *messages.Kind
	// names are those of the kind, nil until one is asked for.
	names map[string]named
	// draft is the one that is being read; count is how many numbers it brings along and wants.
	draft partition.Draft
	count int
	// before is how many numbers the drafts before it have.
	before int
	// most is how many drafts there may be.
	most int
}

// sequence takes a sequence: its id, or its name.
func (d *drafting) sequence(o *object) (seq messages.SeqID, there bool) {
	if raw := o.members["sequence"]; raw != nil && raw[0] == '"' {
		return d.namedSequence(o), true
	}
	seq, there = member[messages.SeqID](o, "sequence", "a number from 1 to 65535, or a name")
	if _, known := d.sequences[seq]; there && !known {
		o.refuse("sequence", messages.ErrUnknownSequence, "the workspace kind has no sequence %d whose numbers an event can have", seq)
	}
	return seq, there
}

func (d *drafting) namedSequence(o *object) messages.SeqID {
	name, _ := member[string](o, "sequence", "a name")
	if d.names == nil {
		d.names = namesOf(d.kind)
	}
	found := d.names[name]
	_, known := d.sequences[found.id]
	switch {
	case found.several:
		o.fail("sequence", severalSequences, name)
	case !known:
		o.refuse("sequence", messages.ErrUnknownSequence, "the workspace kind has no sequence %.80q whose numbers an event can have", name)
	}
	return found.id
}

// want reads which numbers the event is to be given.
func (d *drafting) want(o *object) {
	seq, there := d.sequence(o)
	if !there {
		o.fail("sequence", "it is missing")
	}
	count, there := member[uint32](o, "count", "a number")
	if !there {
		count = 1
	}
	if count < 1 || count > messages.MaxEventNumbers || d.count+int(count) > messages.MaxEventNumbers {
		o.refuse("count", messages.ErrTooManyNumbers, "got %d behind %d others, want at least 1, and at most %d in all",
			count, d.count, messages.MaxEventNumbers)
		return
	}
	d.count += int(count)
	d.draft.Wanted = append(d.draft.Wanted, partition.Wanted{Seq: seq, Count: count})
}

// record reads a row that is to be written.
func (d *drafting) record(o *object) {
	index, byIndex := member[int](o, "number_index", "a number")
	seq, hasSeq := d.sequence(o)
	number, hasNumber := textMember(o, "number", messages.ParseNumber)
	isNew, _ := member[bool](o, "new", "true or false")
	switch {
	case byIndex == (hasSeq && hasNumber), byIndex && (hasSeq || hasNumber):
		o.fail("number_index", "want either number_index, or sequence and number")
	case byIndex && (index < 0 || index >= d.before+d.count):
		o.fail("number_index", "got %d, there are %d numbers, the first being 0", index, d.before+d.count)
	case !byIndex:
		d.checkNumber(o, seq, number, isNew)
	}
	d.draft.Records = append(d.draft.Records, partition.DraftRecord{
		ID: messages.RecordID{Seq: seq, Number: number}, Number: index, New: isNew, Data: o.content("data"),
	})
}

// checkNumber checks the number of a row that is named.
func (d *drafting) checkNumber(o *object, seq messages.SeqID, number messages.Number, isNew bool) {
	def := d.sequences[seq]
	most := def.Max()
	if isNew {
		most = def.MaxExplicit()
	}
	if number < 1 || number > most {
		o.fail("number", "got %d, want 1 to %d", number, most)
	}
}

// takeOver reads the members of a draft that take over from an old system. Its business date is known.
func (d *drafting) takeOver(o *object) {
	o.each("brought", func(o *object) {
		d.draft.Brought = d.taken(o, d.draft.Brought)
		d.count = len(d.draft.Brought)
	})
	o.each("moves", func(o *object) { d.draft.Moves = d.taken(o, d.draft.Moves) })
}

// taken reads a number that is brought along, or that a sequence is moved to.
func (d *drafting) taken(o *object, before []messages.SequenceNumber) []messages.SequenceNumber {
	seq, there := d.sequence(o)
	if !there {
		o.fail("sequence", "it is missing")
	}
	period, _ := textMember(o, "period", calendar.ParseDate)
	number, there := textMember(o, "number", messages.ParseNumber)
	def := d.sequences[seq]
	switch err := def.CheckPeriod(d.draft.Date, period); {
	case !there:
		o.fail("number", "it is missing")
	case len(before) >= messages.MaxEventNumbers:
		o.fail("number", "got %d others, want at most %d in all", len(before), messages.MaxEventNumbers)
	case err != nil && (period != 0 || d.draft.Date == 0):
		o.fail("period", "%v", err)
	}
	return append(before, messages.SequenceNumber{Seq: seq, Period: period, Number: number})
}
