package httpapi

import (
	"encoding/base64"
	"encoding/json"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// microseconds is RFC 3339 as all times are written.
const microseconds = "2006-01-02T15:04:05.000000Z07:00"

func timeText(t messages.Timestamp) string { return t.Time().Format(microseconds) }

// numberJSON is a number of a sequence.
type numberJSON struct {
	Sequence messages.SeqID  `json:"sequence"`
	Number   messages.Number `json:"number,string"`
}

func numbersJSON(numbers []messages.SequenceNumber) []numberJSON {
	all := make([]numberJSON, 0, len(numbers))
	for _, n := range numbers {
		all = append(all, numberJSON{n.Seq, n.Number})
	}
	return all
}

// Event is an event as it is read, in the words of its JSON.
type Event struct {
	Partition     messages.PartitionID `json:"partition"`
	PLogOffset    messages.PLogOffset  `json:"plog_offset,string"`
	Workspace     messages.WSID        `json:"workspace,string"`
	WorkspaceKind messages.WSKind      `json:"workspace_kind"`
	WLogOffset    messages.WLogOffset  `json:"wlog_offset,string"`
	RegisteredAt  string               `json:"registered_at"`
	Epoch         messages.Epoch       `json:"epoch,string"`
	Numbers       []numberJSON         `json:"numbers"`
	Records       []writtenJSON        `json:"records"`
	DedupID       string               `json:"dedup_id,omitempty"`
	Together      uint32               `json:"together,omitempty"`
	Sections      []sectionJSON        `json:"sections,omitempty"`
	Body          json.RawMessage      `json:"body,omitempty"`
	BodyBase64    *string              `json:"body_base64,omitempty"`
}

// writtenJSON is a record as an event wrote it.
type writtenJSON struct {
	numberJSON
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

// EventOf returns an event as it is read. What it points to is shared.
func EventOf(e *messages.Event) Event {
	body := contentOf(e.Body)
	j := Event{
		Partition: e.Partition, PLogOffset: e.PLogOffset, Workspace: e.Workspace, WorkspaceKind: e.WorkspaceKind, WLogOffset: e.WLogOffset,
		RegisteredAt: timeText(e.RegisteredAt), Epoch: e.Epoch, Numbers: numbersJSON(e.Numbers), Records: []writtenJSON{},
		Together: e.Together, Body: body.JSON, BodyBase64: body.Base64,
	}
	for i := range e.Records {
		r := &e.Records[i]
		j.Records = append(j.Records, writtenJSON{numberJSON{r.ID.Seq, r.ID.Number}, r.New, dataOf(r.Data)})
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
	numberSize = 40
)

// sizeOf returns how many bytes the answer with an event has, about.
func sizeOf(e *messages.Event) int {
	size := eventSize + numberSize*len(e.Numbers) + len(e.Body)
	for i := range e.Records {
		size += recordSize + len(e.Records[i].Data)
	}
	return size
}

// rowJSON is a record as it stands.
type rowJSON struct {
	numberJSON
	dataJSON
	Partition  messages.PartitionID `json:"partition"`
	PLogOffset messages.PLogOffset  `json:"plog_offset,string"`
}

func rowOf(r *storage.Row) rowJSON {
	return rowJSON{numberJSON{r.ID.Seq, r.ID.Number}, dataOf(r.Data), r.Partition, r.PLogOffset}
}
