package httpapi

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// MayBeRead returns nil if what [EventOf] makes of an event can be read again by [Event.Read]: if its registration time is
// zero, or in the years 1 to 9999.
func MayBeRead(e *messages.Event) error {
	t := e.RegisteredAt.Time()
	if e.RegisteredAt != 0 && (t.IsZero() || t.Year() < 1 || t.Year() > 9999) {
		return fmt.Errorf("registered at %v: %w", e.RegisteredAt, errUnwritable)
	}
	return nil
}

// Read returns the event of which [EventOf] made j. What j has of the printed forms of numbers is not looked at. What it
// points to is shared.
func (j *Event) Read() (e messages.Event, err error) {
	e = messages.Event{
		Kind: messages.EventBusiness, Epoch: j.Epoch, Partition: j.Partition, PLogOffset: j.PLogOffset,
		Workspace: j.Workspace, WorkspaceKind: j.WorkspaceKind, WLogOffset: j.WLogOffset, Together: j.Together,
		Zone: j.Zone, Trace: j.Trace,
	}
	for _, step := range []func(*messages.Event) error{j.readTimes, j.readNumbers, j.readContents, j.readID} {
		if err := step(&e); err != nil {
			return e, err
		}
	}
	return e, nil
}

func (j *Event) readTimes(e *messages.Event) (err error) {
	if e.RegisteredAt, err = readTime(j.RegisteredAt); err != nil {
		return err
	}
	e.Date, err = readDate(j.Date)
	return err
}

func readTime(text string) (messages.Timestamp, error) {
	at, err := time.Parse(microseconds, text)
	if err != nil {
		return 0, fmt.Errorf("registered_at: %w", err)
	}
	return messages.TimestampOf(at), nil
}

func readDate(text string) (calendar.Date, error) {
	if text == "" {
		return 0, nil
	}
	return calendar.ParseDate(text)
}

func (j *Event) readNumbers(e *messages.Event) (err error) {
	if len(j.Brought) > len(j.Numbers) {
		return fmt.Errorf("brought: got %d, want at most %d, as there are numbers", len(j.Brought), len(j.Numbers))
	}
	e.Brought = uint32(len(j.Brought))
	if e.Numbers, err = readNumbers(j.Numbers); err == nil {
		e.Moves, err = readNumbers(j.Moves)
	}
	return err
}

func readNumbers(list []numberJSON) (all []messages.SequenceNumber, err error) {
	if len(list) > 0 {
		all = make([]messages.SequenceNumber, len(list))
	}
	for i := range list {
		all[i] = messages.SequenceNumber{Seq: list[i].Sequence, Number: list[i].Number}
		if all[i].Period, err = readDate(list[i].Period); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (j *Event) readContents(e *messages.Event) (err error) {
	body := content{JSON: j.Body, Base64: j.BodyBase64}
	if e.Body, err = body.bytes(); err != nil {
		return fmt.Errorf("body: %w", err)
	}
	for i := range j.Records {
		r := &j.Records[i]
		data := content{JSON: r.Data, Base64: r.DataBase64}
		row := messages.Record{ID: messages.RecordID{Seq: r.Sequence, Number: r.Number}, New: r.New}
		if row.Data, err = data.bytes(); err != nil {
			return fmt.Errorf("record %v: %w", row.ID, err)
		}
		e.Records = append(e.Records, row)
	}
	for _, s := range j.Sections {
		data, err := (&content{Base64: &s.Data}).bytes()
		if err != nil {
			return fmt.Errorf("section %d: %w", s.Tag, err)
		}
		e.Sections = append(e.Sections, messages.Section{Tag: s.Tag, Data: data})
	}
	return nil
}

// bytes returns what was shown. Nothing is nil.
func (c *content) bytes() ([]byte, error) {
	if c.Base64 == nil || *c.Base64 == "" {
		return c.JSON, nil
	}
	return base64.StdEncoding.DecodeString(*c.Base64)
}

func (j *Event) readID(e *messages.Event) error {
	if j.DedupID == "" {
		return nil
	}
	n, err := hex.Decode(e.DedupID[:], []byte(j.DedupID[:min(len(j.DedupID), 2*len(e.DedupID))]))
	if err != nil || 2*n != len(j.DedupID) || n != len(e.DedupID) {
		return fmt.Errorf("dedup_id: got %.40q, want %d hexadecimal digits", j.DedupID, 2*len(e.DedupID))
	}
	return nil
}
