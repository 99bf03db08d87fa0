package raftlog

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/replog"
)

// Log is one node's side of a log.
type Log struct {
	o Options
	// turn is taken by the append that is under way: one at a time.
	turn chan struct{}
	// closing is closed when Close begins, down when raft was stopped before that.
	closing, down chan struct{}
	// bell says that raft may have another state.
	bell chan raft.Observation
	// shut stops raft, once.
	shut func() raft.Future
	// routines are this log's own goroutines, asked what waits for an answer of raft's.
	routines, asked sync.WaitGroup

	disk      *files
	raft      *raft.Raft
	transport *transport
	backlog   *backlog
	replica   replog.Replica

	mu      sync.Mutex
	started bool
	closed  bool
	state   replog.Leadership
	changed chan struct{}
	// term is raft's while state.Term is not 0.
	term uint64
	// beginning says that begin is under way, handing that the leadership is being given away.
	beginning, handing bool
	// at is where the replica is, past where it was, by the heads.
	at   replog.Position
	past [pastPositions]replog.Position
	// trimmed is up to where the replica needs nothing any more; grown is closed, and made anew, when that grows.
	trimmed uint64
	grown   chan struct{}
	// keeps are the entries to be kept for other nodes.
	keeps map[replog.NodeID]kept
	// next is the question of readers that is not asked yet, asking says that one is.
	next   *question
	asking bool
}

var _ replog.Log = (*Log)(nil)

// New returns a node's side of a log, to be started. It touches no file. ErrOptions.
func New(o Options) (*Log, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := o.checkPort(); err != nil {
		return nil, err
	}
	return &Log{
		o:       o,
		turn:    make(chan struct{}, 1),
		closing: make(chan struct{}),
		down:    make(chan struct{}),
		bell:    make(chan raft.Observation, 1),
		changed: make(chan struct{}),
		grown:   make(chan struct{}),
		backlog: newBacklog(),
	}, nil
}

// Start implements [replog.Log]. [storage.ErrNotFound] if no log was created, [storage.ErrLocked] if it is open,
// [storage.ErrForeign] if it is another one. ErrDiverged if the log has another entry where the replica is.
func (l *Log) Start(from replog.Position, r replog.Replica) error {
	l.mu.Lock()
	wrong := l.started || l.closed
	l.started = true
	l.replica = r
	l.moveTo(from)
	l.mu.Unlock()
	if wrong {
		return fmt.Errorf("%w: %s", storage.ErrLocked, l.o.Dir)
	}
	if err := l.open(from); err != nil {
		return err
	}
	l.routines.Go(l.watch)
	l.routines.Go(l.watchSilence)
	return nil
}

// open opens the files, and lets raft run. It leaves nothing behind if it fails.
func (l *Log) open(from replog.Position) error {
	disk, err := openDisk(l.o)
	if err != nil {
		return err
	}
	if err := disk.fit(from); err != nil {
		return errors.Join(err, disk.close())
	}
	known, err := newPeers(l.o, disk, l.stop)
	if err != nil {
		return errors.Join(err, disk.close())
	}
	t, err := newTransport(l.o, known)
	if err != nil {
		return errors.Join(err, disk.close())
	}
	t.follows = l.follows
	l.disk, l.transport = disk, t
	l.routines.Go(func() { l.admit(t) })
	if err := l.runRaft(); err != nil {
		err = errors.Join(err, t.Close())
		l.routines.Wait()
		return errors.Join(err, disk.close())
	}
	return nil
}

// runRaft starts raft. It may end the goroutine that runs it, as it may end its own: see guard.
func (l *Log) runRaft() error {
	g := &guard{fail: l.stop}
	g.wrap(l.o, l.disk)
	var r *raft.Raft
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%w: %v", ErrDisk, p)
			}
		}()
		r, err = raft.NewRaft(l.o.raftConfig(), &machine{l: l}, &cache{guard: g, backlog: l.backlog}, g, l.disk.snapshots, l.transport)
	}()
	<-ended
	if r == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		return errors.Join(err, l.state.Stopped)
	}
	r.RegisterObserver(raft.NewObserver(l.bell, false, nil))
	l.mu.Lock()
	l.raft, l.shut = r, sync.OnceValue(r.Shutdown)
	stopped := l.state.Stopped
	l.mu.Unlock()
	if stopped != nil {
		l.shut()
	}
	return nil
}

// stop ends this node's part in the log, as if it had ended. It may be called by raft's goroutines.
func (l *Log) stop(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.Stopped != nil || l.closed {
		return
	}
	now := l.state
	now.Term, now.Leader, now.Stopped = 0, "", cause
	l.become(now)
	close(l.down)
	l.o.Logger.Error("this node's part in the log has stopped", lines(l.o, cause)...)
	if l.raft != nil {
		l.shut()
		// Whoever asks this node is told at once.
		l.routines.Go(func() { _ = l.transport.Close() })
	}
}

// become tells a new state, if it is one. The caller holds the lock.
func (l *Log) become(now replog.Leadership) {
	if was := l.state; now.Term != was.Term || now.Leader != was.Leader || (now.Stopped == nil) != (was.Stopped == nil) {
		l.state = now
		close(l.changed)
		l.changed = make(chan struct{})
	}
}

// Leadership implements [replog.Log]. A term is the index in raft's log behind which it begins.
func (l *Log) Leadership() (replog.Leadership, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state, l.changed
}

// mustLead returns nil if the node may write and read, as far as it knows. The caller holds the lock.
func (l *Log) mustLead() error {
	switch {
	case l.closed:
		return storage.ErrClosed
	case l.state.Stopped != nil:
		return fmt.Errorf("%w: its replica has stopped: %w", replog.ErrNotOwner, l.state.Stopped)
	case l.state.Term == 0:
		return replog.ErrNotOwner
	}
	return nil
}

// wait waits for an answer of raft's; the caller has added it to asked. If it returns an error of its own, known is false,
// and the answer may never come.
func (l *Log) wait(ctx context.Context, f raft.Future) (known bool, err error) {
	answer := make(chan error, 1)
	go func() {
		defer l.asked.Done()
		answer <- f.Error()
	}()
	select {
	case err := <-answer:
		return true, err
	case <-ctx.Done():
		return false, ctx.Err()
	case <-l.closing:
		return false, errClosing
	case <-l.down:
		now, _ := l.Leadership()
		return false, now.Stopped
	}
}

// enter adds a question to asked, unless the log is being closed.
func (l *Log) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.asked.Add(1)
	return true
}

// Trim implements [replog.Log].
func (l *Log) Trim(index uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if index > l.trimmed {
		l.trimmed = index
		close(l.grown)
		l.grown = make(chan struct{})
	}
}

// Close implements [replog.Log]. It waits until raft knows what becomes of an entry that is under way, which takes half a
// failover at most, so that another node finds it there or not.
func (l *Log) Close() error {
	l.mu.Lock()
	first := !l.closed
	if first {
		l.closed = true
		now := l.state
		now.Term, now.Leader = 0, ""
		l.become(now)
		close(l.closing)
	}
	running := l.raft != nil
	l.mu.Unlock()
	var err error
	if first && running {
		l.settle()
		_ = l.transport.Close()
		_ = l.shut().Error()
		l.routines.Wait()
		err = l.disk.close()
	}
	return err
}

// settle waits until raft has answered everything. Raft that was stopped forgets some answers.
func (l *Log) settle() {
	settled := make(chan struct{})
	go func() {
		l.asked.Wait()
		close(settled)
	}()
	select {
	case <-settled:
	case <-l.down:
	}
}
