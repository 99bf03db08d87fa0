package rows

import (
	"context"
	"fmt"

	"github.com/partita-go/partita/bench/internal/event"
	"github.com/partita-go/partita/bench/internal/ledger"
	"github.com/partita-go/partita/bench/internal/measure"
	"github.com/partita-go/partita/bench/internal/usage"
)

// limit is what a store can do at best on this disk: one writer puts the bytes of
// whoever waits under the next keys of one bucket, in one transaction. It numbers
// nothing else, checks nothing and indexes nothing.
type limit struct {
	log     *boltLog
	callers []limitCaller
	ledger  *ledger.Ledger
	queue   chan *limitCaller
	closing chan struct{}
	done    chan struct{} // nil until the writer runs
	commits int
	// batch and values are the writer's.
	batch  []*limitCaller
	values [][]byte
}

// limitCaller waits for one event at a time.
type limitCaller struct {
	source *event.Source
	answer chan limitAnswer
}

type limitAnswer struct {
	number uint64
	err    error
}

// maxBatch is how many events a transaction of a partita store takes.
const maxBatch = 8192

func newLimit(s measure.Settings) measure.Row {
	l := &limit{
		callers: make([]limitCaller, s.Callers),
		ledger:  ledger.New(1),
		queue:   make(chan *limitCaller, s.Callers),
		closing: make(chan struct{}),
	}
	for i := range l.callers {
		l.callers[i] = limitCaller{
			source: event.NewSource(i, s.Workspaces),
			answer: make(chan limitAnswer, 1),
		}
	}
	return l
}

func (l *limit) Setup(_ context.Context, dir string) error {
	if err := l.open(dir); err != nil {
		return err
	}
	l.done = make(chan struct{})
	go l.write()
	return nil
}

func (l *limit) open(dir string) error {
	var err error
	l.log, err = openBoltLog(dir)
	return err
}

// write is the only writer.
func (l *limit) write() {
	defer close(l.done)
	for {
		select {
		case first := <-l.queue:
			l.commit(first)
		case <-l.closing:
			return
		}
	}
}

// commit writes the event of a caller and of all that wait behind it.
func (l *limit) commit(first *limitCaller) {
	l.batch, l.values = append(l.batch[:0], first), append(l.values[:0], first.source.Value())
	for waiting := true; waiting && len(l.batch) < maxBatch; {
		select {
		case next := <-l.queue:
			l.batch, l.values = append(l.batch, next), append(l.values, next.source.Value())
		default:
			waiting = false
		}
	}
	number, err := l.log.append(l.values...)
	l.commits++
	for i, caller := range l.batch {
		caller.answer <- limitAnswer{number: number + uint64(i), err: err}
	}
}

// Do leaves its event to the writer. If the context ends first the caller is of no
// more use: the writer may still hold its event.
func (l *limit) Do(ctx context.Context, caller int) error {
	c := &l.callers[caller]
	c.source.Next()
	l.queue <- c // it has a place for each caller
	select {
	case answer := <-c.answer:
		if answer.err != nil {
			return answer.err
		}
		return l.ledger.Acknowledge(0, answer.number)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *limit) Check(ctx context.Context, failed uint64) (string, error) {
	return checkLog(ctx, l.log, l.ledger, failed)
}

// checkLog compares a log with what was acknowledged.
func checkLog(ctx context.Context, log *boltLog, acknowledged *ledger.Ledger, failed uint64) (string, error) {
	stored, err := log.stored(ctx, event.ValueSize)
	if err != nil {
		return "", err
	}
	if err := acknowledged.Check([]uint64{stored}, failed); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d values under the keys 1 to %d, each acknowledged once", stored, stored), nil
}

func (l *limit) Sizes() ([]usage.Size, error) { return l.log.sizes() }

func (l *limit) Note() string {
	return "bbolt " + boltVersion() + ", one bucket, sequential keys, one writer that commits all that wait"
}

func (l *limit) Close(ctx context.Context) error {
	if l.done == nil {
		return nil
	}
	close(l.closing)
	select {
	case <-l.done:
		return l.log.db.Close()
	case <-ctx.Done():
		return fmt.Errorf("the writer did not end: %w", ctx.Err())
	}
}
