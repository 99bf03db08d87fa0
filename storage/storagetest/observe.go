package storagetest

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// observed is all that the interface shows of a store at rest. Empty slices are
// nil in it, so that deep equality means the same.
type observed struct {
	Registers  []storage.Register
	PLogs      [][]messages.Event
	Tails      [][]messages.Numbering
	Workspaces map[messages.WSID]observedWorkspace
}

type observedWorkspace struct {
	WLog    []messages.Event
	Numbers storage.WorkspaceNumbers
	Rows    []storage.Row
	// IDs are the deduplication ids that are found, out of those of all events.
	IDs map[messages.DedupID]messages.WLogOffset
}

// observe reads everything, of the workspaces that have events and of the others
// named.
func observe(ctx context.Context, s storage.Store, others []messages.WSID) (observed, error) {
	d := s.Descriptor()
	o := observed{Workspaces: make(map[messages.WSID]observedWorkspace)}
	workspaces := make(map[messages.WSID]bool)
	for _, ws := range others {
		workspaces[ws] = true
	}
	ids := make(map[messages.DedupID]bool)
	var periods []messages.SequencePeriod
	for p := range messages.PartitionID(d.Partitions) {
		if err := o.observePartition(ctx, s, p); err != nil {
			return o, fmt.Errorf("partition %d: %w", p, err)
		}
		for _, e := range o.PLogs[p] {
			workspaces[e.Workspace] = true
			ids[e.DedupID] = true
			for _, n := range slices.Concat(e.Numbers, e.Moves) {
				periods = append(periods, n.SequencePeriod())
			}
		}
	}
	slices.SortFunc(periods, messages.SequencePeriod.Compare)
	periods = slices.Compact(periods)
	for ws := range workspaces {
		w, err := observeWorkspace(ctx, s, &d, ws, periods)
		if err == nil {
			w.IDs, err = findIDs(ctx, s, ws, ids)
		}
		if err != nil {
			return o, fmt.Errorf("workspace %d: %w", ws, err)
		}
		o.Workspaces[ws] = w
	}
	return o, nil
}

func (o *observed) observePartition(ctx context.Context, s storage.Store, p messages.PartitionID) error {
	r, err := s.Register(ctx, p)
	if err != nil {
		return err
	}
	events, err := collectEvents(s.PLog(ctx, p, 0))
	if err != nil {
		return err
	}
	tail, err := readTail(ctx, s, p, r.Checkpoint, 1000)
	if err != nil {
		return err
	}
	o.Registers = append(o.Registers, r)
	o.PLogs = append(o.PLogs, events)
	o.Tails = append(o.Tails, tail)
	return nil
}

func observeWorkspace(
	ctx context.Context, s storage.Store, d *messages.Descriptor, ws messages.WSID, periods []messages.SequencePeriod,
) (w observedWorkspace, err error) {
	if w.WLog, err = collectEvents(s.WLog(ctx, ws, 0)); err != nil {
		return w, err
	}
	if w.Numbers, err = observeNumbers(ctx, s, ws, periods); err != nil {
		return w, err
	}
	for _, seq := range sequencesOf(d) {
		rows, err := collectRows(s.Records(ctx, ws, storage.RecordRange{Seq: seq}))
		if err != nil {
			return w, err
		}
		w.Rows = append(w.Rows, rows...)
	}
	return w, nil
}

// observeNumbers reads the last numbers of all periods. How many of the older ones are listed only if they are
// asked for is the store's own affair, but it must say of which sequences there are some.
func observeNumbers(ctx context.Context, s storage.Store, ws messages.WSID, periods []messages.SequencePeriod) (storage.WorkspaceNumbers, error) {
	newest, err := s.Numbers(ctx, ws)
	if err != nil {
		return newest, err
	}
	all, err := s.Numbers(ctx, ws, periods...)
	var older []messages.SeqID
	next := 0
	for _, n := range all.Numbers {
		switch {
		case next < len(newest.Numbers) && newest.Numbers[next] == n:
			next++
		case next > 0 && newest.Numbers[next-1].Seq == n.Seq:
			return all, fmt.Errorf("Numbers lists %v without being asked, but not %v", newest.Numbers[:next], n)
		default:
			older = append(older, n.Seq)
		}
	}
	older = slices.Compact(older)
	if next < len(newest.Numbers) || !slices.Equal(newest.Older, older) || !slices.Equal(all.Older, older) {
		return all, fmt.Errorf("Numbers lists %v and says that %v and %v have older ones, but when it is asked for all it lists %v",
			newest.Numbers, newest.Older, all.Older, all.Numbers)
	}
	// The contract lets a workspace without events have the zero value.
	all.Workspace, all.Older = ws, nil
	all.Numbers, all.Closed = canonical(all.Numbers), canonical(all.Closed)
	return all, err
}

// findIDs looks ids up, one that nobody has and the zero id included.
func findIDs(ctx context.Context, s storage.Store, ws messages.WSID, ids map[messages.DedupID]bool) (map[messages.DedupID]messages.WLogOffset, error) {
	found := make(map[messages.DedupID]messages.WLogOffset)
	ids[messages.DedupID{}], ids[messages.DedupID{0xff}] = true, true
	for id := range ids {
		o, err := s.Find(ctx, ws, id)
		if err != nil {
			return nil, err
		}
		if o != 0 {
			found[id] = o
		}
	}
	return found, nil
}

// sequencesOf returns the sequences of all kinds, ordered by id.
func sequencesOf(d *messages.Descriptor) []messages.SeqID {
	seqs := make(map[messages.SeqID]bool)
	for _, k := range d.Kinds {
		for _, s := range k.All() {
			seqs[s.ID] = true
		}
	}
	return slices.Sorted(maps.Keys(seqs))
}

// readTail reads the tail to its end, at most limit events a call.
func readTail(ctx context.Context, s storage.Store, p messages.PartitionID, from messages.PLogOffset, limit int) ([]messages.Numbering, error) {
	var tail []messages.Numbering
	for {
		page, err := s.Tail(ctx, p, from, limit)
		if err != nil {
			return tail, err
		}
		if len(page) == 0 {
			return tail, nil
		}
		if len(page) > limit {
			return tail, fmt.Errorf("Tail(%d, limit %d) returned %d events", from, limit, len(page))
		}
		for i := range page {
			page[i].Numbers = canonical(page[i].Numbers)
		}
		tail = append(tail, page...)
		from += messages.PLogOffset(len(page))
	}
}

// collectEvents reads an iterator to its end. Whatever follows an error is told.
func collectEvents(seq iter.Seq2[messages.Event, error]) ([]messages.Event, error) {
	events, err := collect(seq)
	for i := range events {
		events[i] = canonicalEvent(events[i])
	}
	return events, err
}

func collectRows(seq iter.Seq2[storage.Row, error]) ([]storage.Row, error) {
	rows, err := collect(seq)
	for i := range rows {
		rows[i].Data = canonical(rows[i].Data)
	}
	return rows, err
}

func collect[T any](seq iter.Seq2[T, error]) (all []T, failed error) {
	for v, err := range seq {
		switch {
		case failed != nil:
			return all, fmt.Errorf("iterator goes on after its error: %w", failed)
		case err != nil:
			failed = err
		default:
			all = append(all, v)
		}
	}
	return all, failed
}

// canonical makes an empty slice nil: stores need not tell them apart.
func canonical[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return s
}

// canonicalEvent returns a copy of its own with empty slices made nil.
func canonicalEvent(e messages.Event) messages.Event {
	c := cloneEvent(&e)
	c.Numbers, c.Moves, c.Body = canonical(c.Numbers), canonical(c.Moves), canonical(c.Body)
	c.Records, c.Sections = canonical(c.Records), canonical(c.Sections)
	for i := range c.Records {
		c.Records[i].Data = canonical(c.Records[i].Data)
	}
	for i := range c.Sections {
		c.Sections[i].Data = canonical(c.Sections[i].Data)
	}
	return c
}

// difference names where two observations differ, "" if they do not.
func difference(got, want observed) string {
	if reflect.DeepEqual(got, want) {
		return ""
	}
	var b strings.Builder
	for p := range want.Registers {
		where := fmt.Sprintf("of partition %d", p)
		tell(&b, "register "+where, got.Registers[p:p+1], want.Registers[p:p+1])
		tell(&b, "PLog "+where, got.PLogs[p], want.PLogs[p])
		tell(&b, "tail "+where, got.Tails[p], want.Tails[p])
	}
	for _, ws := range slices.Sorted(maps.Keys(want.Workspaces)) {
		where := fmt.Sprintf("of workspace %d", ws)
		g, w := got.Workspaces[ws], want.Workspaces[ws]
		tell(&b, "WLog "+where, g.WLog, w.WLog)
		tell(&b, "numbers "+where, []storage.WorkspaceNumbers{g.Numbers}, []storage.WorkspaceNumbers{w.Numbers})
		tell(&b, "records "+where, g.Rows, w.Rows)
		if !maps.Equal(g.IDs, w.IDs) {
			fmt.Fprintf(&b, "\nids %s:\n   got %v\n  want %v", where, g.IDs, w.IDs)
		}
	}
	if len(got.Workspaces) != len(want.Workspaces) {
		fmt.Fprintf(&b, "\ngot %d workspaces, want %d", len(got.Workspaces), len(want.Workspaces))
	}
	return b.String()
}

// tell writes the first difference of two lists.
func tell[T any](b *strings.Builder, what string, got, want []T) {
	if len(got) != len(want) {
		fmt.Fprintf(b, "\n%s: got %d elements, want %d", what, len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if !reflect.DeepEqual(got[i], want[i]) {
			fmt.Fprintf(b, "\n%s, element %d:\n   got %s\n  want %s", what, i, brief(got[i]), brief(want[i]))
			return
		}
	}
}

// brief formats a value without its big byte slices.
func brief(v any) string {
	const most = 64
	switch v := v.(type) {
	case messages.Event:
		v = cloneEvent(&v)
		v.Body = v.Body[:min(len(v.Body), most)]
		for i := range v.Records {
			v.Records[i].Data = v.Records[i].Data[:min(len(v.Records[i].Data), most)]
		}
		for i := range v.Sections {
			v.Sections[i].Data = v.Sections[i].Data[:min(len(v.Sections[i].Data), most)]
		}
		return fmt.Sprintf("%+v", v)
	case storage.Row:
		v.Data = v.Data[:min(len(v.Data), most)]
		return fmt.Sprintf("%+v", v)
	}
	return fmt.Sprintf("%+v", v)
}
