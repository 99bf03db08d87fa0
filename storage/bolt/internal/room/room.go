// Package room says whether appends find room.
package room

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
)

const (
	// Every is how often somebody looks for room when there was none.
	Every = time.Second
	// ProbeName is the file with which the disk is tried.
	ProbeName = "room" + boltfile.NewFilePrefix + "probe"
)

// Room is whether appends find room. When one has found none there may be no other one for long: whoever is told that
// there is no room goes elsewhere. So somebody looks. It is safe for concurrent use.
type Room struct {
	hasRoom func() bool
	closing <-chan struct{}
	// full is the ErrFull of the last commit, nil if it found room.
	full atomic.Pointer[error]
	// looks says that somebody looks, looking ends with that.
	looks   atomic.Bool
	looking sync.WaitGroup
}

// New returns the room of a store that takes appends until closing is closed. hasRoom reports whether an append would find
// room.
func New(hasRoom func() bool, closing <-chan struct{}) *Room {
	return &Room{hasRoom: hasRoom, closing: closing}
}

// Note takes what became of a commit.
func (r *Room) Note(err error) {
	switch {
	case errors.Is(err, storage.ErrFull):
		r.full.Store(&err)
		if r.looks.CompareAndSwap(false, true) {
			r.looking.Go(r.look)
		}
	case err == nil && r.full.Load() != nil:
		r.full.Store(nil)
	}
}

// Full returns the ErrFull of the last commit, nil if it found room or there is some now.
func (r *Room) Full() error {
	if full := r.full.Load(); full != nil {
		return *full
	}
	return nil
}

// Await waits until nobody looks any more.
func (r *Room) Await() { r.looking.Wait() }

// look looks until there is room, or an append has found some.
func (r *Room) look() {
	tick := time.NewTicker(Every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-r.closing:
			return
		}
		full := r.full.Load()
		if full != nil && (!r.hasRoom() || !r.full.CompareAndSwap(full, nil)) {
			continue
		}
		r.looks.Store(false)
		if r.full.Load() == nil || !r.looks.CompareAndSwap(false, true) {
			return
		}
	}
}

// Try writes as much as log.wal grows by to a file of its own, and removes that.
func Try(d *boltfile.Directory) error {
	err := d.Remove(ProbeName) // a crash may have left one
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := d.MakeFile(ProbeName, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, wal.Chunk))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close(), d.Remove(ProbeName))
}
