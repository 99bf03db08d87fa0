package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

func (a *API) workspaceEvent(c *call) error {
	ws, err := c.workspace()
	if err != nil {
		return err
	}
	offset, err := inPath(c, "offset", messages.ParseWLogOffset)
	if err != nil {
		return err
	}
	e, err := a.reader.WorkspaceEvent(c.r.Context(), ws, offset)
	return c.sendEvent(&e, err)
}

func (a *API) partitionEvent(c *call) error {
	p, err := c.partition()
	if err != nil {
		return err
	}
	offset, err := inPath(c, "offset", messages.ParsePLogOffset)
	if err != nil {
		return err
	}
	e, err := a.reader.PartitionEvent(c.r.Context(), p, offset)
	return c.sendEvent(&e, err)
}

func (c *call) sendEvent(e *messages.Event, err error) error {
	if err != nil {
		return err
	}
	return c.sendJSON(http.StatusOK, jsonType, EventOf(e, c.api.printer))
}

// lastJSON is where a sequence of a workspace stands.
type lastJSON struct {
	Sequence messages.SeqID `json:"sequence"`
	Name     string         `json:"name"`
	// Period is the first day of the period, if the sequence restarts. Each period has an element, the
	// oldest one first; a sequence that has given no number yet has one without a period.
	Period string `json:"period,omitempty"`
	// Last is the last number given out, 0 if none was.
	Last messages.Number `json:"last,string"`
	// Largest is the last number that can be given out.
	Largest messages.Number `json:"largest,string"`
	// NearlyUsed says that more than 90 % of the numbers are used.
	NearlyUsed bool `json:"nearly_used"`
	// Printed is the last number in the sequence's format, if it has one and a number.
	Printed string `json:"printed,omitempty"`
}

func (a *API) numbers(c *call) error {
	ws, err := c.workspace()
	if err != nil {
		return err
	}
	numbers, err := a.reader.Numbers(c.r.Context(), ws)
	if err != nil {
		return err
	}
	if numbers.Kind == 0 {
		return noEvent(ws)
	}
	answer := struct {
		Workspace     messages.WSID   `json:"workspace,string"`
		WorkspaceKind messages.WSKind `json:"workspace_kind"`
		// AsOf is the offset of the event that they are as of.
		AsOf messages.Number `json:"as_of_offset,string"`
		// Zone is the time zone that the workspace was given last, ZoneSet when that was.
		Zone      string     `json:"zone,omitempty"`
		ZoneSet   string     `json:"zone_set_at,omitempty"`
		Sequences []lastJSON `json:"sequences"`
	}{Workspace: ws, WorkspaceKind: numbers.Kind}
	if last, there := numbers.Zones.Last(); there {
		answer.Zone, answer.ZoneSet = last.Zone.String(), timeText(messages.TimestampOf(last.Set))
	}
	kind, _ := a.descriptor.Kind(numbers.Kind)
	for _, s := range kind.All() {
		for _, n := range numbers.Of(s.ID) {
			answer.Sequences = append(answer.Sequences, a.last(numbers.Kind, &s, n))
		}
	}
	answer.AsOf = answer.Sequences[0].Last
	return c.sendJSON(http.StatusOK, jsonType, &answer)
}

func (a *API) last(kind messages.WSKind, s *messages.Sequence, n messages.SequenceNumber) lastJSON {
	j := lastJSON{
		Sequence: s.ID, Name: s.Name, Period: dateText(n.Period), Last: n.Number, Largest: s.Max(), NearlyUsed: s.NearlyUsed(n.Number),
	}
	if n.Number != 0 {
		j.Printed = a.printer.Print(kind, n)
	}
	return j
}

func (a *API) record(c *call) error {
	ws, err := c.workspace()
	if err != nil {
		return err
	}
	var id messages.RecordID
	if id.Seq, err = c.sequence(ws); err != nil {
		return err
	}
	if id.Number, err = inPath(c, "number", messages.ParseNumber); err != nil {
		return err
	}
	row, err := a.reader.Record(c.r.Context(), ws, id)
	if err != nil {
		return err
	}
	return c.sendJSON(http.StatusOK, jsonType, rowOf(&row))
}

// Page is a page of what does not grow at its end, as a log does.
type Page[T any] struct {
	Results []T `json:"results"`
	// Next is nil if there are no more.
	Next *string `json:"next"`
}

// NextOf returns where the list goes on of which this page was asked for at a URL, and false if the page does not say that. Of
// its link only the query counts: whoever stands between may have taken something off the path.
func (p *Page[T]) NextOf(asked *url.URL) (next *url.URL, ok bool) {
	if p.Next == nil || len(p.Results) == 0 {
		return nil, false
	}
	_, query, ok := strings.Cut(*p.Next, "?")
	at := *asked
	at.RawQuery = query
	return &at, ok
}

// isFull reports whether nothing more goes into the page, which has so many bytes.
func (p *Page[T]) isFull(c *call, limit, size int) bool {
	return len(p.Results) == limit || size >= c.api.options.PageBytes
}

func (a *API) records(c *call) error {
	ws, err := c.workspace()
	if err != nil {
		return err
	}
	limit, err := c.whole(paramLimit, DefaultLimit, 1, maxLimit)
	if err != nil {
		return err
	}
	in, err := c.recordRange(ws)
	if err != nil {
		return err
	}
	page := Page[Row]{Results: []Row{}}
	size := 0
	for row, err := range a.reader.Records(c.r.Context(), ws, in) {
		if err != nil {
			return err
		}
		if page.isFull(c, limit, size) {
			page.Next = new(c.nextRecords(row.ID.Number))
			break
		}
		page.Results = append(page.Results, rowOf(&row))
		size += recordSize + len(row.Data)
	}
	return c.sendJSON(http.StatusOK, jsonType, &page)
}

func (c *call) recordRange(ws messages.WSID) (in storage.RecordRange, err error) {
	if in.Seq, err = c.sequence(ws); err != nil {
		return in, err
	}
	if in.From, err = inQuery(c, paramFrom, messages.ParseNumber); err != nil {
		return in, err
	}
	if in.To, err = inQuery(c, paramTo, messages.ParseNumber); err != nil {
		return in, err
	}
	if c.query.Has(paramTo) && in.To < max(in.From, 1) {
		return in, &problem{kind: malformed, field: paramTo, detail: fmt.Sprintf("got %d, want at least %d", in.To, max(in.From, 1))}
	}
	return in, nil
}

// nextRecords is the page that begins with a number.
func (c *call) nextRecords(from messages.Number) string {
	query := url.Values{paramFrom: {from.String()}}
	c.keep(query, paramTo)
	c.keep(query, paramLimit)
	return c.link(query)
}
