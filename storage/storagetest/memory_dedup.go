package storagetest

import (
	"context"
	"fmt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// Find returns the offset of the workspace's event that has the id, 0 if there is
// none.
func (m *Memory) Find(ctx context.Context, id messages.WSID, dedup messages.DedupID) (messages.WLogOffset, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	return m.disk.find(id, dedup), nil
}

func (d *disk) find(id messages.WSID, dedup messages.DedupID) messages.WLogOffset {
	if ws := d.workspaces[id]; ws != nil {
		return ws.ids[dedup]
	}
	return 0
}

// duplicates returns a [*storage.DuplicateError] with all events of the batch whose
// ids are in the log, or earlier in the batch.
func (j *judge) duplicates() error {
	type key struct {
		workspace messages.WSID
		id        messages.DedupID
	}
	here := make(map[key]messages.WLogOffset)
	var list []storage.Duplicate
	for i := range j.events {
		e := &j.events[i]
		if e.DedupID.IsZero() {
			continue
		}
		k := key{e.Workspace, e.DedupID}
		first := j.disk.find(e.Workspace, e.DedupID)
		if first == 0 {
			first = here[k]
		}
		if first == 0 {
			here[k] = e.WLogOffset
			continue
		}
		list = append(list, storage.Duplicate{PLogOffset: e.PLogOffset, Workspace: e.Workspace, ID: e.DedupID, First: first})
	}
	if list == nil {
		return nil
	}
	return &storage.DuplicateError{Partition: j.batch.Partition, Duplicates: list}
}

// sections checks that the event leaves the runtime its tags.
func (j *judge) sections(_ int, e *messages.Event) error {
	for _, s := range e.Sections {
		if s.Tag >= 1 && s.Tag <= messages.MaxReservedTag {
			return fmt.Errorf("%w: section: got tag %d, tags up to %d are the runtime's", storage.ErrInvalidEvent, s.Tag, messages.MaxReservedTag)
		}
	}
	return nil
}

// together checks that the events follow which the event was appended with.
func (j *judge) together(i int, e *messages.Event) error {
	for n := 1; n <= int(e.Together); n++ {
		if i+n >= len(j.events) {
			return fmt.Errorf("%w: got %d events behind it in the batch, want %d", storage.ErrInvalidEvent, n-1, e.Together)
		}
		next := &j.events[i+n]
		if next.Workspace != e.Workspace || !next.DedupID.IsZero() || next.Together != 0 {
			return fmt.Errorf("%w: got workspace %d, id %v and together %d at offset %d, want workspace %d and neither",
				storage.ErrInvalidEvent, next.Workspace, next.DedupID, next.Together, next.PLogOffset, e.Workspace)
		}
	}
	return nil
}
