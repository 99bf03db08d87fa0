package queue

import (
	"runtime"
	"time"
)

// Pace remembers a writer's last transaction.
type Pace struct {
	// Ended is when it ended, took how long it took.
	Ended time.Time
	Took  time.Duration
}

// Run runs a transaction.
func (p *Pace) Run(transaction func() error) error {
	begin := time.Now()
	err := transaction()
	p.Ended = time.Now()
	p.Took = p.Ended.Sub(begin)
	return err
}

// gatherYields is how often in a row a writer lets others run without a request
// coming of it before it believes that none is on its way.
const gatherYields = 16

// Next returns a request that waits, nil if there is none. Those who were answered
// by the last commit, or whose partition was, come back at once: the processors are
// left to them for up to half the time that a commit takes. A caller alone is not
// made to wait: when nobody can run, letting others run takes no time.
func Next[R any](p *Pace, requests <-chan *R) *R {
	for range gatherYields {
		select {
		case r := <-requests:
			return r
		default:
		}
		if time.Since(p.Ended) > p.Took/2 {
			return nil
		}
		runtime.Gosched()
	}
	return nil
}
