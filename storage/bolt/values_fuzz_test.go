package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// FuzzSealedValues: bytes that were not sealed are refused; what is accepted once it
// is sealed encodes to the same bytes again, and to no other key's; a changed byte is
// an error.
func FuzzSealedValues(f *testing.F) {
	key := appendPartitionKey(nil, 3)
	f.Add(key, checkpoint{next: 5, lsn: 9, at: -3, epoch: 7}.encode(key)[:checkpointLen-sealedOverhead], uint16(4), byte(1))
	f.Add(make([]byte, conflictKeyLen), make([]byte, conflictValueLen-sealedOverhead), uint16(0), byte(0x80))
	f.Add(appendNumberKey(nil, 7, 16), make([]byte, 8), uint16(11), byte(2))
	f.Add([]byte{}, []byte{}, uint16(0), byte(0))
	for _, s := range sealedSubscriptions() {
		f.Add(s.key, s.value[:len(s.value)-sealedOverhead], uint16(12), byte(3))
	}
	f.Fuzz(func(t *testing.T, key, data []byte, at uint16, flip byte) {
		for name, v := range sealedValues() {
			_, _ = v.again(key, data)
			sealed := seal(bytes.Clone(data), 0, v.bucket, key)
			again, err := v.again(key, sealed)
			if err != nil {
				continue
			}
			if !bytes.Equal(again, sealed) {
				t.Errorf("%s: got %x, want %x", name, again, sealed)
			}
			if _, err := v.again(append(slices.Clone(key), 0), sealed); err == nil {
				t.Errorf("%s: accepted under another key", name)
			}
			if flip == 0 {
				continue
			}
			sealed[int(at)%len(sealed)] ^= flip
			if _, err := v.again(key, sealed); err == nil {
				t.Errorf("%s: byte %d was changed, and is accepted", name, int(at)%len(sealed))
			}
		}
	})
}

// sealedValue decodes a value and encodes it again.
type sealedValue struct {
	bucket []byte
	again  func(key, value []byte) ([]byte, error)
}

func sealedValues() map[string]sealedValue {
	return map[string]sealedValue{
		"number": {bucketNumbers, func(key, value []byte) ([]byte, error) {
			n, err := unsealUint(bucketNumbers, key, value)
			return sealedUint(nil, bucketNumbers, key, n), err
		}},
		"entry of numbers": {bucketNumbers, func(key, value []byte) ([]byte, error) {
			seq, n, err := decodeNumber(key, value)
			if err != nil {
				return nil, err
			}
			_, again := numberEntry(numberPut{ws: messages.WSID(be64(key)), seq: seq, number: n})
			return again, nil
		}},
		"checkpoint": {bucketCheckpoints, func(key, value []byte) ([]byte, error) {
			c, err := decodeCheckpoint(key, value)
			return c.encode(key), err
		}},
		"definition of a subscription": {bucketSubscriptions, func(key, value []byte) ([]byte, error) {
			d, err := decodeDefinition(key, value)
			return d.encode(key), err
		}},
		"position": {bucketPositions, func(key, value []byte) ([]byte, error) {
			p, err := decodePosition(key, value)
			return p.encode(key), err
		}},
		"parked event": {bucketParked, func(key, value []byte) ([]byte, error) {
			e, err := decodeParked(key, value)
			return encodeParked(key, &e), err
		}},
		"conflict": {bucketConflicts, func(key, value []byte) ([]byte, error) {
			e, err := decodeConflict(key, value)
			if err != nil {
				return nil, err
			}
			again := encodeConflict(key, e)
			if e.Record == (messages.RecordID{}) {
				// What is not a record's has no record; the bytes there say nothing.
				copy(again[conflictValueLen-sealedOverhead-8:], value[conflictValueLen-sealedOverhead-8:])
			}
			return again, nil
		}},
	}
}

// sealedSubscriptions are the values of some subscriptions.
func sealedSubscriptions() (all []change) {
	for _, s := range threeSubscriptions() {
		all = append(all, newSubscription(&s)...)
		for p, next := range s.Next {
			all = append(all,
				positionChange(s.Name, placed{partition: p, position: position{next: next}}),
				positionChange(s.Name, placed{partition: p, position: position{next: next, rests: witness{lsn: 5, crc: 6}}}))
		}
	}
	return all
}

// FuzzSubscription: whatever subscription is put is read as it was, by its name alone, and
// what is refused has left nothing.
func FuzzSubscription(f *testing.F) {
	f.Add("name", "stopped", uint32(3), uint32(1), uint64(9), uint8(0), []byte{1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add("a b", "", uint32(1), uint32(0), uint64(2), uint8(1), []byte{})
	f.Add("日本", "\xff", uint32(0), uint32(7), uint64(1), uint8(2), []byte("00000000"))
	s := open(f, f.TempDir(), testDescriptor(2, messages.TrustNone), Options{})
	w := takeOver(f, s, 0)
	w.appendMany(20, 2)
	if err := s.PutSubscription(f.Context(), storage.Subscription{Name: "first"}); err != nil {
		f.Fatal(err)
	}
	s.subscriptions.file.Load().db.NoSync = true
	if err := s.DeleteSubscription(f.Context(), "first"); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, name, reason string, id, tries uint32, next uint64, which uint8, offsets []byte) {
		sub := storage.Subscription{Name: name, Stopped: reason, Next: map[messages.PartitionID]uint64{0: next}}
		switch which % 3 {
		case 1:
			sub.Partition = new(messages.PartitionID(id))
		case 2:
			sub.Workspace = new(messages.WSID(id))
		}
		for _, o := range offsets {
			sub.Parked = append(sub.Parked, storage.ParkedEvent{Offset: uint64(o), Reason: reason, Tries: tries, At: messages.Timestamp(next)})
		}
		slices.SortFunc(sub.Parked, func(a, b storage.ParkedEvent) int { return a.Compare(&b) })
		sub.Parked = slices.Compact(sub.Parked)
		putErr := s.PutSubscription(t.Context(), sub)
		got, err := storagetest.WholeSubscription(t.Context(), s, name)
		if putErr != nil {
			if !errors.Is(putErr, storage.ErrSubscription) || !errors.Is(err, storage.ErrNoSubscription) {
				t.Fatalf("put: got %v, read %v", putErr, err)
			}
			return
		}
		sub.Stopped = storage.CutSubscriptionReason(reason)
		for i := range sub.Parked {
			sub.Parked[i].Reason = sub.Stopped
		}
		if len(sub.Parked) == 0 {
			sub.Parked = nil
		}
		if err != nil || !reflect.DeepEqual(got, sub) {
			t.Fatalf("got %+v, %v, want %+v", got, err, sub)
		}
		if err := s.DeleteSubscription(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		for bucket, v := range dump(t, s.subscriptions.file.Load()) {
			if !strings.HasPrefix(bucket, string(bucketHeader)) {
				t.Fatalf("%s: %x was left", bucket, v)
			}
		}
	})
}

// FuzzDedupBlock: whatever entries a block is made of, it gives them back, and a
// changed byte is an error or changes nothing.
func FuzzDedupBlock(f *testing.F) {
	f.Add(uint64(1), []byte{}, uint16(0), byte(1))
	f.Add(uint64(2), bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9}, 64), uint16(30), byte(4))
	f.Add(uint64(3), bytes.Repeat([]byte{0xff}, 160), uint16(3), byte(0x10))
	f.Fuzz(func(t *testing.T, serial uint64, raw []byte, at uint16, flip byte) {
		var entries []dedupEntry
		for ; len(raw) >= dedupEntryLen; raw = raw[dedupEntryLen:] {
			entries = append(entries, dedupEntry{hash: be64(raw), lsn: messages.LSN(be64(raw[8:]))})
		}
		slices.SortFunc(entries, compareEntries)
		first, last := uint64(0), uint64(lastHash)
		if len(entries) > 0 && serial%2 == 0 {
			first, last = entries[0].hash, entries[len(entries)-1].hash
		}
		key := appendDedupKey(nil, serial, last)
		value := appendDedupBlock(nil, key, first, entries)
		got, err := allEntries(key, value)
		if err != nil || len(got) != len(entries) || len(got) > 0 && !reflect.DeepEqual(got, entries) {
			t.Fatalf("got %v, %v, want %v", got, err, entries)
		}
		value[int(at)%len(value)] ^= flip
		if got, err := allEntries(key, value); err == nil && flip != 0 && !reflect.DeepEqual(got, entries) {
			t.Fatalf("byte %d was changed: got %v, want %v", int(at)%len(value), got, entries)
		}
	})
}

// FuzzEventDamage: a byte of an event's value that is changed, put in or lost is an
// error, and so is the value at another place of the log.
func FuzzEventDamage(f *testing.F) {
	f.Add([]byte("body"), uint64(3), uint16(7), byte(1))
	f.Add([]byte{}, uint64(1), uint16(0), byte(0x40))
	f.Fuzz(func(t *testing.T, body []byte, n uint64, at uint16, flip byte) {
		e := messages.Event{
			Kind: messages.EventBusiness, Epoch: 1, PLogOffset: messages.PLogOffset(n), Workspace: messages.WSID(n), WorkspaceKind: 1,
			WLogOffset: 1, Body: body, Numbers: []messages.SequenceNumber{{Seq: 16, Number: messages.Number(n)}},
			Records: []messages.Record{{ID: messages.RecordID{Seq: 16, Number: messages.Number(n)}, New: true, Data: body}},
		}
		value := encodeEvent(&e)
		lsn := messages.LSN(n)
		sealEvent(value, lsn)
		place := int(at) % len(value)
		changed := bytes.Clone(value)
		changed[place] ^= flip
		for what, damaged := range map[string][]byte{
			"changed": changed, "put in": slices.Insert(bytes.Clone(value), place, flip), "lost": slices.Delete(bytes.Clone(value), place, place+1),
			"cut off": value[:place],
		} {
			var view eventView
			if err := view.decode(lsn, damaged); err == nil && !bytes.Equal(damaged, value) {
				t.Errorf("byte %d %s: accepted", place, what)
			}
		}
		var view eventView
		if err := view.decode(lsn+1, value); err == nil {
			t.Error("accepted at another place of the log")
		}
	})
}

// FuzzMeta: no bytes are taken for a meta page unless they have its checksum, and then
// a changed byte of what bbolt reads is an error.
func FuzzMeta(f *testing.F) {
	const pageSize = 4096
	f.Add(make([]byte, metaEnd), uint16(metaMagicAt), byte(1))
	f.Add(bytes.Repeat([]byte{0xff}, metaEnd), uint16(metaPageSizeAt), byte(0x80))
	f.Fuzz(func(t *testing.T, page []byte, at uint16, flip byte) {
		meta := make([]byte, metaEnd)
		copy(meta, page)
		_ = validMeta(meta, pageSize)
		binary.NativeEndian.PutUint32(meta[metaMagicAt:], metaMagic)
		binary.NativeEndian.PutUint32(meta[metaVersionAt:], metaVersion)
		binary.NativeEndian.PutUint32(meta[metaPageSizeAt:], pageSize)
		binary.NativeEndian.PutUint64(meta[metaChecksumAt:], fnvOf(meta[metaMagicAt:metaChecksumAt]))
		if err := validMeta(meta, pageSize); err != nil {
			t.Fatal(err)
		}
		place := metaMagicAt + int(at)%(metaEnd-metaMagicAt)
		meta[place] ^= flip
		if err := validMeta(meta, pageSize); err == nil && flip != 0 {
			t.Errorf("byte %d was changed, and is accepted", place)
		}
	})
}
