package transfer

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"iter"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt"
)

// Exported is what was exported.
type Exported struct {
	Events uint64
	// SHA256 is that of the lines but the last, in hexadecimal digits.
	SHA256 string
}

// Export writes the events of a part of a store, which nobody may write meanwhile. tell is called now and then.
func Export(ctx context.Context, s *bolt.Store, part bolt.Part, to io.Writer, tell func(done, total uint64)) (Exported, error) {
	slices.Sort(part.Partitions)
	slices.Sort(part.Workspaces)
	part.Partitions, part.Workspaces = slices.Compact(part.Partitions), slices.Compact(part.Workspaces)
	h := Header{Descriptor: s.Descriptor(), Only: part}
	var err error
	if h.Launches, err = s.Launches(ctx); err != nil {
		return Exported{}, err
	}
	if h.Events, err = s.CountEvents(ctx, part); err != nil {
		return Exported{}, err
	}
	x := newFileWriter(to)
	line, err := h.write(newWriter())
	if err == nil {
		err = x.first(line)
	}
	if err != nil {
		return Exported{}, err
	}
	tell(0, h.Events)
	for t := range ordered(batches(s.ByTime(ctx, part)), encodeEvents) {
		if err := x.events(&t); err != nil {
			return Exported{}, err
		}
		tell(x.n, h.Events)
	}
	if x.n != h.Events {
		return Exported{}, fmt.Errorf("got %d events, want %d: the store was written meanwhile", x.n, h.Events)
	}
	sum, err := x.end()
	return Exported{Events: x.n, SHA256: sum}, err
}

// eventBatch are some events, and why there are no more.
type eventBatch struct {
	events []messages.Event
	err    error
}

// batches cuts events into batches. The last one has the error.
func batches(events iter.Seq2[messages.Event, error]) iter.Seq[eventBatch] {
	return func(yield func(eventBatch) bool) {
		var b eventBatch
		bytes := 0
		for e, err := range events {
			if err != nil {
				b.err = err
				break
			}
			b.events = append(b.events, e)
			if bytes += e.Memory(); len(b.events) < batchEvents && bytes < batchBytes {
				continue
			}
			if !yield(b) {
				return
			}
			b, bytes = eventBatch{}, 0
		}
		if len(b.events) > 0 || b.err != nil {
			yield(b)
		}
	}
}

// textBatch are the texts of some events, one behind the other.
type textBatch struct {
	text []byte
	ends []int
	err  error
}

func encodeEvents(b eventBatch) textBatch {
	t := textBatch{err: b.err}
	w := newWriter()
	for i := range b.events {
		e := &b.events[i]
		text, err := w.event(e)
		if err != nil {
			t.err = fmt.Errorf("partition %d, offset %d: %w", e.Partition, e.PLogOffset, err)
			break
		}
		t.text = append(t.text, text...)
		t.ends = append(t.ends, len(t.text))
	}
	return t
}

// fileWriter writes a file line by line.
type fileWriter struct {
	to  *bufio.Writer
	sum hash.Hash
	// n is how many numbered lines there are, crc the checksum of the last one.
	n    uint64
	crc  uint32
	line []byte
}

func newFileWriter(to io.Writer) *fileWriter {
	return &fileWriter{to: bufio.NewWriterSize(to, 1<<16), sum: sha256.New()}
}

func (x *fileWriter) write(line []byte) error {
	x.sum.Write(line)
	_, err := x.to.Write(line)
	return err
}

// first writes the first line, whose checksum is its own.
func (x *fileWriter) first(content []byte) error {
	line, _ := seal(content, 0)
	return x.write(line)
}

func (x *fileWriter) events(t *textBatch) error {
	begin := 0
	for _, end := range t.ends {
		if err := x.numbered("event", t.text[begin:end]); err != nil {
			return err
		}
		begin = end
	}
	return t.err
}

func (x *fileWriter) numbered(name string, text []byte) error {
	x.n++
	x.line = append(appendNumbered(x.line[:0], x.n, name), text...)
	x.line, x.crc = seal(x.line, x.crc)
	return x.write(x.line)
}

// end writes the last line, and returns the sum of those before it.
func (x *fileWriter) end() (string, error) {
	sum := hex.EncodeToString(x.sum.Sum(nil))
	line, err := newWriter().document(&endJSON{Events: x.n, SHA256: sum})
	if err != nil {
		return "", err
	}
	line, _ = seal(line, x.crc)
	if err := x.write(line); err != nil {
		return "", err
	}
	return sum, x.to.Flush()
}
