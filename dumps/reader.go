package dumps

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/partita-go/partita/ids"
)

// maxLine is how long a line may be to be read, in bytes: longer than a writer's ever is.
const maxLine = 16 << 20

// document is a line as JSON.
type document struct {
	Time        string          `json:"ts"`
	Group       string          `json:"g"`
	Key         string          `json:"k,omitempty"`
	Node        uint16          `json:"n,omitempty"`
	Number      uint64          `json:"s"`
	Trace       ids.TraceID     `json:"t,omitempty"`
	Direction   Direction       `json:"d"`
	Class       string          `json:"cl"`
	Message     string          `json:"mn"`
	Protocol    string          `json:"mp"`
	Kind        Kind            `json:"mk"`
	Body        json.RawMessage `json:"m,omitempty"`
	Correlation uint64          `json:"c,omitempty"`
}

// ParseLine reads a line, with its end or without it. It returns [ErrLine] if it is none of a dump. Fields that are
// not known are passed over. The line does not keep the bytes.
func ParseLine(b []byte) (Line, error) {
	var d document
	if err := json.Unmarshal(b, &d); err != nil {
		return Line{}, fmt.Errorf("%w: %w", ErrLine, err)
	}
	at, err := time.Parse(time.RFC3339Nano, d.Time)
	if err != nil {
		return Line{}, fmt.Errorf("%w: ts: %w", ErrLine, err)
	}
	if err := d.check(); err != nil {
		return Line{}, err
	}
	if bytes.Equal(d.Body, []byte("null")) {
		d.Body = nil
	}
	return Line{
		Time: at, Group: d.Group, Key: d.Key, Node: d.Node, Number: d.Number, Trace: d.Trace, Direction: d.Direction,
		Class: d.Class, Message: d.Message, Protocol: d.Protocol, Kind: d.Kind, Body: d.Body, Correlation: d.Correlation,
	}, nil
}

// MarshalJSON implements json.Marshaler: it is a line as a writer has it, without its end.
func (l Line) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(document{
		Time: l.Time.UTC().Format(timeLayout), Group: l.Group, Key: l.Key, Node: l.Node, Number: l.Number, Trace: l.Trace, Direction: l.Direction,
		Class: l.Class, Message: l.Message, Protocol: l.Protocol, Kind: l.Kind, Body: l.Body, Correlation: l.Correlation,
	})
	return b.Bytes(), err
}

// UnmarshalJSON implements json.Unmarshaler, see [ParseLine].
func (l *Line) UnmarshalJSON(b []byte) (err error) {
	*l, err = ParseLine(b)
	return err
}

// check returns what a line lacks.
func (d *document) check() error {
	switch {
	case d.Group == "":
		return fmt.Errorf("%w: g: got none", ErrLine)
	case d.Number == 0:
		return fmt.Errorf("%w: s: got 0, want at least 1", ErrLine)
	case d.Direction != In && d.Direction != Out:
		return fmt.Errorf("%w: d: got %.20q, want In or Out", ErrLine, d.Direction)
	case d.Kind != Regular && d.Kind != Request && d.Kind != Response:
		return fmt.Errorf("%w: mk: got %.20q, want Regular, Request or Response", ErrLine, d.Kind)
	}
	return nil
}

// Read returns the lines of a dump in their order, which is that of time but for some milliseconds. A line that
// is none comes as [ErrLine], with its place, and reading goes on; a last one without an end is one of them unless it is
// whole. Any other error is the reader's and the last element.
func Read(r io.Reader) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		b := bufio.NewReaderSize(r, 64<<10)
		var memory []byte
		for n := 1; ; n++ {
			text, err := readLine(b, memory[:0])
			memory = text[:0]
			if len(text) > 0 || errors.Is(err, ErrLine) {
				line, lineErr := parseAt(n, text, err)
				if !yield(line, lineErr) {
					return
				}
			}
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil && !errors.Is(err, ErrLine):
				yield(Line{}, err)
				return
			}
		}
	}
}

// parseAt says in errors which line it is.
func parseAt(n int, text []byte, err error) (Line, error) {
	var line Line
	if !errors.Is(err, ErrLine) {
		line, err = ParseLine(text)
	}
	if err != nil {
		return Line{}, fmt.Errorf("line %d: %w", n, err)
	}
	return line, nil
}

// readLine appends a line without its end to memory. One that is too long is passed over, and ErrLine. It returns
// io.EOF with what is behind the last end.
func readLine(b *bufio.Reader, memory []byte) ([]byte, error) {
	tooLong := false
	for {
		piece, err := b.ReadSlice('\n')
		if tooLong = tooLong || len(memory)+len(piece) > maxLine; tooLong {
			memory = memory[:0]
		} else {
			memory = append(memory, piece...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case tooLong && err == nil:
			return memory, fmt.Errorf("%w: longer than %d bytes", ErrLine, maxLine)
		case err == nil:
			return bytes.TrimSuffix(memory, []byte("\n")), nil
		}
		return memory, err
	}
}
