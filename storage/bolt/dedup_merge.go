package bolt

import (
	"errors"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage"
)

// How runs are merged. A flush adds a run, and runs of about the same size are
// merged as soon as there are dedupFanIn of them, so that a lookup asks few and an
// entry is rewritten once for each factor dedupFanIn that the store grows. A merge
// goes on piece by piece, hash after hash, with each flush: it is done before the
// next one of its size begins, and no flush pays for a big one.
//
// A merge that meets damage stays where it is, and its runs as they are. It is as if
// they were not there for the merges of the others, so that each damage keeps the runs
// of one merge at most.
const (
	// dedupFanIn is how many runs of a class are merged.
	dedupFanIn = 3
	// dedupSmallRun is up to how many entries runs are of one class: those of small
	// flushes are gathered first.
	dedupSmallRun = 4096
	// A flush moves each merge on by mergePace entries for each of its own, and by
	// mergeLeast at the least.
	mergePace  = 6
	mergeLeast = 4096
)

// class is the same for runs of about the same size.
func (r *dedupRun) class() int {
	class := 0
	for n := r.entries / dedupSmallRun; n > 0; n /= dedupFanIn {
		class++
	}
	return class
}

// dedupWriter changes the runs in a transaction of state.db.
type dedupWriter struct {
	dedupRuns
	bucket *bbolt.Bucket
	arena  *byteArena
	stuck  stuckMerges
}

// stuckMerges are the merges that have met damage, by the serial of the run that is
// being filled.
type stuckMerges map[uint64]bool

// putDedup adds the entries of a flush as a run, and moves the merges on but for those
// that are known to be stuck: to meet their damage with each flush would cost, and say
// nothing new. It returns those that are stuck now, if the transaction commits.
func putDedup(tx *bbolt.Tx, arena *byteArena, entries []dedupEntry, stuck stuckMerges) (stuckMerges, error) {
	runs, err := loadDedupRuns(tx)
	if err != nil {
		return nil, err
	}
	w := &dedupWriter{dedupRuns: runs, bucket: tx.Bucket(bucketDedup), arena: arena, stuck: make(stuckMerges)}
	maps.Copy(w.stuck, stuck)
	w.bucket.FillPercent = logFill
	slices.SortFunc(entries, compareEntries)
	run := w.add(uint64(len(entries)))
	run.through = lastHash
	if err := w.putBlocks(run.serial, 0, lastHash, entries); err != nil {
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
	return w.stuck, tx.Bucket(bucketHeader).Put(keyDedup, w.encode())
}

// add adds a run that has nothing yet.
func (w *dedupWriter) add(entries uint64) *dedupRun {
	w.runs = append(w.runs, dedupRun{serial: w.next, entries: entries})
	w.next++
	return &w.runs[len(w.runs)-1]
}

// putBlocks writes the blocks of a run that answer for the hashes from first to
// last. Entries of equal hash stay in one block.
func (w *dedupWriter) putBlocks(serial, first, last uint64, entries []dedupEntry) error {
	for {
		n := min(dedupBlockEntries, len(entries))
		for n > 0 && n < len(entries) && entries[n].hash == entries[n-1].hash {
			n++
		}
		end := last
		if n < len(entries) {
			end = entries[n-1].hash
		}
		key := appendDedupKey(make([]byte, 0, dedupKeyLen), serial, end)
		if err := w.bucket.Put(key, appendDedupBlock(w.arena.reserve(dedupBlockLen(n)), key, first, entries[:n])); err != nil {
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
func (w *dedupWriter) startMerges() {
	idle := make(map[int][]int)
	busy := make(map[int]bool)
	top := 0
	for i := range w.runs {
		r := &w.runs[i]
		class := r.class()
		top = max(top, class)
		switch {
		case r.into != 0:
			busy[class] = busy[class] || !w.stuck[r.into]
		case r.through == lastHash:
			idle[class] = append(idle[class], i)
		}
	}
	for class := 0; class <= top; class++ {
		if busy[class] || len(idle[class]) < dedupFanIn {
			continue
		}
		total := uint64(0)
		for _, i := range idle[class] {
			total += w.runs[i].entries
		}
		serial := w.add(total).serial
		for _, i := range idle[class] {
			w.runs[i].into = serial
		}
	}
}

// mergeOn moves each merge into a run from a serial on by about as many entries as
// given. One that meets damage stays where it is.
func (w *dedupWriter) mergeOn(from uint64, entries int) error {
	for i := range w.runs {
		to := &w.runs[i]
		if to.serial < from || to.through == lastHash || w.stuck[to.serial] {
			continue
		}
		err := w.mergeStep(to, entries)
		if errors.Is(err, storage.ErrDamaged) {
			w.stuck[to.serial] = true
			continue
		}
		if err != nil {
			return err
		}
	}
	left := make([]dedupRun, 0, len(w.runs))
	for _, r := range w.runs {
		if r.into == 0 || w.run(r.into).through != lastHash {
			left = append(left, r)
		}
	}
	w.runs = left
	return nil
}

// mergeStep moves the next hashes, about as many entries as given, from the runs
// that are being merged into the one that they are merged into.
func (w *dedupWriter) mergeStep(to *dedupRun, entries int) error {
	first := uint64(0)
	if to.through != 0 {
		first = to.through + 1
	}
	last := uint64(lastHash)
	if share := float64(entries) / float64(to.entries); share < 1 {
		if step := uint64(share * (1 << 64)); step < lastHash-first {
			last = first + step
		}
	}
	var lists [][]dedupEntry
	var done [][]byte
	for i := range w.runs {
		if w.runs[i].into != to.serial {
			continue
		}
		list, keys, err := w.readRange(w.runs[i].serial, first, last)
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
	to.through = last
	return w.putBlocks(to.serial, first, last, mergeEntries(lists))
}

// readRange returns the entries of a run from a first to a last hash, and the keys of
// the blocks that have none behind.
func (w *dedupWriter) readRange(serial, first, last uint64) (list []dedupEntry, done [][]byte, err error) {
	c := w.bucket.Cursor()
	for next, more := first, true; more; {
		b, err := seekBlock(c, serial, next)
		if err != nil {
			return nil, nil, err
		}
		if list, err = appendRange(list, &b, next, last); err != nil {
			return nil, nil, damagedBlock(serial, next, err)
		}
		if b.last <= last {
			done = append(done, appendDedupKey(make([]byte, 0, dedupKeyLen), serial, b.last))
		}
		more, next = b.last < last, b.last+1
	}
	return list, done, nil
}

// appendRange appends the entries of a block from a first to a last hash.
func appendRange(list []dedupEntry, b *dedupBlock, first, last uint64) ([]dedupEntry, error) {
	for slot := b.slotOf(first); slot <= b.slotOf(min(last, b.last)); slot++ {
		entries, err := b.slot(slot)
		if err != nil {
			return nil, err
		}
		for i := range entries.len() {
			if e := entries.at(i); e.hash >= first && e.hash <= last {
				list = append(list, e)
			}
		}
	}
	return list, nil
}

// mergeEntries merges lists that are in order.
func mergeEntries(lists [][]dedupEntry) []dedupEntry {
	n := 0
	for _, list := range lists {
		n += len(list)
	}
	merged := make([]dedupEntry, 0, n)
	for len(merged) < n {
		least := -1
		for i, list := range lists {
			if len(list) > 0 && (least < 0 || compareEntries(list[0], lists[least][0]) < 0) {
				least = i
			}
		}
		merged = append(merged, lists[least][0])
		lists[least] = lists[least][1:]
	}
	return merged
}
