package bolt

import (
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// idRef is an event of the tail that has a deduplication id.
type idRef struct {
	offset messages.PLogOffset
	key    format.DedupKey
}

func (t *tail) pushID(r idRef) {
	if t.byID == nil {
		t.byID = make(map[format.DedupKey]messages.PLogOffset)
	}
	t.byID[r.key] = r.offset
	t.ids.push(r)
}

// dropIDs forgets the ids of the entries before an offset.
func (t *tail) dropIDs(to messages.PLogOffset) {
	i := t.ids.first
	for ; i < t.ids.end && t.ids.at(i).offset < to; i++ {
		r := t.ids.at(i)
		if t.byID[r.key] == r.offset {
			delete(t.byID, r.key)
		}
		t.size.bytes -= idBytes
	}
	t.ids.drop(i)
}

// findID returns the offset, in the workspace's log, of the entry that has an id, 0
// if there is none.
func (t *tail) findID(k format.DedupKey) messages.WLogOffset {
	o, ok := t.byID[k]
	if !ok {
		return 0
	}
	return t.at(o).wlog
}
