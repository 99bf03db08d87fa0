package operate

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt"
)

// shownBytes is how much of a body or a row is shown as text.
const shownBytes = 60

// writeText writes an event as one line. What every event has is written without package fmt: logs are long, and
// followed while they grow.
func writeText(w io.Writer, e *bolt.LoggedEvent, p messages.Printer) error {
	line := make([]byte, 0, 512)
	number := func(before string, n uint64) { line = strconv.AppendUint(append(line, before...), n, 10) }
	say := func(format string, args ...any) { line = fmt.Appendf(line, format, args...) }
	number("LSN ", uint64(e.LSN))
	number("  partition ", uint64(e.Partition))
	number("/", uint64(e.PLogOffset))
	number("  workspace ", uint64(e.Workspace))
	number("/", uint64(e.WLogOffset))
	line = append(append(line, "  "...), e.RegisteredAt.String()...)
	number("  epoch ", uint64(e.Epoch))
	if e.Date != 0 {
		say("  date %v", e.Date)
	}
	if e.Zone != "" {
		say("  zone %s", e.Zone)
	}
	for i, n := range e.Numbers {
		what := "  "
		if i < int(e.Brought) {
			what += "brings "
		}
		line = appendNumber(append(line, what...), p, e.WorkspaceKind, n)
	}
	for _, n := range e.Moves {
		line = appendNumber(append(line, "  moves to "...), p, e.WorkspaceKind, n)
	}
	for i := range e.Records {
		r := &e.Records[i]
		what := "puts"
		if r.New {
			what = "creates"
		}
		say("  %s %v ", what, r.ID)
		line = appendShown(line, r.Data)
	}
	if !e.DedupID.IsZero() {
		say("  id %v", e.DedupID)
	}
	if e.Together != 0 {
		say("  together with the next %d", e.Together)
	}
	if e.Trace != 0 {
		say("  trace %v", e.Trace)
	}
	for _, s := range e.Sections {
		number("  section ", uint64(s.Tag))
		line = appendShown(append(line, ' '), s.Data)
	}
	line = appendShown(append(line, "  body "...), e.Body)
	_, err := w.Write(append(line, '\n'))
	return err
}

// appendNumber appends a number with its sequence, and its period and how it is printed if it has that.
func appendNumber(b []byte, p messages.Printer, kind messages.WSKind, n messages.SequenceNumber) []byte {
	b = append(strconv.AppendUint(b, uint64(n.Seq), 10), ':')
	if n.Period != 0 {
		b = append(append(b, n.Period.String()...), ':')
	}
	b = append(b, n.Number.String()...)
	if printed := p.Print(kind, n); printed != "" {
		b = strconv.AppendQuote(append(b, ' '), printed)
	}
	return b
}

// show is appendShown as a text.
func show(b []byte) string { return string(appendShown(nil, b)) }

// appendShown appends the beginning of some bytes as text, or as hexadecimal digits.
func appendShown(line, b []byte) []byte {
	all := len(b)
	if all > shownBytes {
		b = b[:shownBytes]
		for n := 0; n < utf8.UTFMax-1 && !utf8.Valid(b); n++ {
			b = b[:len(b)-1]
		}
	}
	if text := string(b); utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		line = strconv.AppendQuote(line, text)
	} else {
		line = fmt.Appendf(line, "0x%x", b)
	}
	if all > shownBytes {
		line = fmt.Appendf(line, "... (%d bytes)", all)
	}
	return line
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
