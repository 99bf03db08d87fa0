package dedup

import (
	"errors"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// How runs are merged. A flush adds a run, and runs of about the same size are
// merged as soon as there are FanIn of them, so that a lookup asks few and an
// entry is rewritten once for each factor FanIn that the store grows. A merge
// goes on piece by piece, hash after hash, with each flush: it is done before the
// next one of its size begins, and no flush pays for a big one.
//
// A merge that meets damage stays where it is, and its runs as they are. It is as if
// they were not there for the merges of the others, so that each damage keeps the runs
// of one merge at most.
const (
	// FanIn is how many runs of a class are merged.
	FanIn = 3
	// smallRun is up to how many entries runs are of one class: those of small
	// flushes are gathered first.
	smallRun = 4096
	// A flush moves each merge on by mergePace entries for each of its own, and by
	// mergeLeast at the least.
	mergePace  = 6
	mergeLeast = 4096
)

// Class is the same for runs of about the same size.
func (r *Run) Class() int {
	class := 0
	for n := r.entries / smallRun; n > 0; n /= FanIn {
		class++
	}
	return class
}

// Writer changes the runs in a transaction of state.db.
type Writer struct {
	Runs
	bucket *bbolt.Bucket
	arena  *boltfile.ByteArena
	stuck  StuckMerges
}

// StuckMerges are the merges that have met damage, by the serial of the run that is
// being filled.
type StuckMerges map[uint64]bool

// Put adds the entries of a flush as a run, and moves the merges on but for those
// that are known to be stuck: to meet their damage with each flush would cost, and say
// nothing new. It returns those that are stuck now, if the transaction commits.
func Put(tx *bbolt.Tx, arena *boltfile.ByteArena, entries []Entry, stuck StuckMerges) (StuckMerges, error) {
	runs, err := LoadRuns(tx)
	if err != nil {
		return nil, err
	}
	w := &Writer{Runs: runs, bucket: tx.Bucket(format.BucketDedup), arena: arena, stuck: make(StuckMerges)}
	maps.Copy(w.stuck, stuck)
	w.bucket.FillPercent = boltfile.LogFill
	slices.SortFunc(entries, CompareEntries)
	run := w.add(uint64(len(entries)))
	run.Through = LastHash
	if err := w.putBlocks(run.Serial, 0, LastHash, entries); err != nil {
		return nil, err
	}
	// Those under way come first: they may turn out to be stuck.
	pace, begun := max(mergeLeast, mergePace*len(entries)), w.next
	if err := w.mergeOn(0, pace); err != nil {
		return nil, err
	}
	w.startMerges()
	if err := w.mergeOn(begun, pace); err != nil {
		return nil, err
	}
	return w.stuck, tx.Bucket(format.BucketHeader).Put(format.KeyDedup, w.encode())
}

// add adds a run that has nothing yet.
func (w *Writer) add(entries uint64) *Run {
	w.All = append(w.All, Run{Serial: w.next, entries: entries})
	w.next++
	return &w.All[len(w.All)-1]
}

// putBlocks writes the blocks of a run that answer for the hashes from first to
// last. Entries of equal hash stay in one block.
func (w *Writer) putBlocks(serial, first, last uint64, entries []Entry) error {
	for {
		n := min(BlockEntries, len(entries))
		for n > 0 && n < len(entries) && entries[n].Hash == entries[n-1].Hash {
			n++
		}
		end := last
		if n < len(entries) {
			end = entries[n-1].Hash
		}
		key := AppendKey(make([]byte, 0, keyLen), serial, end)
		if err := w.bucket.Put(key, appendBlock(w.arena.Reserve(BlockLen(n)), key, first, entries[:n])); err != nil {
			return err
		}
		if end == last {
			return nil
		}
		entries, first = entries[n:], end+1
	}
}

// startMerges begins a merge of each class that has enough runs and is not being
// merged yet. Runs of a merge that is stuck do not count.
func (w *Writer) startMerges() {
	idle := make(map[int][]int)
	busy := make(map[int]bool)
	top := 0
	for i := range w.All {
		r := &w.All[i]
		class := r.Class()
		top = max(top, class)
		switch {
		case r.Into != 0:
			busy[class] = busy[class] || !w.stuck[r.Into]
		case r.Through == LastHash:
			idle[class] = append(idle[class], i)
		}
	}
	for class := 0; class <= top; class++ {
		if busy[class] || len(idle[class]) < FanIn {
			continue
		}
		total := uint64(0)
		for _, i := range idle[class] {
			total += w.All[i].entries
		}
		serial := w.add(total).Serial
		for _, i := range idle[class] {
			w.All[i].Into = serial
		}
	}
}

// mergeOn moves each merge into a run from a serial on by about as many entries as
// given. One that meets damage stays where it is.
func (w *Writer) mergeOn(from uint64, entries int) error {
	for i := range w.All {
		to := &w.All[i]
		if to.Serial < from || to.Through == LastHash || w.stuck[to.Serial] {
			continue
		}
		err := w.mergeStep(to, entries)
		if errors.Is(err, storage.ErrDamaged) {
			w.stuck[to.Serial] = true
			continue
		}
		if err != nil {
			return err
		}
	}
	left := make([]Run, 0, len(w.All))
	for _, r := range w.All {
		if r.Into == 0 || w.Run(r.Into).Through != LastHash {
			left = append(left, r)
		}
	}
	w.All = left
	return nil
}

// mergeStep moves the next hashes, about as many entries as given, from the runs
// that are being merged into the one that they are merged into.
func (w *Writer) mergeStep(to *Run, entries int) error {
	first := uint64(0)
	if to.Through != 0 {
		first = to.Through + 1
	}
	last := uint64(LastHash)
	if share := float64(entries) / float64(to.entries); share < 1 {
		if step := uint64(share * (1 << 64)); step < LastHash-first {
			last = first + step
		}
	}
	var lists [][]Entry
	var done [][]byte
	for i := range w.All {
		if w.All[i].Into != to.Serial {
			continue
		}
		list, keys, err := w.readRange(w.All[i].Serial, first, last)
		if err != nil {
			return err
		}
		lists, done = append(lists, list), append(done, keys...)
	}
	for _, key := range done {
		if err := w.bucket.Delete(key); err != nil {
			return err
		}
	}
	to.Through = last
	return w.putBlocks(to.Serial, first, last, mergeEntries(lists))
}

// readRange returns the entries of a run from a first to a last hash, and the keys of
// the blocks that have none behind.
func (w *Writer) readRange(serial, first, last uint64) (list []Entry, done [][]byte, err error) {
	c := w.bucket.Cursor()
	for next, more := first, true; more; {
		b, err := SeekBlock(c, serial, next)
		if err != nil {
			return nil, nil, err
		}
		if list, err = appendRange(list, &b, next, last); err != nil {
			return nil, nil, damagedBlock(serial, next, err)
		}
		if b.Last <= last {
			done = append(done, AppendKey(make([]byte, 0, keyLen), serial, b.Last))
		}
		more, next = b.Last < last, b.Last+1
	}
	return list, done, nil
}

// appendRange appends the entries of a block from a first to a last hash.
func appendRange(list []Entry, b *Block, first, last uint64) ([]Entry, error) {
	for slot := b.SlotOf(first); slot <= b.SlotOf(min(last, b.Last)); slot++ {
		entries, err := b.slot(slot)
		if err != nil {
			return nil, err
		}
		for i := range entries.len() {
			if e := entries.at(i); e.Hash >= first && e.Hash <= last {
				list = append(list, e)
			}
		}
	}
	return list, nil
}

// mergeEntries merges lists that are in order.
func mergeEntries(lists [][]Entry) []Entry {
	n := 0
	for _, list := range lists {
		n += len(list)
	}
	merged := make([]Entry, 0, n)
	for len(merged) < n {
		least := -1
		for i, list := range lists {
			if len(list) > 0 && (least < 0 || CompareEntries(list[0], lists[least][0]) < 0) {
				least = i
			}
		}
		merged = append(merged, lists[least][0])
		lists[least] = lists[least][1:]
	}
	return merged
}
