package raftlog

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/replog"
)

// book is a replica that remembers what it was given.
type book struct {
	mu     sync.Mutex
	at     replog.Position
	bodies []string
	grown  chan struct{}
	// gate, if it is not nil, is what the next entries wait for.
	gate chan struct{}
}

func newBook() *book { return &book{grown: make(chan struct{})} }

func (b *book) Apply(at replog.Position, body []byte) error {
	b.mu.Lock()
	gate := b.gate
	b.mu.Unlock()
	if gate != nil {
		<-gate
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at, b.bodies = at, append(b.bodies, string(body))
	close(b.grown)
	b.grown = make(chan struct{})
	return nil
}

// stop lets the book take nothing, until it is released.
func (b *book) stop() (release func()) {
	gate := make(chan struct{})
	b.mu.Lock()
	b.gate = gate
	b.mu.Unlock()
	return sync.OnceFunc(func() {
		b.mu.Lock()
		b.gate = nil
		b.mu.Unlock()
		close(gate)
	})
}

func (b *book) end() replog.Position {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.at
}

// rig is a cluster that runs, with books.
type rig struct {
	testing.TB
	ctx   context.Context
	c     *cluster
	books map[replog.NodeID]*book
}

func newRig(t testing.TB, c *cluster) *rig {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	r := &rig{TB: t, ctx: ctx, c: c, books: make(map[replog.NodeID]*book)}
	t.Cleanup(func() {
		for id := range r.books {
			r.stop(id)
		}
	})
	for _, id := range nodes {
		if err := r.start(id, newBook()); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func (r *rig) log(id replog.NodeID) *Log {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	return r.c.logs[id]
}

func (r *rig) start(id replog.NodeID, b *book) error {
	r.books[id] = b
	return r.c.Log(r, id).Start(b.end(), b)
}

func (r *rig) stop(id replog.NodeID) {
	r.Helper()
	select {
	case err := <-beside(r.log(id).Close):
		if err != nil {
			r.Errorf("node %s: close: %v", id, err)
		}
	case <-time.After(patience):
		r.Errorf("node %s does not close", id)
	}
}

func (r *rig) await(id replog.NodeID, what string, so func(replog.Leadership) bool) replog.Leadership {
	r.Helper()
	for {
		now, changed := r.log(id).Leadership()
		if so(now) {
			return now
		}
		select {
		case <-changed:
		case <-r.ctx.Done():
			r.Fatalf("node %s: waited in vain for: %s; it is %+v", id, what, now)
		}
	}
}

// beside does something while the test goes on. It answers also if it has failed the test, which ends its goroutine.
func beside(do func() error) <-chan error {
	answer := make(chan error, 1)
	go func() {
		err := errors.New("it has failed the test")
		defer func() { answer <- err }()
		err = do()
	}()
	return answer
}

// answerOf asks raft, and waits for its answer.
func answerOf[F raft.Future](t testing.TB, ask func() F) error {
	t.Helper()
	select {
	case err := <-beside(func() error { return ask().Error() }):
		return err
	case <-time.After(patience):
		t.Fatal("raft has not answered")
		return nil
	}
}

// lead elects a node, and waits until it leads.
func (r *rig) lead(id replog.NodeID) {
	r.Helper()
	for leads := false; !leads; {
		r.c.Elect(r, id)
		r.await(id, "it leads, or another node does", func(l replog.Leadership) bool {
			leads = l.Term != 0
			return leads || l.Leader != "" && l.Leader != id
		})
	}
}

// append writes one entry.
func (r *rig) append(id replog.NodeID, body string) error {
	return r.log(id).Append(r.ctx, r.books[id].end().Head, []byte(body))
}

func (r *rig) must(id replog.NodeID, times int) {
	r.Helper()
	for range times {
		r.write(id, "body")
	}
}

// write writes one entry, once. On a machine that stands still for a while a leader loses the others: it leads again then.
func (r *rig) write(id replog.NodeID, body string) {
	r.Helper()
	prev := r.books[id].end().Head
	for {
		err := r.log(id).Append(r.ctx, prev, []byte(body))
		if err == nil {
			return
		}
		if !disturbed(err) {
			r.Fatalf("node %s: append: %v", id, err)
		}
		r.Logf("node %s: append: %v", id, err)
		r.lead(id)
		if r.books[id].end().Head > prev { // it was there after all
			return
		}
	}
}

// disturbed says that an error may be a busy machine's.
func disturbed(err error) bool {
	return errors.Is(err, replog.ErrNotOwner) || errors.Is(err, messages.ErrOutcomeUnknown)
}

// asOwner does what the owner can do, again if a busy machine has taken the lead from it.
func (r *rig) asOwner(id replog.NodeID, do func() error) error {
	r.Helper()
	for {
		err := do()
		if !disturbed(err) {
			return err
		}
		r.Logf("node %s: %v", id, err)
		r.lead(id)
	}
}

// add adds a node. Whether it votes after an outcome that is unknown is looked up.
func (r *rig) add(owner, id replog.NodeID) error {
	return r.asOwner(owner, func() error {
		err := r.log(owner).Add(r.ctx, id)
		if m := r.log(owner).member(id); errors.Is(err, ErrMember) && m != nil && m.Votes {
			return nil
		}
		return err
	})
}

// catchUp waits until a node has what another one has.
func (r *rig) catchUp(id, with replog.NodeID) {
	r.Helper()
	b := r.books[id]
	for {
		b.mu.Lock()
		head, grown := b.at.Head, b.grown
		b.mu.Unlock()
		if want := r.books[with].end().Head; head >= want {
			return
		}
		select {
		case <-grown:
		case <-r.ctx.Done():
			r.Fatalf("node %s: has %d entries", id, head)
		}
	}
}
