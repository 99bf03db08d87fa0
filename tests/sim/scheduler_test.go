package sim

import (
	"cmp"
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"
)

// task waits for the scheduler: a goroutine at a gate, or the run of a mailbox that
// has not begun.
type task struct {
	key    string
	serial uint64
	// node is whose crash ends the wait, nil if none does.
	node   *node
	start  func()
	resume chan struct{}
	// The task may go on from due on, or when ctx has ended.
	due time.Duration
	ctx context.Context
	// ready, if set, must say so before that: what the task waits for is there. It asks
	// nobody who waits for the scheduler.
	ready func() bool
	// aimed, if set, says that the moment has come for which the run holds the task.
	aimed func() bool
}

// scheduler decides what runs next. Whoever is resumed runs alone, until it and all
// that it has woken wait again.
type scheduler struct {
	random *rand.Rand

	// mu guards what follows: what a task has woken may arrive at its gate while
	// the task itself goes on.
	mu     sync.Mutex
	tasks  []*task // in order of keys, so that the order of arrival does not matter
	timers []*timer
	serial uint64
	// posted is, by goroutine, the mailbox that it has made: the one that it schedules next.
	// Others may make some at the same time.
	posted map[string]string
	// mailboxes has the names of those that were scheduled before, by their work.
	mailboxes map[unsafe.Pointer]string
	// elapsed is how long the run has lasted, skew how far the clock is from it, ahead how far it was at the most.
	elapsed, skew, ahead time.Duration
	// astray says that the clock shows a time that cannot be.
	astray bool
	healed bool

	// last is who ran last; persist is how likely it runs again, and starved is who is
	// passed over for a while.
	last    string
	persist float64
	starved string
}

// gate waits for the scheduler, except in a node that has crashed.
func (s *scheduler) gate(n *node, key string) { s.wait(&task{node: n, key: key}) }

func (s *scheduler) wait(t *task) {
	t.resume = make(chan struct{})
	if s.add(t) {
		<-t.resume
	}
}

// add reports whether the task waits now.
func (s *scheduler) add(t *task) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.node != nil && t.node.dead {
		return false
	}
	s.serial++
	t.serial = s.serial
	i, _ := slices.BinarySearchFunc(s.tasks, t, func(a, b *task) int {
		return cmp.Or(strings.Compare(a.key, b.key), cmp.Compare(a.serial, b.serial))
	})
	s.tasks = slices.Insert(s.tasks, i, t)
	return true
}

func (t *task) eligible(now time.Duration, healed bool) bool {
	if t.ctx != nil && t.ctx.Err() != nil {
		return true
	}
	return t.isReady() && (healed || t.due <= now)
}

func (t *task) isReady() bool { return t.ready == nil || t.ready() }

// anything reports whether something will go on by itself. The caller holds the lock.
func (s *scheduler) anything() bool {
	return len(s.timers) > 0 || slices.ContainsFunc(s.tasks, (*task).isReady)
}

// begin lets a task go on. It must have been removed.
func (t *task) begin() {
	if t.start != nil {
		go t.start()
		return
	}
	close(t.resume)
}

// pick removes the task, or the timer, that is next; nil and nil if nothing can go on
// now.
func (s *scheduler) pick() (*task, *timer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var may []int
	for i, t := range s.tasks {
		if t.aimed != nil && !s.healed && t.aimed() {
			return s.remove(i), nil
		}
		if t.eligible(s.elapsed, s.healed) {
			may = append(may, i)
		}
	}
	due := 0
	for due < len(s.timers) && s.timers[due].due <= s.elapsed {
		due++
	}
	if len(may)+due == 0 {
		return nil, nil
	}
	i := s.choose(may, due)
	if i >= len(may) {
		t := s.timers[i-len(may)]
		s.timers = slices.Delete(s.timers, i-len(may), i-len(may)+1)
		s.last = "timer"
		return nil, t
	}
	return s.remove(may[i]), nil
}

func (s *scheduler) remove(i int) *task {
	t := s.tasks[i]
	s.tasks = slices.Delete(s.tasks, i, i+1)
	s.last = t.key
	return t
}

// choose returns an index into those that may go on, timers last.
func (s *scheduler) choose(may []int, due int) int {
	if s.persist > 0 && s.random.Float64() < s.persist {
		for i, at := range may {
			if s.tasks[at].key == s.last {
				return i
			}
		}
	}
	i := s.random.IntN(len(may) + due)
	if s.starved != "" && i < len(may) && strings.Contains(s.tasks[may[i]].key, s.starved) && s.random.IntN(8) > 0 {
		i = s.random.IntN(len(may) + due)
	}
	return i
}

// skip lets time pass until something can go on, and reports whether there is
// anything.
func (s *scheduler) skip() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := time.Duration(-1)
	for _, t := range s.tasks {
		if t.isReady() && (next < 0 || t.due < next) {
			next = t.due
		}
	}
	if len(s.timers) > 0 && (next < 0 || s.timers[0].due < next) {
		next = s.timers[0].due
	}
	if next < 0 {
		return false
	}
	s.elapsed = max(s.elapsed, next)
	return true
}

// dispatcher hands the mailbox runs of a node's actors to the scheduler.
type dispatcher struct {
	s    *scheduler
	node *node
}

func (d dispatcher) Schedule(f func()) {
	if !d.s.add(&task{node: d.node, key: d.s.mailboxOf(f), start: f}) {
		go f()
	}
}

// created notes that this goroutine will schedule a new mailbox next.
func (s *scheduler) created(key string) {
	by := goroutine()
	s.mu.Lock()
	s.posted[by] = key
	s.mu.Unlock()
}

// mailboxOf returns the name of the mailbox whose work it is: each has one function value as
// long as it lives. Functions cannot be compared; where the value is can.
func (s *scheduler) mailboxOf(work func()) string {
	at := *(*unsafe.Pointer)(unsafe.Pointer(&work))
	s.mu.Lock()
	defer s.mu.Unlock()
	key, known := s.mailboxes[at]
	if !known {
		by := goroutine()
		key = s.posted[by]
		delete(s.posted, by)
		s.mailboxes[at] = key
	}
	return key
}

// Throughput is never reached: a mailbox run waits after each message.
func (d dispatcher) Throughput() int { return 1 << 30 }

// goroutine returns the name of the goroutine that runs.
func goroutine() string {
	var trace [64]byte
	name, _, _ := strings.Cut(string(trace[:runtime.Stack(trace[:], false)]), "[")
	return name
}
