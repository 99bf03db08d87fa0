package operate

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt"
)

// shownBytes is how much of a body or a row is shown as text.
const shownBytes = 60

// writeText writes an event as one line.
func writeText(w io.Writer, e *bolt.LoggedEvent) error {
	var line strings.Builder
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(&line, format, args...) }
	say("LSN %d  partition %d/%d  workspace %d/%d  %v  epoch %d", e.LSN, e.Partition, e.PLogOffset, e.Workspace, e.WLogOffset, e.RegisteredAt, e.Epoch)
	for _, n := range e.Numbers {
		say("  %d:%d", n.Seq, n.Number)
	}
	for i := range e.Records {
		r := &e.Records[i]
		what := "puts"
		if r.New {
			what = "creates"
		}
		say("  %s %v %s", what, r.ID, show(r.Data))
	}
	if !e.DedupID.IsZero() {
		say("  id %v", e.DedupID)
	}
	if e.Together != 0 {
		say("  together with the next %d", e.Together)
	}
	for _, s := range e.Sections {
		say("  section %d %s", s.Tag, show(s.Data))
	}
	say("  body %s\n", show(e.Body))
	_, err := io.WriteString(w, line.String())
	return err
}

// show returns the beginning of some bytes as text, or as hexadecimal digits.
func show(b []byte) string {
	more := ""
	if len(b) > shownBytes {
		more = fmt.Sprintf("... (%d bytes)", len(b))
		b = b[:shownBytes]
		for n := 0; n < utf8.UTFMax-1 && !utf8.Valid(b); n++ {
			b = b[:len(b)-1]
		}
	}
	if utf8.Valid(b) && !strings.ContainsFunc(string(b), func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Sprintf("%q%s", b, more)
	}
	return fmt.Sprintf("0x%x%s", b, more)
}

// eventResult is an event as JSON. Bodies and rows are text where they are valid UTF-8,
// and in base64 elsewhere.
type eventResult struct {
	LSN           number          `json:"lsn"`
	Partition     number          `json:"partition"`
	PLogOffset    number          `json:"plog_offset"`
	Workspace     id              `json:"workspace"`
	WorkspaceKind messages.WSKind `json:"workspace_kind"`
	WLogOffset    number          `json:"wlog_offset"`
	RegisteredAt  string          `json:"registered_at"`
	Epoch         number          `json:"epoch"`
	Numbers       []numberResult  `json:"numbers"`
	Records       []recordResult  `json:"records"`
	DedupID       string          `json:"dedup_id,omitempty"`
	Together      uint32          `json:"together,omitempty"`
	Sections      []sectionResult `json:"sections,omitempty"`
	Body          *string         `json:"body,omitempty"`
	BodyBase64    []byte          `json:"body_base64,omitempty"`
}

type numberResult struct {
	Sequence messages.SeqID `json:"sequence"`
	Number   id             `json:"number"`
}

type recordResult struct {
	numberResult
	New        bool    `json:"new"`
	Data       *string `json:"data,omitempty"`
	DataBase64 []byte  `json:"data_base64,omitempty"`
}

type sectionResult struct {
	Tag  uint16 `json:"tag"`
	Data []byte `json:"data_base64"`
}

// writeJSON writes an event as one line of JSON.
func writeJSON(w io.Writer, e *bolt.LoggedEvent) error {
	r := eventResult{
		LSN: number(e.LSN), Partition: number(e.Partition), PLogOffset: number(e.PLogOffset), Workspace: id(e.Workspace), WorkspaceKind: e.WorkspaceKind,
		WLogOffset: number(e.WLogOffset), RegisteredAt: e.RegisteredAt.String(), Epoch: number(e.Epoch),
		Numbers: []numberResult{}, Records: []recordResult{}, Together: e.Together,
	}
	for _, n := range e.Numbers {
		r.Numbers = append(r.Numbers, numberResult{Sequence: n.Seq, Number: id(n.Number)})
	}
	for i := range e.Records {
		rec := &e.Records[i]
		result := recordResult{numberResult: numberResult{Sequence: rec.ID.Seq, Number: id(rec.ID.Number)}, New: rec.New}
		result.Data, result.DataBase64 = textOr(rec.Data)
		r.Records = append(r.Records, result)
	}
	for _, s := range e.Sections {
		r.Sections = append(r.Sections, sectionResult{Tag: s.Tag, Data: s.Data})
	}
	if !e.DedupID.IsZero() {
		r.DedupID = e.DedupID.String()
	}
	r.Body, r.BodyBase64 = textOr(e.Body)
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// textOr returns bytes as text if they are, else as they are.
func textOr(b []byte) (*string, []byte) {
	if !utf8.Valid(b) {
		return nil, b
	}
	text := string(b)
	return &text, nil
}
