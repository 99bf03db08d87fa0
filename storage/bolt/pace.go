package bolt

import (
	"runtime"
	"time"

	"github.com/partita-go/partita/storage/bolt/internal/queue"
)

// Every writer writes what waits in one transaction, and what a transaction costs
// hardly depends on how much is in it. So each takes its time, as long as somebody is
// about to join and nobody waits for long.

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
func (s *Store) rest(last *queue.Pace) {
	end := last.Ended.Add(min(paceLimit, paceFactor*last.Took))
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
