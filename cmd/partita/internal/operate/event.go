package operate

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt"
)

// shownBytes is how much of a body or a row is shown as text.
const shownBytes = 60

// writeText writes an event as one line.
func writeText(w io.Writer, e *bolt.LoggedEvent, p messages.Printer) error {
	var line strings.Builder
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(&line, format, args...) }
	say("LSN %d  partition %d/%d  workspace %d/%d  %v  epoch %d", e.LSN, e.Partition, e.PLogOffset, e.Workspace, e.WLogOffset, e.RegisteredAt, e.Epoch)
	if e.Date != 0 {
		say("  date %v", e.Date)
	}
	for i, n := range e.Numbers {
		what := "  "
		if i < int(e.Brought) {
			what += "brings "
		}
		say("%s%s", what, numberText(p, e.WorkspaceKind, n))
	}
	for _, n := range e.Moves {
		say("  moves to %s", numberText(p, e.WorkspaceKind, n))
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

// numberText returns a number with its sequence, and its period and how it is printed if it has that.
func numberText(p messages.Printer, kind messages.WSKind, n messages.SequenceNumber) string {
	text := fmt.Sprintf("%d:", n.Seq)
	if n.Period != 0 {
		text += fmt.Sprintf("%v:", n.Period)
	}
	text += n.Number.String()
	if printed := p.Print(kind, n); printed != "" {
		text += fmt.Sprintf(" %q", printed)
	}
	return text
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

// writeJSON writes an event as one line of JSON: as httpapi has it, with its place in the log.
func writeJSON(w io.Writer, e *bolt.LoggedEvent, p messages.Printer) error {
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	return lines.Encode(struct {
		LSN messages.LSN `json:"lsn,string"`
		httpapi.Event
	}{e.LSN, httpapi.EventOf(&e.Event, p)})
}
