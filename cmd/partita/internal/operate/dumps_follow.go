package operate

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/partita-go/partita/dumps"
)

// followTime is how often a file that is followed is looked at.
const followTime = 100 * time.Millisecond

// followFile prints what comes to a file until ctx ends. When its name is that of another file, it goes on there.
func (s *dumpSearch) followFile(ctx context.Context, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	t := &tail{name: name, file: f, reader: bufio.NewReader(f)}
	defer func() { _ = t.file.Close() }()
	tick := time.NewTicker(followTime)
	defer tick.Stop()
	for {
		if err := s.printNew(t); err != nil {
			return err
		}
		exchanged, err := t.exchange()
		if err != nil {
			return err
		}
		if exchanged {
			continue
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tail is a file that is followed.
type tail struct {
	name   string
	file   *os.File
	reader *bufio.Reader
	// begun is a line whose end has not come yet.
	begun []byte
	// next is the file that has the name now, when there is another one.
	next *os.File
}

// printNew prints the lines that have come, as far as they are whole.
func (s *dumpSearch) printNew(t *tail) error {
	for {
		piece, err := t.reader.ReadBytes('\n')
		t.begun = append(t.begun, piece...)
		if err != nil {
			if flushErr := s.out.Flush(); !errors.Is(err, io.EOF) || flushErr != nil {
				return errors.Join(err, flushErr)
			}
			return nil
		}
		err = s.printIfFound(t)
		t.begun = t.begun[:0]
		if err != nil {
			return err
		}
	}
}

func (s *dumpSearch) printIfFound(t *tail) error {
	if len(bytes.TrimSpace(t.begun)) == 0 {
		return nil
	}
	l, err := dumps.ParseLine(t.begun)
	switch {
	case err != nil:
		s.note(t.name, err)
		return nil
	case !s.query.Finds(&l):
		return nil
	}
	return s.printLine(&l)
}

// exchange goes on with the file that has the name now, once that before has been read a last time: a writer
// may write to it until it has opened the other one.
func (t *tail) exchange() (exchanged bool, err error) {
	if t.next != nil {
		err := t.file.Close()
		t.file, t.next, t.begun = t.next, nil, nil
		t.reader.Reset(t.file)
		return true, err
	}
	now, err := os.Stat(t.name)
	if err != nil {
		return false, nil //nolint:nilerr // it is being exchanged
	}
	before, err := t.file.Stat()
	if err != nil {
		return false, fmt.Errorf("%s: %w", t.name, err)
	}
	if os.SameFile(now, before) {
		return false, nil
	}
	t.next, err = os.Open(t.name)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return true, err
}
