package bolt

import (
	"runtime"
	"time"
)

// Every writer writes what waits in one transaction, and what a transaction costs
// hardly depends on how much is in it. So each takes its time, as long as somebody is
// about to join and nobody waits for long.

// pace remembers a writer's last transaction.
type pace struct {
	// ended is when it ended, took how long it took.
	ended time.Time
	took  time.Duration
}

// run runs a transaction.
func (p *pace) run(transaction func() error) error {
	begin := time.Now()
	err := transaction()
	p.ended = time.Now()
	p.took = p.ended.Sub(begin)
	return err
}

// gatherYields is how often in a row a writer lets others run without a request
// coming of it before it believes that none is on its way.
const gatherYields = 16

// nextRequest returns a request that waits, nil if there is none. Those who were answered
// by the last commit, or whose partition was, come back at once: the processors are
// left to them for up to half the time that a commit takes. A caller alone is not
// made to wait: when nobody can run, letting others run takes no time.
func nextRequest[R any](p *pace, requests <-chan *R) *R {
	for range gatherYields {
		select {
		case r := <-requests:
			return r
		default:
		}
		if time.Since(p.ended) > p.took/2 {
			return nil
		}
		runtime.Gosched()
	}
	return nil
}

// A flush rewrites each page of state.db that has a key of it, so that the fewer and
// larger they are the less is written; and between them processors and disk are left
// to appends.
const (
	// paceFactor is how much longer than a transaction the pause after it is.
	paceFactor = 4
	// paceLimit is the longest pause.
	paceLimit = 2 * time.Second
	// paceStep is how often a pause looks whether it should end early. Commits end
	// meanwhile if anybody appends, or the disk is so slow that it had better not wait.
	paceStep = 10 * time.Millisecond
	// A pause ends when what is not flushed takes this part of what it may take, of
	// the events or the records of one partition or of the memory of all,
	pacePart = 2
	// or when one partition has so many events: with several numbers each it is not
	// far from being busy by its default settings.
	paceEvents = 16384
)

// paceYield is how many entries a flush puts before it lets others run: about a millisecond.
const paceYield = 1024

// yield lets others run now and then, while i counts up, unless the flush is wanted soon. The
// runtime takes the processor from a flush after 10 ms only, and who waits for it waits as long
// at every turn.
func (s *Store) yield(i int) {
	if i%paceYield == 0 && !s.pressed() {
		runtime.Gosched()
	}
}

// rest pauses until it is time for the flush after the last one, or nobody appends any more.
func (s *Store) rest(last *pace) {
	end := last.ended.Add(min(paceLimit, paceFactor*last.took))
	busy := true
	for left := time.Until(end); left > 0 && busy && !s.pressed(); left = time.Until(end) {
		lsn := s.lastLSN.Load()
		timer := time.NewTimer(min(left, paceStep))
		select {
		case <-timer.C:
		case <-s.closing:
			timer.Stop()
			return
		}
		busy = s.lastLSN.Load() != lsn
	}
}

// pressed reports whether tails are so long that they must be flushed soon.
func (s *Store) pressed() bool {
	bytes, events := s.options.TailBytes/pacePart, min(s.options.TailEvents/pacePart, paceEvents)
	if s.tailBytes.Load() > bytes {
		return true
	}
	// No partition has more than all of them.
	if s.tailEvents.Load() <= int64(events) && s.rowBytes.Load() <= bytes {
		return false
	}
	for i := range s.partitions {
		p := &s.partitions[i]
		p.mu.RLock()
		long := p.failed == nil && (p.tail.len() > events || p.tail.size.rows > bytes)
		p.mu.RUnlock()
		if long {
			return true
		}
	}
	return false
}
