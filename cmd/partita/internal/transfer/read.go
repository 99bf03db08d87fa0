package transfer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"slices"

	"github.com/partita-go/partita/messages"
)

// fileReader reads a file line by line.
type fileReader struct {
	lines *lineReader
	sum   hash.Hash
	n     uint64
	crc   uint32
	// name is what the numbered lines have.
	name string
	// digest is the sum of all lines but the last, once that was read.
	digest string
}

func newFileReader(r io.Reader, name string) *fileReader {
	return &fileReader{lines: newLineReader(r), sum: sha256.New(), name: name}
}

// first returns the first line without its end.
func (r *fileReader) first() ([]byte, error) {
	line, err := r.lines.next(nil)
	if errors.Is(err, io.EOF) {
		err = r.lines.wrong(errEmpty)
	}
	if err != nil {
		return nil, err
	}
	content, _, err := unseal(line, 0)
	if err != nil {
		return nil, r.lines.wrong(err)
	}
	r.add(line)
	return content, nil
}

func (r *fileReader) add(line []byte) {
	r.sum.Write(line)
	r.sum.Write([]byte{'\n'})
}

// next appends a numbered line to buf, and returns what it has. It returns io.EOF at the last line, if that is right and
// nothing follows it.
func (r *fileReader) next(buf []byte) (grown, value []byte, err error) {
	begin := len(buf)
	buf, err = r.lines.next(buf)
	if errors.Is(err, io.EOF) {
		err = r.lines.wrong(errNoEnd)
	}
	if err != nil {
		return buf, nil, err
	}
	line := buf[begin:]
	if bytes.HasPrefix(line, []byte(`{"end":`)) {
		return buf, nil, r.end(line)
	}
	if value, err = r.numbered(line); err != nil {
		return buf, nil, r.lines.wrong(err)
	}
	r.add(line)
	return buf, value, nil
}

func (r *fileReader) numbered(line []byte) ([]byte, error) {
	// A line that is missing is told before its checksum, which shows no more than that something is wrong.
	value, err := numbered(line, r.n+1, r.name)
	if err != nil {
		return nil, err
	}
	content, crc, err := unseal(line, r.crc)
	if err != nil {
		return nil, err
	}
	r.n, r.crc = r.n+1, crc
	return value[:len(value)-(len(line)-len(content))], nil
}

// end returns io.EOF if the last line is right.
func (r *fileReader) end(line []byte) error {
	content, _, err := unseal(line, r.crc)
	if err != nil {
		return r.lines.wrong(err)
	}
	var j endJSON
	text := append(slices.Clip(content), '}')
	if err := json.Unmarshal(text, &j); err != nil {
		return r.lines.wrong(err)
	}
	if err := newWriter().mustBe(text, &j); err != nil {
		return r.lines.wrong(err)
	}
	sum := hex.EncodeToString(r.sum.Sum(nil))
	switch {
	case j.Events != r.n:
		return r.lines.wrong(fmt.Errorf("got %d lines, the last one says %d", r.n, j.Events))
	case j.SHA256 != sum:
		return r.lines.wrong(fmt.Errorf("the lines before it have SHA-256 %s, want %s", sum, j.SHA256))
	}
	if err := r.lines.end(); err != nil {
		return err
	}
	r.digest = sum
	return io.EOF
}

// Reader reads a file of events.
type Reader struct {
	Header Header
	file   *fileReader
	// line is that of the last event that was yielded.
	line uint64
}

// NewReader reads the first line of a file of events.
func NewReader(r io.Reader) (*Reader, error) {
	f := newFileReader(r, "event")
	content, err := f.first()
	if err != nil {
		return nil, err
	}
	h, err := readHeader(newWriter(), content)
	if err != nil {
		return nil, f.lines.wrong(err)
	}
	return &Reader{Header: h, file: f, line: 1}, nil
}

// Events returns the events, once. A wrong line ends them with a [*LineError], and so does a wrong end of the file.
func (r *Reader) Events() iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		for b := range ordered(r.lineBatches(), parseEvents) {
			for i := range b.events {
				r.line++
				if !yield(b.events[i], nil) {
					return
				}
			}
			if b.err != nil {
				yield(messages.Event{}, b.err)
				return
			}
		}
	}
}

// Digest is the SHA-256 of the file, once all events were read.
func (r *Reader) Digest() string { return r.file.digest }

// lineBatch are the values of some lines.
type lineBatch struct {
	first  uint64
	values [][]byte
	err    error
}

// lineBatches reads the file. The last batch has the error.
func (r *Reader) lineBatches() iter.Seq[lineBatch] {
	return func(yield func(lineBatch) bool) {
		for more := true; more; {
			b := r.lineBatch()
			more = b.err == nil
			if errors.Is(b.err, io.EOF) {
				b.err = r.checkCount()
			}
			if !yield(b) {
				return
			}
		}
	}
}

func (r *Reader) lineBatch() lineBatch {
	b := lineBatch{first: r.file.lines.line + 1}
	buf := make([]byte, 0, 1<<16)
	for len(b.values) < batchEvents && len(buf) < batchBytes {
		var value []byte
		if buf, value, b.err = r.file.next(buf); b.err != nil {
			break
		}
		b.values = append(b.values, value)
	}
	return b
}

func (r *Reader) checkCount() error {
	if r.file.n == r.Header.Events {
		return nil
	}
	return r.file.lines.wrong(fmt.Errorf("got %d events, the first line says %d", r.file.n, r.Header.Events))
}

func parseEvents(b lineBatch) eventBatch {
	parsed := eventBatch{events: make([]messages.Event, 0, len(b.values)), err: b.err}
	w := newWriter()
	for i, value := range b.values {
		e, err := w.readEvent(value)
		if err != nil {
			parsed.err = &LineError{Line: b.first + uint64(i), Cause: err}
			break
		}
		parsed.events = append(parsed.events, e)
	}
	return parsed
}
