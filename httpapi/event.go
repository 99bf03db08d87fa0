package httpapi

import (
	"encoding/base64"
	"encoding/json"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// microseconds is RFC 3339 as all times are written.
const microseconds = "2006-01-02T15:04:05.000000Z07:00"

func timeText(t messages.Timestamp) string { return t.Time().Format(microseconds) }

// idJSON is the id of a record: a number of a sequence.
type idJSON struct {
	Sequence messages.SeqID  `json:"sequence"`
	Number   messages.Number `json:"number,string"`
}

// numberJSON is a number of a sequence.
type numberJSON struct {
	Sequence messages.SeqID `json:"sequence"`
	// Period is the first day of its period, if the sequence restarts.
	Period string          `json:"period,omitempty"`
	Number messages.Number `json:"number,string"`
	// Printed is the number in the sequence's format, if it has one.
	Printed string `json:"printed,omitempty"`
}

func numbersJSON(kind messages.WSKind, numbers []messages.SequenceNumber, p messages.Printer) []numberJSON {
	all := make([]numberJSON, 0, len(numbers))
	for _, n := range numbers {
		all = append(all, numberJSON{n.Seq, dateText(n.Period), n.Number, p.Print(kind, n)})
	}
	return all
}

// dateText returns a date, "" if there is none.
func dateText(d calendar.Date) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// Event is an event as it is read, in the words of its JSON.
type Event struct {
	Partition     messages.PartitionID `json:"partition"`
	PLogOffset    messages.PLogOffset  `json:"plog_offset,string"`
	Workspace     messages.WSID        `json:"workspace,string"`
	WorkspaceKind messages.WSKind      `json:"workspace_kind"`
	WLogOffset    messages.WLogOffset  `json:"wlog_offset,string"`
	RegisteredAt  string               `json:"registered_at"`
	Date          string               `json:"date,omitempty"`
	Zone          string               `json:"zone,omitempty"`
	Epoch         messages.Epoch       `json:"epoch,string"`
	Numbers       []numberJSON         `json:"numbers"`
	Brought       []numberJSON         `json:"brought,omitempty"`
	Moves         []numberJSON         `json:"moves,omitempty"`
	Records       []writtenJSON        `json:"records"`
	DedupID       string               `json:"dedup_id,omitempty"`
	Together      uint32               `json:"together,omitempty"`
	Trace         ids.TraceID          `json:"trace,omitempty"`
	Sections      []sectionJSON        `json:"sections,omitempty"`
	Body          json.RawMessage      `json:"body,omitempty"`
	BodyBase64    *string              `json:"body_base64,omitempty"`
}

// writtenJSON is a record as an event wrote it.
type writtenJSON struct {
	idJSON
	New bool `json:"new"`
	dataJSON
}

// dataJSON is the data of a record.
type dataJSON struct {
	Data       json.RawMessage `json:"data,omitempty"`
	DataBase64 *string         `json:"data_base64,omitempty"`
}

type sectionJSON struct {
	Tag  uint16 `json:"tag"`
	Data string `json:"data_base64"`
}

func dataOf(b []byte) dataJSON {
	c := contentOf(b)
	return dataJSON{Data: c.JSON, DataBase64: c.Base64}
}

// EventOf returns an event as it is read. What it points to is shared. The printer is the application's.
func EventOf(e *messages.Event, p messages.Printer) Event {
	body := contentOf(e.Body)
	j := Event{
		Partition: e.Partition, PLogOffset: e.PLogOffset, Workspace: e.Workspace, WorkspaceKind: e.WorkspaceKind, WLogOffset: e.WLogOffset,
		RegisteredAt: timeText(e.RegisteredAt), Date: dateText(e.Date), Zone: e.Zone, Epoch: e.Epoch,
		Numbers: numbersJSON(e.WorkspaceKind, e.Numbers, p), Brought: numbersJSON(e.WorkspaceKind, e.Numbers[:e.Brought], p),
		Moves: numbersJSON(e.WorkspaceKind, e.Moves, p), Records: []writtenJSON{},
		Together: e.Together, Trace: e.Trace, Body: body.JSON, BodyBase64: body.Base64,
	}
	for i := range e.Records {
		r := &e.Records[i]
		j.Records = append(j.Records, writtenJSON{idJSON{r.ID.Seq, r.ID.Number}, r.New, dataOf(r.Data)})
	}
	for _, s := range e.Sections {
		j.Sections = append(j.Sections, sectionJSON{s.Tag, base64.StdEncoding.EncodeToString(s.Data)})
	}
	if !e.DedupID.IsZero() {
		j.DedupID = e.DedupID.String()
	}
	return j
}

// What an event's answer takes besides its bytes, about.
const (
	eventSize  = 300
	recordSize = 60
	numberSize = 60
)

// sizeOf returns how many bytes the answer with an event has, about.
func sizeOf(e *messages.Event) int {
	size := eventSize + numberSize*(len(e.Numbers)+int(e.Brought)+len(e.Moves)) + len(e.Body)
	for i := range e.Records {
		size += recordSize + len(e.Records[i].Data)
	}
	return size
}

// Row is a record as it stands.
type Row struct {
	idJSON
	dataJSON
	Partition  messages.PartitionID `json:"partition"`
	PLogOffset messages.PLogOffset  `json:"plog_offset,string"`
}

func rowOf(r *storage.Row) Row {
	return Row{idJSON{r.ID.Seq, r.ID.Number}, dataOf(r.Data), r.Partition, r.PLogOffset}
}
