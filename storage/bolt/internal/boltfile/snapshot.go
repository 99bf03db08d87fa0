package boltfile

import (
	"bytes"
	"sync"

	"go.etcd.io/bbolt"
)

// Snapshot is a read transaction of a file that serves many reads, one after the other, with a cursor for each of the trees
// that they have gone down. To begin a transaction, to find the trees and to make cursors takes longer than the search
// itself.
type Snapshot struct {
	Tx *bbolt.Tx
	// commits are those of the file before it began.
	commits uint64
	cursors []treeCursor
}

type treeCursor struct {
	bucket []byte
	*bbolt.Cursor
}

// SnapshotOf gives a transaction cursors that are made once.
func SnapshotOf(tx *bbolt.Tx) *Snapshot { return &Snapshot{Tx: tx} }

// Cursor returns the cursor of a tree. Whoever asks for it has it until the next one who asks.
func (s *Snapshot) Cursor(bucket []byte) *bbolt.Cursor {
	for i := range s.cursors {
		if at := &s.cursors[i]; bytes.Equal(at.bucket, bucket) {
			return at.Cursor
		}
	}
	c := s.Tx.Bucket(bucket).Cursor()
	s.cursors = append(s.cursors, treeCursor{bucket: bucket, Cursor: c})
	return c
}

// maxIdle is how many snapshots wait for the next read at most.
const maxIdle = 16

// idle are the snapshots of a file that nobody reads, all of the last commit. None is there while a write transaction
// begins, which frees the pages that no snapshot has, and while one commits: a commit may have to map the file anew,
// which waits for all transactions.
type idle struct {
	mu        sync.Mutex
	snapshots []*Snapshot
	// commits counts what may have changed the file, and blocked who begins, commits or closes it.
	commits, blocked uint64
}

// take returns a snapshot of the last commit, or, with none waiting, which commit the next one is of at least.
func (i *idle) take() (s *Snapshot, commits uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if n := len(i.snapshots) - 1; n >= 0 {
		s, i.snapshots = i.snapshots[n], i.snapshots[:n]
	}
	return s, i.commits
}

// put lets a snapshot wait for the next read, if it is of the last commit.
func (i *idle) put(s *Snapshot) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if s.commits != i.commits || i.blocked > 0 || len(i.snapshots) == maxIdle {
		return false
	}
	i.snapshots = append(i.snapshots, s)
	return true
}

// block lets no snapshot wait from now on until release. Those that have waited are the caller's.
func (i *idle) block() (waited []*Snapshot) {
	i.mu.Lock()
	defer i.mu.Unlock()
	waited, i.snapshots = i.snapshots, nil
	i.blocked++
	return waited
}

func (i *idle) release() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.blocked--
	i.commits++
}

// withoutIdle runs fn while no snapshot waits.
func (f *File) withoutIdle(fn func() error) error {
	f.endIdle()
	defer f.idle.release()
	return fn()
}

// endIdle ends the snapshots that wait, and lets none wait until release. On a poisoned file they are left: bbolt's locks
// may be taken.
func (f *File) endIdle() {
	for _, s := range f.idle.block() {
		if f.poisoned.Load() == nil {
			f.Rollback(s.Tx)
		}
	}
}

// Read runs fn with a snapshot of the last commit. It is [File.View] for reads that are short, and many.
func (f *File) Read(fn func(*Snapshot) error) error {
	if damage := f.poisoned.Load(); damage != nil {
		return damage
	}
	s, commits := f.idle.take()
	if s == nil {
		tx, err := f.Begin(false)
		if err != nil {
			return err
		}
		s = &Snapshot{Tx: tx, commits: commits}
	}
	err := guarded(func() error { return fn(s) })
	if caught(err) || !f.idle.put(s) {
		f.Rollback(s.Tx)
	}
	return f.explain(err)
}
