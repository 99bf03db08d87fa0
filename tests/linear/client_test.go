package linear

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/partita-go/partita/messages"
)

// life is the time from one start of the application to its end.
type life struct {
	*world
	*history
	names *names
	// tries counts what clients have tried; enough is closed at so many.
	tries  atomic.Int64
	many   int64
	enough chan struct{}

	mu sync.Mutex
	// wave are the operations that the next cut ends.
	wave *wave
}

// wave are operations whose contexts end together.
type wave struct {
	ctx    context.Context
	cancel context.CancelFunc
	ops    sync.WaitGroup
}

func newWave(ctx context.Context) *wave {
	w := new(wave)
	w.ctx, w.cancel = context.WithCancel(ctx)
	return w
}

// join adds an operation to the wave.
func (l *life) join() *wave {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wave.ops.Add(1)
	return l.wave
}

// cut ends the contexts of all operations under way and returns when each of their
// clients has its answer.
func (l *life) cut(ctx context.Context) {
	l.mu.Lock()
	w := l.wave
	l.wave = newWave(ctx)
	l.mu.Unlock()
	w.cancel()
	w.ops.Wait()
}

// names are the writes with a deduplication id of a history, which any client may
// repeat.
type names struct {
	mu  sync.Mutex
	all []*write
}

func (n *names) add(w *write) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, w)
}

func (n *names) pick(random *rand.Rand) *write {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.all) == 0 {
		return nil
	}
	return n.all[random.IntN(len(n.all))]
}

// client does one operation after the other.
type client struct {
	*life
	id, count int
	process   int
	random    *rand.Rand
	// granted says that a transaction was granted lately.
	granted bool
}

func (c *client) run() {
	for range attempts {
		c.count++
		c.once()
		if c.tries.Add(1) == c.many {
			close(c.enough)
		}
	}
}

// once does one operation, some of them with little time.
func (c *client) once() {
	w := c.join()
	defer w.ops.Done()
	ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
	if c.random.IntN(10) == 0 {
		ctx, cancel = context.WithTimeout(w.ctx, time.Duration(c.random.Int64N(int64(2*time.Millisecond))))
	}
	defer cancel()
	switch n := c.random.IntN(20); {
	case n < 5:
		c.read(ctx)
	case n < 12:
		c.write(ctx, c.newAppend(), c.append)
	case n < 14:
		c.write(ctx, c.newCommand(), c.command)
	case n < 15:
		c.die(ctx)
	default:
		c.write(ctx, c.newWrite("Transaction"), c.transaction)
	}
}

func (c *client) workspace() messages.WSID { return messages.WSID(c.random.IntN(workspaces)) }

// body is unique in its history.
func (c *client) body() string { return fmt.Sprintf("%d.%d", c.id, c.count) }

func (c *client) newWrite(how string) *write {
	return &write{how: how, workspace: c.workspace(), drafts: []draft{c.draft("")}}
}

func (c *client) draft(suffix string) draft {
	d := draft{body: c.body() + suffix, invoices: c.random.IntN(3), receipt: c.random.IntN(2)}
	if c.random.IntN(6) == 0 {
		d.update = messages.Number(1 + c.random.IntN(4+c.count))
	}
	return d
}

// newAppend returns an append of up to three events, or one that was tried before,
// or one that has its id without being it.
func (c *client) newAppend() *write {
	if was := c.names.pick(c.random); was != nil && c.random.IntN(3) == 0 {
		again := *was
		if c.random.IntN(6) == 0 {
			again.drafts = []draft{c.draft("~")}
		}
		return &again
	}
	w := c.newWrite("Append")
	for _, suffix := range []string{"+", "++"}[:max(0, c.random.IntN(5)-2)] {
		w.how = "AppendAll"
		w.drafts = append(w.drafts, c.draft(suffix))
	}
	if c.random.IntN(5) == 0 {
		w.expected = new(messages.WLogOffset(c.random.IntN(2 + c.count)))
	}
	if c.random.IntN(3) > 0 {
		binary.BigEndian.PutUint32(w.id[8:], uint32(c.id))
		binary.BigEndian.PutUint32(w.id[12:], uint32(c.count))
		c.names.add(w)
	}
	return w
}

// write does a write and records what became of it.
func (c *client) write(ctx context.Context, w *write, do func(context.Context, *write) (answer, error)) {
	called := c.tick()
	a, err := survived(func() (answer, error) { return do(ctx, w) })
	c.wrote(called, w, a, err)
	if err != nil {
		c.recover(ctx, err)
	}
}

// survived is a write whose owner may die in it: the store panics in the hands of whoever
// calls it, and nobody ends the transaction.
func survived(do func() (answer, error)) (a answer, err error) {
	defer func() {
		if died := recover(); died != nil {
			err = fmt.Errorf("%w: the owner died: %v", messages.ErrOutcomeUnknown, died)
		}
	}()
	return do()
}

// wrote records the outcome that an error stands for.
func (c *client) wrote(called int64, w *write, a answer, err error) {
	if far, ok := errors.AsType[*messages.RecordAheadError](err); ok {
		a = answer{outcome: ahead, last: far.Last}
		err = nil
	}
	if offset, ok := errors.AsType[*messages.OffsetError](err); ok {
		a = answer{outcome: unexpected, wlog: offset.Got}
		err = nil
	}
	switch {
	case errors.Is(err, messages.ErrDedupMismatch):
		a = answer{outcome: mismatched}
	case errors.Is(err, messages.ErrOutcomeUnknown):
		a = answer{outcome: unknown}
	case err != nil:
		c.refused(c.process, called, w, err)
		return
	}
	c.process = c.answered(c.process, called, w, a)
}

// recover waits where the next try would be refused for the same reason.
func (c *client) recover(ctx context.Context, err error) {
	if errors.Is(err, messages.ErrBusy) {
		_ = c.app.Ready(ctx) // it replays its tail
	}
}
