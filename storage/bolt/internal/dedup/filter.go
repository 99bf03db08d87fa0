package dedup

import (
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
)

// Filter knows, in memory, of most hashes that state.db has no entry with them. It is one for all runs: an id never
// ages out, and a merge only moves entries. What the runs have at an open is read by a goroutine of its own, which
// the first look or the first entry starts. Until it is done, the filter knows nothing, and everything is looked up; for
// ever if it meets damage, or if there is more than the filter has room for.
//
// Entries are added before the transaction that writes them commits. So whoever knows that a transaction has
// committed, and then is told that a hash is absent, knows that the transaction did not write it.
type Filter struct {
	state *boltfile.File
	// ready are the layers once they have all that state.db has; nil before, and when the filter is off.
	ready atomic.Pointer[[]*layer]
	begun atomic.Bool

	// mu guards what is below: of those who add, start and end.
	mu sync.Mutex
	// layers grow by growth from one to the next. left is how many bytes the next ones may take.
	layers []*layer
	left   int
	// complete says that the layers have all, off that there are none for the rest of the time.
	complete, off bool
	// ended says that nothing may be read any more; filled is closed when whoever has begun is done.
	ended  bool
	filled chan struct{}
}

const (
	// firstLayer is for how many entries the first layer is, growth how much larger the next one is.
	firstLayer = 1 << 14
	growth     = 8
	// fillStep is about how many entries are read in one transaction: about 3 ms. A transaction keeps pages that a
	// flush has freed from being used again.
	fillStep = 1 << 16
)

// NewFilter returns a filter of a file that takes at most so many bytes. It must hear of all entries that are written to
// the file from now on.
func NewFilter(state *boltfile.File, size int64) *Filter {
	return &Filter{state: state, left: int(min(size, math.MaxInt/8))}
}

// Absent reports whether it is sure that no entry in state.db has a hash. It never waits. A nil filter is never sure.
func (f *Filter) Absent(hash uint64) bool {
	if f == nil {
		return false
	}
	layers := f.ready.Load()
	if layers == nil {
		f.begin()
		return false
	}
	return !slices.ContainsFunc(*layers, func(l *layer) bool { return l.has(hash) })
}

// Add adds the entries of a transaction that has not committed yet, and may never do so.
func (f *Filter) Add(entries []Entry) {
	if f == nil || len(entries) == 0 {
		return
	}
	// What the runs have is read now, not when all that is added meanwhile is there, too, and would have to be counted twice.
	f.begin()
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.roomFor(len(entries))
	if l == nil {
		return
	}
	l.entries += len(entries)
	for i := range entries {
		l.add(entries[i].Hash)
	}
}

// roomFor returns the layer for the next entries: the last one while it has the bits wanted, then a larger one, and when
// that may not be made, any down to the least bits. Behind that the filter is off.
func (f *Filter) roomFor(entries int) *layer {
	wanted := firstLayer
	if n := len(f.layers); n > 0 {
		last := f.layers[n-1]
		if last.room(wantedBits) >= entries {
			return last
		}
		wanted = growth * (last.bytes() * 8 / wantedBits)
	}
	if l := f.grow(max(wanted, entries), entries); l != nil {
		return l
	}
	for _, l := range f.layers {
		if l.room(leastBits) >= entries {
			return l
		}
	}
	f.turnOff()
	return nil
}

// grow adds a layer with the bits wanted for so many entries, or what may be had; nil if that is too little for the
// least of them.
func (f *Filter) grow(entries, least int) *layer {
	size := min(max(entries/8*wantedBits, lineBytes), f.left)
	size -= size % lineBytes
	if f.off || size == 0 || least > size*8/leastBits {
		return nil
	}
	l := newLayer(size)
	f.left -= l.bytes()
	f.layers = append(slices.Clip(f.layers), l)
	f.publish()
	return l
}

// publish lets others look through the layers if they have all.
func (f *Filter) publish() {
	if f.complete && !f.off {
		layers := f.layers
		f.ready.Store(&layers)
	}
}

func (f *Filter) turnOff() {
	f.off, f.layers = true, nil
	f.ready.Store(nil)
}

// begin starts to read what the runs have, if nobody has yet.
func (f *Filter) begin() {
	if f.begun.Load() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended || f.begun.Swap(true) {
		return
	}
	f.filled = make(chan struct{})
	go f.fill()
}

// Await waits until nothing is read any more, and lets nothing be read from then on.
func (f *Filter) Await() {
	if f == nil {
		return
	}
	f.mu.Lock()
	f.ended = true
	filled := f.filled
	f.mu.Unlock()
	if filled != nil {
		<-filled
	}
}

func (f *Filter) hasEnded() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended
}

// fill reads the hashes of all runs.
func (f *Filter) fill() {
	defer close(f.filled)
	err := f.fillAll()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		// Whoever looks something up meets the damage, and says so.
		f.turnOff()
		return
	}
	f.complete = true
	f.publish()
}

// fillAll reads the first step in the transaction that says how large the layer is. Otherwise a flush in between could
// bring so many times more than it is for that the layer takes every hash for present.
func (f *Filter) fillAll() error {
	var l *layer
	var step uint64
	err := f.state.View(func(tx *bbolt.Tx) error {
		runs, err := LoadRuns(tx)
		entries := runs.entries()
		if err != nil || entries == 0 {
			return err
		}
		if l = f.growFor(entries); l == nil {
			return errTooMany
		}
		step = uint64(LastHash) / uint64(entries/fillStep+1)
		return l.addRuns(tx, &runs, 0, step)
	})
	if err != nil || l == nil {
		return err
	}
	for last := step; last != LastHash; {
		if runtime.Gosched(); f.hasEnded() {
			return storage.ErrClosed
		}
		first := last + 1
		last += min(step, LastHash-last)
		if err := f.fillRange(l, first, last); err != nil {
			return err
		}
	}
	return nil
}

// errTooMany is never returned to anybody.
var errTooMany = errors.New("too many entries")

// growFor adds a layer for what the runs have, nil if there is no room.
func (f *Filter) growFor(entries int) *layer {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.grow(entries, entries)
	if l != nil {
		l.entries = entries
	}
	return l
}

// fillRange adds the hashes from a first to a last one.
func (f *Filter) fillRange(l *layer, first, last uint64) error {
	return f.state.View(func(tx *bbolt.Tx) error {
		runs, err := LoadRuns(tx)
		if err != nil {
			return err
		}
		return l.addRuns(tx, &runs, first, last)
	})
}

// addRuns adds the hashes of all runs from a first to a last one.
func (l *layer) addRuns(tx *bbolt.Tx, runs *Runs, first, last uint64) error {
	for i := range runs.All {
		r := NewRunReader(tx, runs, &runs.All[i])
		r.narrow(first, last)
		if err := l.addRun(&r); err != nil {
			return err
		}
	}
	return nil
}

// addRun adds the hashes that are read of a run.
func (l *layer) addRun(r *RunReader) error {
	for {
		if err := r.Fill(); err != nil || len(r.Entries) == 0 {
			return err
		}
		for _, e := range r.Entries {
			l.add(e.Hash)
		}
		r.Entries = nil
	}
}
