package bolt

import (
	"slices"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/numbers"
	"github.com/partita-go/partita/storage/bolt/internal/statedb"
	"github.com/partita-go/partita/storage/bolt/internal/tail"
)

// The memory of a flush serves for the next one, which finds nothing of the last one there. More than the share is let go.
func TestFlushTablesServeAgain(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	s.tables = flushTables{}
	w.appendMany(100, 1, 2, 3)
	w.flush()
	first := s.tables
	for name, n := range map[string][2]int{
		"entries": {len(first.entries), cap(first.entries)}, "numbers": {len(first.numbers), cap(first.numbers)},
		"records": {len(first.records), cap(first.records)}, "events": {len(first.events), cap(first.events)},
		"kept": {len(first.kept), cap(first.kept)}, "whose": {len(first.keptOf), cap(first.keptOf)},
		"writes": {len(first.writes), cap(first.writes)}, "last": {len(first.last), cap(first.last)},
		"keys": {len(first.keys), cap(first.keys)}, "spare": {len(first.spare), cap(first.spare)},
		"read": {len(first.read), cap(first.read)}, "rows": {len(first.rows), cap(first.rows)},
	} {
		if n[0] != 0 || n[1] == 0 {
			t.Errorf("%s: got %d of %d after a flush, want none of some", name, n[0], n[1])
		}
	}
	for _, f := range first.events[:cap(first.events)] {
		expect.Equal(t, flushEvent{}, f)
	}
	for _, f := range first.writes[:cap(first.writes)] {
		expect.Equal(t, recordWrite{}, f)
	}
	for _, r := range first.read[:cap(first.read)] {
		expect.Equal(t, statedb.ReadRow{}, r)
	}
	w.appendMany(60, 1, 4)
	w.flush()
	expect.Equal(t, &first.entries[:1][0], &s.tables.entries[:1][0])
	expect.Equal(t, &first.events[:1][0], &s.tables.events[:1][0])

	// A transaction begins with the memory of the one before, and with all of it.
	s.tables.arena.Reset()
	chunk := s.tables.arena.Reserve(1 << 20)[:1]
	w.append(1)
	w.flush()
	expect.Equal(t, 1<<20, s.tables.arena.Size())
	s.tables.arena.Reset()
	expect.Equal(t, &chunk[0], &s.tables.arena.Reserve(1)[:1][0])

	s.shares.tables = s.tables.arena.Size()
	w.append(1)
	w.flush()
	expect.Equal(t, 0, s.tables.arena.Size())
	expect.Equal(t, &first.events[:1][0], &s.tables.events[:1][0])
	s.shares.tables = 1
	w.append(1)
	w.flush()
	expect.Equal(t, 0, cap(s.tables.entries)+cap(s.tables.events))
}

// What is kept of the numbers of a flush is each workspace's own, whoever is passed over and whether all fit.
func TestNumbersOfAFlushAreKept(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	w.appendMany(40, 5, 2, 9, 7)
	for _, fit := range []int64{0, 1, 4, 5, 9, 100} {
		s.shares.tables = 4 * fit * tail.NumberBytes
		p := &projection{s: s, group: []*flushRequest{w.flushRequest()}, flushTables: &flushTables{}}
		p.group[0].takeEntries(p.flushTables)
		p.collect()
		var all [][]flushEvent
		for events := p.events; len(events) > 0; events = events[len(all[len(all)-1]):] {
			all = append(all, events[:workspaceEvents(events)])
		}
		expect.Equal(t, 4, len(all))
		var want []numbers.Last
		for _, events := range all {
			want = append(want, slices.Clone(p.numbers(events)))
			p.keep(events[0].ws, want[len(want)-1], false)
			expect.Equal(t, true, len(p.kept) <= int(fit))
		}
		for i, events := range all {
			if i == 1 {
				continue // one that is refused
			}
			p.kind = nil
			expect.Equal(t, want[i], slices.Clone(p.numbersAgain(events, p.keptOfNext(events[0].ws))))
			expect.Equal(t, len(s.schema.Kinds[testKind]), len(p.kind))
		}
	}
	w.flush()
}
