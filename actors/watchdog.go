package actors

import (
	"sync"
	"time"
)

// watchdog notices work that does not end. Whoever waits for it cannot: it looks from time to time on the clock's goroutine,
// while there is work. It is safe for concurrent use.
type watchdog struct {
	clock Clock
	// every is how much time is between two looks. Less than 1 means that nobody looks.
	every time.Duration
	// bark is told how long the work has lasted, at least, at each look as soon as that is its limit; and 0 when it has
	// ended after that. The lock is held: no two calls are at the same time.
	bark func(lasts time.Duration)

	mu    sync.Mutex
	busy  bool
	begun uint64
	limit time.Duration
	stall stall
	// barked says that bark was told of the work under way.
	barked bool
	// timer is nil while nobody looks.
	timer Timer
	ended bool
}

// begin says that work has begun which is to end within a limit.
func (w *watchdog) begin(limit time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settle()
	w.busy, w.limit = true, limit
	w.begun++
	w.arm()
}

// end says that the work has ended. It is harmless if there is none.
func (w *watchdog) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settle()
}

// close ends the looks for ever.
func (w *watchdog) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	if w.timer != nil {
		w.timer.Stop()
	}
}

func (w *watchdog) settle() {
	w.busy = false
	if w.barked {
		w.barked = false
		w.bark(0)
	}
}

func (w *watchdog) arm() {
	if w.timer == nil && w.every > 0 && !w.ended {
		w.timer = w.clock.AfterFunc(w.every, w.look)
	}
}

// look finds out whether the work of the last look is still under way.
func (w *watchdog) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = nil
	w.stall.look(w.busy, w.begun)
	if !w.busy {
		return
	}
	if lasts := w.stall.lasts(w.every, w.busy, w.begun); lasts > 0 && lasts+w.every > w.limit {
		w.barked = true
		w.bark(lasts)
	}
	w.arm()
}

// looksUntilAlarm is how often something is found as it was, until that is an alarm.
const looksUntilAlarm = 2

// stall notices what does not get on: somebody looks from time to time whether anything was done since. It needs no
// clock, which somebody could set meanwhile.
type stall struct {
	// busy and done are those of the last look.
	busy bool
	done uint64
	// looks counts those since then which have found the same.
	looks int
}

// look takes note of whether there is something to do, and how much was done by now.
func (s *stall) look(busy bool, done uint64) {
	if !busy || !s.busy || s.done != done {
		*s = stall{busy: busy, done: done}
		return
	}
	s.looks++
}

// lasts returns for how long nothing was done, at least, by looks that come every so often: 0 if that is no alarm, or if
// something was done since the last look.
func (s *stall) lasts(every time.Duration, busy bool, done uint64) time.Duration {
	if !busy || s.done != done || s.looks < looksUntilAlarm {
		return 0
	}
	return time.Duration(s.looks) * every
}
