package bolt

import (
	"sync"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// recordWalk is how many entries and records of a workspace are looked through for a record.
const recordWalk = 256

// recordIndex finds a record where a workspace has many in the tail. Nobody needs it but readers of single records of
// such a workspace, and events that create records out of order there: so it is made when it is asked for, and forgotten
// when nobody has asked since the last drop.
type recordIndex struct {
	// mu is for those who look, who share the partition's lock.
	mu sync.Mutex
	// of is the offset of the last entry that writes each record; nil if there is no index.
	of   map[format.RecordKey]messages.PLogOffset
	used bool
}

// find returns the offset of the last entry that writes a record.
func (x *recordIndex) find(t *tail, k format.RecordKey) (messages.PLogOffset, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.used = true
	if x.of == nil {
		x.of = make(map[format.RecordKey]messages.PLogOffset, t.records.Len())
		for o := t.first(); o < t.end(); o++ {
			x.add(t, o)
		}
	}
	o, ok := x.of[k]
	return o, ok
}

// add takes in what the entry at an offset writes, if there is an index.
func (x *recordIndex) add(t *tail, o messages.PLogOffset) {
	if x.of == nil {
		return
	}
	e := t.at(o)
	for i, end := e.records, t.recordsEnd(o); i < end; i++ {
		x.of[format.RecordKey{Workspace: e.ws, ID: t.records.At(i).id()}] = o
	}
}

// age forgets the index if nobody has used it since the last time.
func (x *recordIndex) age() {
	if !x.used {
		x.of = nil
	}
	x.used = false
}

// drop forgets a record if the entry at an offset was the last to write it.
func (x *recordIndex) drop(k format.RecordKey, o messages.PLogOffset) {
	if x.of != nil && x.of[k] == o {
		delete(x.of, k)
	}
}

// writerOf returns the offset of the last entry that writes a record.
func (t *tail) writerOf(k format.RecordKey) (messages.PLogOffset, bool) {
	o, e := t.lastOf(k.Workspace)
	for walked := uint64(0); e != nil; o, e = t.previous(o, e) {
		end := t.recordsEnd(o)
		if walked += 1 + end - e.records; walked > recordWalk {
			return t.index.find(t, k)
		}
		for i := e.records; i < end; i++ {
			if t.records.At(i).id() == k.ID {
				return o, true
			}
		}
	}
	return 0, false
}
