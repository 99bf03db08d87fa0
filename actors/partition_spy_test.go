package actors_test

import (
	"fmt"
	"sync"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
)

// spy is the observer of every rig: it counts what happens to messages, and can
// stop an actor in front of one.
type spy struct {
	mu      sync.Mutex
	counts  map[string]int
	changed chan struct{}
	onTaken func(actors.Key, any)
}

var _ actors.Observer = (*spy)(nil)

func newSpy() *spy { return &spy{counts: make(map[string]int), changed: make(chan struct{})} }

func (s *spy) Posted(k actors.Key, m any) { s.note("posted", k, m) }

func (s *spy) Taken(k actors.Key, m any) {
	s.note("taken", k, m)
	s.mu.Lock()
	f := s.onTaken
	s.mu.Unlock()
	if f != nil {
		f(k, m)
	}
}

func (s *spy) Handled(k actors.Key, m any) { s.note("handled", k, m) }

func (s *spy) note(what string, k actors.Key, m any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[counter(what, k.Group, m)]++
	close(s.changed)
	s.changed = make(chan struct{})
}

func counter(what, group string, m any) string { return fmt.Sprintf("%s %s %T", what, group, m) }

// count returns how often something happened to messages of a type in all actors
// of a group.
func (s *spy) count(what, group string, m any) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[counter(what, group, m)]
}

// do calls f, on the actor's goroutine, whenever a message is taken.
func (s *spy) do(f func(actors.Key, any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onTaken = f
}

// eventually waits until a condition holds, looking again at every message.
func (r *rig) eventually(what string, holds func() bool) {
	r.t.Helper()
	for {
		r.spy.mu.Lock()
		changed := r.spy.changed
		r.spy.mu.Unlock()
		if holds() {
			return
		}
		select {
		case <-changed:
		case <-time.After(time.Millisecond): // what no message tells
		case <-r.ctx.Done():
			r.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// queued waits until so many requests wait in the lane of the first partition, or
// for room in it.
func (r *rig) queued(n int) {
	r.t.Helper()
	r.eventually(fmt.Sprintf("%d requests", n), func() bool { return r.partitions[0].Queued() == n })
}

// handled waits until so many messages of m's type were handled by partitions.
func (r *rig) handled(n int, m messages.PartitionMessage) {
	r.t.Helper()
	r.eventually(fmt.Sprintf("%d %T handled", n, m), func() bool { return r.spy.count("handled", "partition", m) >= n })
}
