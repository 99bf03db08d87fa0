package operate

import (
	"bytes"
	"context"
	"io"
	"slices"
	"sync"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt"
)

// Of those who follow the whole log of a store that is served, each wants the same lines. They are written once: else
// 20 of them would take more of the machine than the appends do.

const (
	// maxBlockEvents is how many events are written at a time, and maxSharedBytes how much of the end of the log is
	// kept for those who come later.
	maxBlockEvents = 4096
	// maxBlockBytes is after how many bytes a block ends, too: events may be large, and there are many who follow.
	maxBlockBytes  = 1 << 20
	maxSharedBytes = 8 << 20
)

// sharedLog is the end of a log, as it is printed.
type sharedLog struct {
	store *bolt.Store
	write func(io.Writer, *bolt.LoggedEvent, messages.Printer) error

	mu     sync.Mutex
	blocks []block
	bytes  int
}

// block are the lines of some events.
type block struct {
	first messages.LSN
	text  []byte
	// ends is where the line of each event ends.
	ends []int
}

func (b *block) end() messages.LSN { return b.first + messages.LSN(len(b.ends)) }

// from returns the lines from an event on, of so many events at most, and of how many they are.
func (b *block) from(at messages.LSN, most uint64) (text []byte, events int) {
	i := int(at - b.first)
	j := len(b.ends)
	if uint64(j-i) > most {
		j = i + int(most)
	}
	begin := 0
	if i > 0 {
		begin = b.ends[i-1]
	}
	return b.text[begin:b.ends[j-1]], j - i
}

// next returns lines from an event on, of at most so many events, and of how many they are: of none if the log ends
// there. If they are not kept any more it is not known.
func (l *sharedLog) next(ctx context.Context, at messages.LSN, most uint64) (text []byte, events int, known bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.blocks); n > 0 && at < l.blocks[n-1].end() {
		for i := range l.blocks {
			if b := &l.blocks[i]; b.first <= at && at < b.end() {
				text, events = b.from(at, most)
				return text, events, true, nil
			}
		}
		return nil, 0, false, nil
	}
	b, err := l.read(ctx, at)
	if err != nil || len(b.ends) == 0 {
		return nil, 0, true, err
	}
	l.keep(b)
	text, events = b.from(at, most)
	return text, events, true, nil
}

// read prints events. An error behind the first of them comes again with the next block.
func (l *sharedLog) read(ctx context.Context, at messages.LSN) (*block, error) {
	var text bytes.Buffer
	b, d := &block{first: at}, l.store.Descriptor()
	printer := d.Printer()
	for e, err := range l.store.LogWithLSN(ctx, at) {
		if err == nil {
			err = l.write(&text, &e, printer)
		}
		if err != nil && (len(b.ends) == 0 || ctx.Err() != nil) {
			return nil, err
		}
		if err != nil {
			break
		}
		b.ends = append(b.ends, text.Len())
		if len(b.ends) == maxBlockEvents || text.Len() >= maxBlockBytes {
			break
		}
	}
	b.text = text.Bytes()
	return b, nil
}

// keep keeps a block behind those that are there, or instead of them if it is not what follows.
func (l *sharedLog) keep(b *block) {
	if n := len(l.blocks); n > 0 && l.blocks[n-1].end() != b.first {
		l.blocks, l.bytes = nil, 0
	}
	l.blocks = append(l.blocks, *b)
	l.bytes += len(b.text)
	for len(l.blocks) > 1 && l.bytes > maxSharedBytes {
		l.bytes -= len(l.blocks[0].text)
		l.blocks = slices.Delete(l.blocks, 0, 1)
	}
}
