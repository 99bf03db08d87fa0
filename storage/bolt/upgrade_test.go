package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// oldHeader is a header as format 1 has it.
func oldHeader(h *header) []byte {
	b := h.encode()
	binary.BigEndian.PutUint16(b[8:], formatWithoutIDs)
	end := len(b) - 4
	return binary.BigEndian.AppendUint32(b[:end], crcOf(b[:end]))
}

// makeOld turns a file into one of format 1.
func makeOld(t *testing.T, dir string, r role) {
	t.Helper()
	f := openPlain(t, dir, r)
	h, err := f.readHeader(r)
	if err != nil {
		t.Fatal(err)
	}
	err = f.update(func(tx *bbolt.Tx) error {
		if r == roleState {
			if err := errors.Join(tx.DeleteBucket(bucketDedup), tx.Bucket(bucketHeader).Delete(keyDedup)); err != nil {
				return err
			}
		}
		return tx.Bucket(bucketHeader).Put(keyHeader, oldHeader(&h))
	})
	if err := errors.Join(err, f.close()); err != nil {
		t.Fatal(err)
	}
}

func openPlain(t *testing.T, dir string, r role) *file {
	t.Helper()
	f, err := openPath(t, filepath.Join(dir, r.fileName()), r.fileName(), &bbolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func formatOf(t *testing.T, dir string, r role) uint16 {
	t.Helper()
	f := openPlain(t, dir, r)
	h, err := f.readHeader(r)
	if err := errors.Join(err, f.close()); err != nil {
		t.Fatal(err)
	}
	return h.format
}

// A store of format 1 is upgraded by an open that may write, wherever an earlier one
// was cut short, keeps what it has, and takes ids from then on.
func TestUpgrade(t *testing.T) {
	for name, old := range map[string][]role{
		"both": {roleLog, roleState}, "cut short behind the log": {roleState}, "the state is rebuilt": {roleLog},
	} {
		t.Run(name, func(t *testing.T) {
			dir, d := t.TempDir(), testDescriptor(2, messages.TrustNone)
			s := open(t, dir, d, Options{})
			w := takeOver(t, s, 0)
			w.append(2, 2)
			w.flush()
			w.append(2)
			want := collectEvents(t, s.WLog(t.Context(), 2, 0))
			closeStore(t, s)
			for _, r := range old {
				makeOld(t, dir, r)
			}
			before := filesOf(t, dir)
			s = open(t, dir, d, Options{ReadOnly: true})
			checkFind(t, s, 2, messages.DedupID{1}, 0)
			closeStore(t, s)
			for name, data := range filesOf(t, dir) {
				if data != before[name] {
					t.Fatalf("a read-only open changed %s", name)
				}
			}
			s = open(t, dir, d, Options{})
			if got := collectEvents(t, s.WLog(t.Context(), 2, 0)); len(got) != len(want) {
				t.Fatalf("got %d events, want %d", len(got), len(want))
			}
			w = takeOver(t, s, 0)
			w.appendNamed(2, messages.DedupID{1})
			w.flush()
			checkFind(t, s, 2, messages.DedupID{1}, 4)
			closeStore(t, s)
			for _, r := range []role{roleLog, roleState} {
				if got := formatOf(t, dir, r); got != formatVersion {
					t.Fatalf("%v: got format %d, want %d", r, got, formatVersion)
				}
			}
		})
	}
}

// The log is upgraded first: from then on an older program refuses the store, and a
// state.db of format 1 has nothing that it could miss.
func TestUpgradeBeginsWithTheLog(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	closeStore(t, open(t, dir, d, Options{}))
	makeOld(t, dir, roleLog)
	makeOld(t, dir, roleState)
	log, state := openPlain(t, dir, roleLog), openPlain(t, dir, roleState)
	h, err := log.readHeader(roleLog)
	if err != nil {
		t.Fatal(err)
	}
	lost := errors.New("the process ends")
	state.beforeCommit = func() error { return lost }
	op := &opening{Store: &Store{log: log, state: state}, oldLog: &h, oldState: &header{role: roleState, id: h.id, descriptor: h.descriptor}}
	if err := op.upgrade(); !errors.Is(err, lost) {
		t.Fatalf("got %v", err)
	}
	if err := op.abandon(); err != nil {
		t.Fatal(err)
	}
	if l, s := formatOf(t, dir, roleLog), formatOf(t, dir, roleState); l != formatVersion || s != formatWithoutIDs {
		t.Fatalf("got log %d, state %d", l, s)
	}
}

// An upgrade keeps the descriptor that a file has, also if the store is opened under
// a larger one.
func TestUpgradeWithALargerDescriptor(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	closeStore(t, open(t, dir, d, Options{}))
	makeOld(t, dir, roleLog)
	makeOld(t, dir, roleState)
	d.Kinds = append(d.Kinds, messages.Kind{ID: 9, Name: "later"})
	closeStore(t, open(t, dir, d, Options{}))
	s, err := OpenExisting(t.Context(), dir, Options{})
	if err != nil || len(s.Descriptor().Kinds) != 2 {
		t.Fatalf("got %v", err)
	}
	closeStore(t, s)
}

// A store whose opening fails is not upgraded.
func TestFailedOpenDoesNotUpgrade(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	s := open(t, dir, d, Options{})
	w := takeOver(t, s, 0)
	w.append(1)
	w.flush()
	put(t, s.state, bucketCheckpoints, appendPartitionKey(nil, 0), []byte("damaged"))
	closeStore(t, s)
	makeOld(t, dir, roleLog)
	makeOld(t, dir, roleState)
	before := filesOf(t, dir)
	if _, err := Open(t.Context(), dir, d, Options{}); !errors.Is(err, storage.ErrDamaged) {
		t.Fatalf("got %v", err)
	}
	for name, data := range filesOf(t, dir) {
		if data != before[name] {
			t.Fatalf("%s was changed", name)
		}
	}
}

// Sections of format 1 with tags that are the runtime's now are read as they were
// written, and values with the runtime's sections are of a version of their own.
func TestEventVersions(t *testing.T) {
	plain := messages.Event{Kind: 1, PLogOffset: 1, Sections: []messages.Section{{Tag: tagDedup, Data: []byte("short")}, {Tag: tagTogether}}}
	value := encodeEvent(&plain)
	sealEvent(value, 1)
	var view eventView
	if err := view.decode(1, value); err != nil || len(view.event().Sections) != 2 || value[0] != eventVersion {
		t.Fatalf("version %d: got %+v, %v", value[0], view.event(), err)
	}
	for _, e := range []messages.Event{{DedupID: messages.DedupID{1}}, {Together: 1}} {
		if value := encodeEvent(&e); value[0] != eventReserved {
			t.Fatalf("got version %d, want %d", value[0], eventReserved)
		}
	}
	id := bytes.Repeat([]byte{7}, 16)
	for name, sections := range map[string][]messages.Section{
		"a short id":           {{Tag: tagDedup, Data: id[:15]}},
		"a long id":            {{Tag: tagDedup, Data: append(id, 7)}},
		"the zero id":          {{Tag: tagDedup, Data: make([]byte, 16)}},
		"two ids":              {{Tag: tagDedup, Data: id}, {Tag: tagDedup, Data: id}},
		"together nothing":     {{Tag: tagTogether}},
		"together 0":           {{Tag: tagTogether, Data: []byte{0}}},
		"together and more":    {{Tag: tagTogether, Data: []byte{1, 1}}},
		"together twice":       {{Tag: tagTogether, Data: []byte{1}}, {Tag: tagTogether, Data: []byte{1}}},
		"together cut short":   {{Tag: tagTogether, Data: []byte{0x80}}},
		"together above 2^32":  {{Tag: tagTogether, Data: binary.AppendUvarint(nil, 1<<32)}},
		"together above 2^64":  {{Tag: tagTogether, Data: bytes.Repeat([]byte{0xff}, 10)}},
		"right and then wrong": {{Tag: tagDedup, Data: id}, {Tag: tagTogether}},
	} {
		payload := encodeEvent(&messages.Event{Sections: sections})[eventHeaderLen:]
		if err := view.decode(1, resealedAs(eventReserved, payload, 1)); !errors.Is(err, errLayout) {
			t.Errorf("%s: got %v, %+v", name, err, view.event())
		}
	}
}
