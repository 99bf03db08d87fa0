package tail

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
func (x *recordIndex) find(t *Tail, k format.RecordKey) (messages.PLogOffset, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.used = true
	if x.of == nil {
		x.of = make(map[format.RecordKey]messages.PLogOffset, t.Records.Len())
		for o := t.First(); o < t.End(); o++ {
			x.add(t, o)
		}
	}
	o, ok := x.of[k]
	return o, ok
}

// add takes in what the entry at an offset writes, if there is an index.
func (x *recordIndex) add(t *Tail, o messages.PLogOffset) {
	if x.of == nil {
		return
	}
	e := t.At(o)
	for i, end := e.Records, t.RecordsEnd(o); i < end; i++ {
		x.of[format.RecordKey{Workspace: e.Workspace, ID: t.Records.At(i).ID()}] = o
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

// WriterOf returns the offset of the last entry that writes a record.
func (t *Tail) WriterOf(k format.RecordKey) (messages.PLogOffset, bool) {
	o, e := t.LastOf(k.Workspace)
	for walked := uint64(0); e != nil; o, e = t.Previous(o, e) {
		end := t.RecordsEnd(o)
		if walked += 1 + end - e.Records; walked > recordWalk {
			return t.index.find(t, k)
		}
		for i := e.Records; i < end; i++ {
			if t.Records.At(i).ID() == k.ID {
				return o, true
			}
		}
	}
	return 0, false
}
