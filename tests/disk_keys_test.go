package tests

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
)

// keyedSite is a site of two partitions, and workspaces with so many events each, all in the projections.
func keyedSite(t *testing.T, workspaces, each int) (*site, truth) {
	t.Helper()
	s := newSite(t, 2, partition.Settings{})
	s.dir = scratch(t)
	d := s.run(t)
	for i := range workspaces * each {
		must(commitRecord(limit(t), d.app, messages.WSID(i%workspaces)))(t)
	}
	d.stop(t)
	var want truth
	s.look(t, func(store *bolt.Store) {
		var errs []error
		want, errs = readTruth(limit(t), store, workspaces)
		check(t, errors.Join(errs...))
	})
	return s, want
}

// keysOf returns where the keys of a bucket lie on the pages of state.db, those of branches too.
func (s *site) keysOf(t *testing.T, bucket string) (all []region) {
	t.Helper()
	const file = "state.db"
	size := 0
	regions := mapPages(t, s.path(file), file)
	for _, r := range regions {
		if r.kind == bucket+"/key" {
			size = r.size
		}
	}
	for _, r := range regions {
		if r.kind == bucket+"/key" || r.kind == bucket+"/branch" && r.size == size {
			all = append(all, r)
		}
	}
	return all
}

// flipKeys flips a bit of each byte of each key of a bucket, another one in each, under the eyes of a store
// that is open: what is mapped is what is in the file. It flips all bits of the keys of branches, and with
// FLIPS=8 of all keys. Unless one page is enough, some must be of branches.
func (s *site) flipKeys(t *testing.T, bucket string, onePage bool, look func(where string)) {
	t.Helper()
	keys := s.keysOf(t, bucket)
	branches := 0
	for i, r := range keys {
		flips := min(setting("FLIPS", 1), 8)
		if strings.HasSuffix(r.kind, "/branch") {
			branches, flips = branches+1, 8
		}
		for at := r.at; at < r.at+r.size; at++ {
			for n := range flips {
				bit := (at - r.at + i + n*8/flips) % 8
				s.flipByte(t, r.file, at, bit)
				look(fmt.Sprintf("%s: byte %d of the key, bit %d", r.kind, at-r.at, bit))
				s.flipByte(t, r.file, at, bit)
			}
		}
	}
	if len(keys) == branches || branches == 0 && !onePage {
		t.Errorf("%s: got %d keys, %d of them of branches, want both", bucket, len(keys), branches)
	}
}

// ends says what is wrong with a read that must be right to its end, or end with an error.
func ends(what string, want []messages.Event, got iter.Seq2[messages.Event, error]) string {
	n := 0
	for e, err := range got {
		switch {
		case err != nil:
			if !errors.Is(err, storage.ErrDamaged) {
				return fmt.Sprintf("%s: got error %v, want damage", what, err)
			}
			return ""
		case n >= len(want) || !reflect.DeepEqual(e, want[n]):
			return fmt.Sprintf("%s: element %d is wrong", what, n)
		}
		n++
	}
	if n != len(want) {
		return fmt.Sprintf("%s: got %d of %d events, and no error", what, n, len(want))
	}
	return ""
}

// TestFlippedKeysOfWorkspaceLogs flips a bit of each byte of each key by which workspaces' logs are read, see flipKeys: every
// reader gets the whole log, or damage. None ends early in silence.
func TestFlippedKeysOfWorkspaceLogs(t *testing.T) {
	for bucket, of := range map[string]struct{ workspaces, each int }{"index": {4, 150}, "workspaces": {100, 1}} {
		t.Run(bucket, func(t *testing.T) {
			s, want := keyedSite(t, of.workspaces, of.each)
			store := openBolt(t, s.dir, s.app.Descriptor, bolt.Options{ReadOnly: true})
			defer func() { check(t, store.Close(limit(t))) }()
			reader := partition.NewReader(store)
			tries, wrongs := 0, 0
			s.flipKeys(t, bucket, bucket == "index", func(where string) {
				for ws, events := range want.wlogs {
					tries++
					if wrong := readersOfWLog(t.Context(), store, reader, ws, events); wrong != "" {
						wrongs++
						t.Errorf("%s: workspace %d: %s", where, ws, wrong)
					}
				}
			})
			t.Logf("%d tries, %d wrong", tries, wrongs)
		})
	}
}

// readersOfWLog says what is wrong with what the readers of a workspace's log get.
func readersOfWLog(ctx context.Context, store storage.Store, reader *partition.Reader, ws messages.WSID, want []messages.Event) string {
	last := messages.WLogOffset(len(want))
	all := func(yield func(messages.Event, error) bool) {
		for from := messages.WLogOffset(1); ; {
			page, err := reader.WLogPage(ctx, ws, from, 16)
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
			}
			if err != nil {
				yield(messages.Event{}, err)
			}
			if len(page) < 16 {
				return
			}
			from += messages.WLogOffset(len(page))
		}
	}
	wrong := ends("WLog", want, store.WLog(ctx, ws, 1))
	if wrong == "" {
		wrong = ends("WLog from 2", want[1:], store.WLog(ctx, ws, 2))
	}
	if wrong == "" {
		wrong = ends("WLogPage", want, all)
	}
	if wrong == "" { // else it would wait for what the others say is not there
		wrong = ends("FollowWLog", want, firstOf(reader.FollowWLog(ctx, ws, 1), len(want)))
	}
	if e, err := reader.WorkspaceEvent(ctx, ws, last); wrong == "" && !errors.Is(err, storage.ErrDamaged) && (err != nil || e.WLogOffset != last) {
		wrong = fmt.Sprintf("the last event: got %v, %v", e.WLogOffset, err)
	}
	return wrong
}

// firstOf ends a sequence after so many elements.
func firstOf[T any](all iter.Seq2[T, error], n int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		got := 0
		for e, err := range all {
			if !yield(e, err) {
				return
			}
			if got++; got == n {
				return
			}
		}
	}
}

// TestFlippedKeysOfPartitionLogs does the same for partitions.
func TestFlippedKeysOfPartitionLogs(t *testing.T) {
	s, want := keyedSite(t, 4, 1000)
	store := openBolt(t, s.dir, s.app.Descriptor, bolt.Options{ReadOnly: true})
	defer func() { check(t, store.Close(limit(t))) }()
	s.flipKeys(t, "plog", false, func(where string) {
		for p, events := range want.plogs {
			if wrong := ends("PLog", events, store.PLog(t.Context(), messages.PartitionID(p), 1)); wrong != "" {
				t.Errorf("%s: %s", where, wrong)
			}
		}
	})
}

// TestFlippedKeysOfNumbers does the same for the last numbers: they are right, or damage.
func TestFlippedKeysOfNumbers(t *testing.T) {
	s, want := keyedSite(t, 100, 1)
	store := openBolt(t, s.dir, s.app.Descriptor, bolt.Options{ReadOnly: true})
	defer func() { check(t, store.Close(limit(t))) }()
	sound := make(map[messages.WSID]storage.WorkspaceNumbers)
	for ws := range want.wlogs {
		sound[ws] = must(store.Numbers(t.Context(), ws))(t)
	}
	s.flipKeys(t, "workspaces", false, func(where string) {
		for ws := range want.wlogs {
			got, err := store.Numbers(t.Context(), ws)
			if !errors.Is(err, storage.ErrDamaged) && (err != nil || !reflect.DeepEqual(got, sound[ws])) {
				t.Errorf("%s: workspace %d: got %v, %v, want %v", where, ws, got, err, sound[ws])
			}
		}
	})
}

// TestFlippedKeysOfRecords does the same for rows, all of a workspace and one by one: of so many that the index leads to
// some of the packs.
func TestFlippedKeysOfRecords(t *testing.T) {
	s, want := keyedSite(t, 1, 2600)
	store := openBolt(t, s.dir, s.app.Descriptor, bolt.Options{ReadOnly: true})
	defer func() { check(t, store.Close(limit(t))) }()
	rows := func(ws messages.WSID, r storage.RecordRange) (all []storage.Row, err error) {
		for row, err := range store.Records(t.Context(), ws, r) {
			if err != nil {
				return nil, err
			}
			all = append(all, row)
		}
		return all, nil
	}
	tries := 0
	s.flipKeys(t, "index", false, func(where string) {
		for ws, all := range want.records {
			one := all[tries%len(all)]
			tries++
			got, err := rows(ws, storage.RecordRange{Seq: seqInvoice})
			if !errors.Is(err, storage.ErrDamaged) && (err != nil || !reflect.DeepEqual(got, all)) {
				t.Errorf("%s: workspace %d: got %d of %d rows, %v", where, ws, len(got), len(all), err)
			}
			got, err = rows(ws, storage.RecordRange{Seq: seqInvoice, From: one.ID.Number, To: one.ID.Number})
			if !errors.Is(err, storage.ErrDamaged) && (err != nil || !reflect.DeepEqual(got, []storage.Row{one})) {
				t.Errorf("%s: workspace %d, %v: got %v, %v", where, ws, one.ID, got, err)
			}
		}
	})
}

// TestFlippedKeysOfDeduplicationIDs does the same for ids: one that the log has is found, or there is damage.
func TestFlippedKeysOfDeduplicationIDs(t *testing.T) {
	s, want := damagedSite(t, 6, 2)
	d := s.run(t)
	d.stop(t) // all is in the projections
	store := openBolt(t, s.dir, s.app.Descriptor, bolt.Options{ReadOnly: true})
	defer func() { check(t, store.Close(limit(t))) }()
	find := func(where string) {
		for _, a := range want.named {
			got, err := store.Find(t.Context(), a.begun.Workspace, a.begun.ID)
			if !errors.Is(err, storage.ErrDamaged) && (err != nil || got != a.acked[0].WLogOffset) {
				t.Errorf("%s: got %v, %v, want %v", where, got, err, a.acked[0].WLogOffset)
			}
		}
	}
	find("before")
	keys := s.keysOf(t, "dedup")
	if len(keys) == 0 {
		t.Error("got no keys")
	}
	for _, r := range keys {
		for at := r.at; at < r.at+r.size; at++ {
			for bit := range 8 {
				s.flipByte(t, r.file, at, bit)
				find(fmt.Sprintf("byte %d of the key, bit %d", at-r.at, bit))
				s.flipByte(t, r.file, at, bit)
			}
		}
	}
}
