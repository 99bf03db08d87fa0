package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// dawn is when every run begins: when the clock of a bubble does.
var dawn = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// timer is one call that a clock owes.
type timer struct {
	s      *scheduler
	node   *node
	due    time.Duration
	serial uint64
	f      func()
}

// clock is a node's: what it shows can step, but how long something lasts does not
// depend on that, as with a real one.
type clock struct {
	s    *scheduler
	node *node
}

var _ actors.Clock = clock{}

func (c clock) Now() time.Time {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.s.astray && !c.s.healed {
		return dawn.Add(c.s.elapsed+c.s.skew).AddDate(290, 0, 0)
	}
	return dawn.Add(c.s.elapsed + c.s.skew)
}

func (c clock) AfterFunc(d time.Duration, f func()) actors.Timer {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &timer{s: s, node: c.node, f: f, due: s.elapsed + max(0, d)}
	if c.node != nil && c.node.dead {
		return t
	}
	s.serial++
	t.serial = s.serial
	i, _ := slices.BinarySearchFunc(s.timers, t, func(a, b *timer) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.serial, b.serial))
	})
	s.timers = slices.Insert(s.timers, i, t)
	return t
}

// Stop implements [actors.Timer].
func (t *timer) Stop() bool {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	i := slices.Index(t.s.timers, t)
	if i < 0 {
		return false
	}
	t.s.timers = slices.Delete(t.s.timers, i, i+1)
	return true
}

func (s *sim) stepClock() {
	d, kind := time.Duration(1+s.random.IntN(200_000))*time.Microsecond, faultClockJump
	if s.rules.strides && s.random.IntN(2) == 0 {
		d = time.Duration(1+s.random.IntN(20)) * time.Hour
	}
	// Rather ahead than back, so that days go by.
	if s.random.IntN(5) < 2 || s.skew > farthest {
		d, kind = -d, faultClockBack
	}
	s.notef("the clock steps by %v", d)
	for _, n := range s.live {
		for i := range n.partitions {
			s.hit(kind, n, messages.PartitionID(i))
		}
		n.hitLanes(kind)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skew += d
	s.ahead = max(s.ahead, s.skew)
	s.astray = !s.astray && s.random.IntN(4) == 0
}

// checkTimes checks that no event of a batch has a time of when the clock was astray.
func (s *sim) checkTimes(b *storage.Batch) {
	for i := range b.Events {
		if at := b.Events[i].RegisteredAt.Time(); at.After(dawn.AddDate(1, 0, 0)) {
			s.failf("partition %d: an event is registered at %v", b.Partition, at)
		}
	}
}
