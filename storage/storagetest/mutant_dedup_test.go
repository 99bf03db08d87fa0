package storagetest

import (
	"context"
	"errors"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

func dedupBugs() []bug {
	refuses, named := "DuplicateIsRefused", "DuplicatesAreAllNamed"
	return []bug{
		swallow("duplicates pass for done", storage.ErrDuplicate, refuses, named, "DuplicateInItsBatch", "RaceForAnID", "ManyIDsInManyFlushes", byModel),
		{name: "duplicates in the tail are written", by: []string{refuses, "RaceForAnID", byModel},
			append: forgetful(func(e *messages.Event, checkpoint messages.PLogOffset) bool { return e.PLogOffset >= checkpoint })},
		{name: "duplicates behind the checkpoint are written", by: []string{refuses, named, "ManyIDsInManyFlushes", byModel},
			append: forgetful(func(e *messages.Event, checkpoint messages.PLogOffset) bool { return e.PLogOffset < checkpoint })},
		{name: "a batch may have an id twice", by: []string{"DuplicateInItsBatch", named, byModel}, append: (*mutant).appendOneByOne},
		duplicates("only the first duplicate is named", func(e *storage.DuplicateError) { e.Duplicates = e.Duplicates[:1] }, named, "DuplicateInItsBatch"),
		duplicates("a duplicate does not say where the first is", func(e *storage.DuplicateError) { e.Duplicates[0].First = 0 }, refuses, byModel),
		duplicates("a duplicate names another event", func(e *storage.DuplicateError) { e.Duplicates[0].PLogOffset++ }, refuses, byModel),
		{name: "a refused batch leaves its ids", by: []string{named},
			append: func(m *mutant, ctx context.Context, b storage.Batch) error {
				err := m.Memory.Append(ctx, b)
				if errors.Is(err, storage.ErrDuplicate) {
					m.leaveIDs(b)
				}
				return err
			}},
		{name: "the other events of a refused batch are written", by: []string{refuses, byModel}, append: (*mutant).appendTheRest},
		{name: "a conflict comes before a duplicate", by: []string{"DuplicateBeforeConflict", byModel},
			append: func(m *mutant, ctx context.Context, b storage.Batch) error {
				if err := m.Memory.Append(ctx, b); !errors.Is(err, storage.ErrDuplicate) {
					return err
				}
				return conflictOr(m.Memory.Append(ctx, withoutIDs(b)), m.Memory.Append(ctx, b))
			}},
		{name: "ids are the partition's", by: []string{"IDsAreTheWorkspacesOwn", byModel},
			append: func(m *mutant, ctx context.Context, b storage.Batch) error {
				for _, e := range b.Events {
					if m.anybodyHas(b.Partition, e.DedupID) {
						return &storage.DuplicateError{Partition: b.Partition, Duplicates: []storage.Duplicate{{}}}
					}
				}
				return m.Memory.Append(ctx, b)
			}},
		{name: "Find without the tail", by: []string{refuses, byModel},
			find: func(m *mutant, ctx context.Context, ws messages.WSID, id messages.DedupID) (messages.WLogOffset, error) {
				o, err := m.Memory.Find(ctx, ws, id)
				if o != 0 && m.eventAt(ws, o).PLogOffset >= m.checkpoint(messages.PartitionOf(ws, m.disk.desc.Partitions)) {
					o = 0
				}
				return o, err
			}},
		{name: "Find leaves the workspace out", by: []string{"IDsAreTheWorkspacesOwn", byModel},
			find: func(m *mutant, ctx context.Context, ws messages.WSID, id messages.DedupID) (messages.WLogOffset, error) {
				o, err := m.Memory.Find(ctx, ws, id)
				for other := messages.WSID(0); o == 0 && err == nil && other < 12; other++ {
					o, err = m.Memory.Find(ctx, other, id)
				}
				return o, err
			}},
		{name: "Find returns the PLog offset", by: []string{refuses, byModel},
			find: func(m *mutant, ctx context.Context, ws messages.WSID, id messages.DedupID) (messages.WLogOffset, error) {
				o, err := m.Memory.Find(ctx, ws, id)
				if o != 0 {
					o = messages.WLogOffset(m.eventAt(ws, o).PLogOffset)
				}
				return o, err
			}},
		{name: "Find finds events without an id", by: []string{"FindOfNothing", byModel},
			find: func(m *mutant, ctx context.Context, ws messages.WSID, id messages.DedupID) (messages.WLogOffset, error) {
				if id == (messages.DedupID{}) {
					n, err := m.Memory.Numbers(ctx, ws)
					return messages.WLogOffset(len(n.Numbers)), err
				}
				return m.Memory.Find(ctx, ws, id)
			}},
		{name: "Find ignores its context", by: []string{"EndedContext"},
			find: func(m *mutant, ctx context.Context, ws messages.WSID, id messages.DedupID) (messages.WLogOffset, error) {
				return m.Memory.Find(context.WithoutCancel(ctx), ws, id)
			}},
		{name: "Find works on a closed store", by: []string{"ClosedStoreRefusesEverything"},
			find: func(m *mutant, _ context.Context, ws messages.WSID, id messages.DedupID) (messages.WLogOffset, error) {
				return m.disk.find(ws, id), nil
			}},
		{name: "ids are lost at reopening", by: []string{refuses, "IDsAreTheWorkspacesOwn", byModel},
			reopened: func(d *disk) {
				for _, ws := range d.workspaces {
					clear(ws.ids)
				}
			}},
		{name: "Together is lost", by: []string{"TogetherIsKept", byModel}, append: changed(func(e *messages.Event) { e.Together = 0 })},
		{name: "ids are not stored", by: []string{refuses, "TogetherIsKept", byModel}, append: changed(func(e *messages.Event) { e.DedupID = messages.DedupID{} })},
		{name: "Together is not checked", by: []string{"TogetherIsChecked"},
			append: func(m *mutant, ctx context.Context, b storage.Batch) error {
				err := m.Memory.Append(ctx, b)
				if errors.Is(err, storage.ErrInvalidEvent) {
					return changed(func(e *messages.Event) { e.Together = 0 })(m, ctx, b)
				}
				return err
			}},
		{name: "reserved sections are stored", by: []string{"ReservedSectionsAreRefused"},
			append: changed(func(e *messages.Event) {
				e.Sections = slices.Clone(e.Sections)
				for i := range e.Sections {
					e.Sections[i].Tag = max(e.Sections[i].Tag, messages.MaxReservedTag+1)
				}
			})},
	}
}

// forgetful returns an Append that does not know the ids of some events of the log.
func forgetful(unknown func(e *messages.Event, checkpoint messages.PLogOffset) bool) func(*mutant, context.Context, storage.Batch) error {
	return func(m *mutant, ctx context.Context, b storage.Batch) error {
		m.disk.mu.Lock()
		for _, e := range m.disk.partitions[b.Partition].log {
			if unknown(e, m.disk.partitions[b.Partition].checkpoint) {
				delete(m.disk.workspaces[e.Workspace].ids, e.DedupID)
			}
		}
		m.disk.mu.Unlock()
		return m.Memory.Append(ctx, b)
	}
}

// changed returns an Append of events that are changed first.
func changed(change func(*messages.Event)) func(*mutant, context.Context, storage.Batch) error {
	return func(m *mutant, ctx context.Context, b storage.Batch) error {
		b.Events = slices.Clone(b.Events)
		for i := range b.Events {
			change(&b.Events[i])
		}
		return m.Memory.Append(ctx, b)
	}
}

// duplicates returns a bug that changes what is said of duplicates.
func duplicates(name string, change func(*storage.DuplicateError), by ...string) bug {
	return bug{name: name, by: by, append: func(m *mutant, ctx context.Context, b storage.Batch) error {
		err := m.Memory.Append(ctx, b)
		if d := (*storage.DuplicateError)(nil); errors.As(err, &d) {
			change(d)
		}
		return err
	}}
}

func withoutIDs(b storage.Batch) storage.Batch {
	b.Events = slices.Clone(b.Events)
	for i := range b.Events {
		b.Events[i].DedupID = messages.DedupID{}
	}
	// Whatever comes of it, nothing is written.
	b.Events = append(b.Events, messages.Event{Partition: b.Partition})
	return b
}

func conflictOr(err, other error) error {
	if errors.Is(err, storage.ErrConflict) {
		return err
	}
	return other
}

// appendOneByOne makes the second event with an id forget it.
func (m *mutant) appendOneByOne(ctx context.Context, b storage.Batch) error {
	type key struct {
		ws messages.WSID
		id messages.DedupID
	}
	seen := make(map[key]bool)
	return changed(func(e *messages.Event) {
		k := key{e.Workspace, e.DedupID}
		if seen[k] {
			e.DedupID = messages.DedupID{}
		}
		seen[k] = true
	})(m, ctx, b)
}

// appendTheRest writes what stands before the first duplicate.
func (m *mutant) appendTheRest(ctx context.Context, b storage.Batch) error {
	err := m.Memory.Append(ctx, b)
	if d := (*storage.DuplicateError)(nil); errors.As(err, &d) {
		b.Events = b.Events[:d.Duplicates[0].PLogOffset-b.Events[0].PLogOffset]
		_ = m.Memory.Append(ctx, b)
	}
	return err
}

// leaveIDs notes the ids of a batch that was not written.
func (m *mutant) leaveIDs(b storage.Batch) {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	for _, e := range b.Events {
		if ws := m.disk.workspaces[e.Workspace]; ws != nil && ws.ids[e.DedupID] == 0 {
			ws.ids[e.DedupID] = e.WLogOffset
		}
	}
}

func (m *mutant) anybodyHas(p messages.PartitionID, id messages.DedupID) bool {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	return id != messages.DedupID{} && slices.ContainsFunc(m.disk.partitions[p].log, func(e *messages.Event) bool { return e.DedupID == id })
}

func (m *mutant) eventAt(ws messages.WSID, o messages.WLogOffset) *messages.Event {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	return m.disk.workspaces[ws].wlog[o-1]
}
