package tail

import (
	"sync"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// recordWalk is how many entries and records of a workspace are looked through for a record.
const recordWalk = 256

// recordIndex finds records of workspaces that have many in the tail. Nobody needs it but readers of single records of
// such a workspace, and events that create records out of order there: so one is begun when it is asked for, and
// forgotten when nobody has asked since the last flush.
type recordIndex struct {
	// mu is for those who look, who share the partition's lock.
	mu sync.RWMutex
	of map[messages.WSID]*workspaceIndex
}

// workspaceIndex is the index of a workspace's records. It grows with what is asked for: a look takes in what it walks
// over, and no more.
type workspaceIndex struct {
	mu sync.Mutex
	// of is the offset of the last entry that writes each record.
	of map[messages.RecordID]messages.PLogOffset
	// next is the entry that is taken in next, and nothing before it is in here; if the tail does not have it, all is.
	next messages.PLogOffset
	used bool
}

// get returns the index of a workspace, nil if there is none.
func (x *recordIndex) get(ws messages.WSID) *workspaceIndex {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.of[ws]
}

// begin makes the index of a workspace whose last entry is given, unless somebody else has.
func (x *recordIndex) begin(ws messages.WSID, last messages.PLogOffset) *workspaceIndex {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.of == nil {
		x.of = make(map[messages.WSID]*workspaceIndex)
	}
	if x.of[ws] == nil {
		x.of[ws] = &workspaceIndex{of: make(map[messages.RecordID]messages.PLogOffset), next: last}
	}
	return x.of[ws]
}

// find returns the offset of the last entry that writes a record.
func (w *workspaceIndex) find(t *Tail, id messages.RecordID) (messages.PLogOffset, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.used = true
	o, ok := w.of[id]
	for !ok && w.next >= t.First() {
		e := t.At(w.next)
		for i, end := e.Records, t.RecordsEnd(w.next); i < end; i++ {
			r := t.Records.At(i).ID()
			if _, later := w.of[r]; !later {
				w.of[r] = w.next
			}
		}
		o, ok = w.of[id]
		w.next, _ = t.Previous(w.next, e)
	}
	return o, ok
}

// add takes in what the entry at an offset writes, which is the last one, if its workspace has an index.
func (x *recordIndex) add(t *Tail, o messages.PLogOffset) {
	e := t.At(o)
	w := x.of[e.Workspace]
	if w == nil {
		return
	}
	for i, end := e.Records, t.RecordsEnd(o); i < end; i++ {
		w.of[t.Records.At(i).ID()] = o
	}
}

// drop forgets a record if the entry at an offset was the last to write it.
func (x *recordIndex) drop(k format.RecordKey, o messages.PLogOffset) {
	if w := x.of[k.Workspace]; w != nil && w.of[k.ID] == o {
		delete(w.of, k.ID)
	}
}

// Age forgets what makes it fast to find records, of workspaces where none was looked for since the last time.
func (t *Tail) Age() {
	if t.index == nil {
		return
	}
	for ws, w := range t.index.of {
		if !w.used {
			delete(t.index.of, ws)
		}
		w.used = false
	}
}

// WriterOf returns the offset of the last entry that writes a record.
func (t *Tail) WriterOf(k format.RecordKey) (messages.PLogOffset, bool) {
	last, e := t.LastOf(k.Workspace)
	if e == nil {
		return 0, false
	}
	if w := t.index.get(k.Workspace); w != nil {
		return w.find(t, k.ID)
	}
	for o, walked := last, uint64(0); e != nil; o, e = t.Previous(o, e) {
		end := t.RecordsEnd(o)
		if walked += 1 + end - e.Records; walked > recordWalk {
			return t.index.begin(k.Workspace, last).find(t, k.ID)
		}
		for i := e.Records; i < end; i++ {
			if t.Records.At(i).ID() == k.ID {
				return o, true
			}
		}
	}
	return 0, false
}
