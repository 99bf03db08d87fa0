package bolt

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/subsdb"
	"github.com/partita-go/partita/storage/storagetest"
)

// FuzzSealedValues: bytes that were not sealed are refused; what is accepted once it
// is sealed encodes to the same bytes again, and to no other key's; a changed byte is
// an error.
func FuzzSealedValues(f *testing.F) {
	key := format.AppendPartitionKey(nil, 3)
	f.Add(key, format.Checkpoint{Next: 5, LSN: 9, RegisteredAt: -3, Epoch: 7}.Encode(key)[:format.CheckpointLen-format.SealedOverhead], uint16(4), byte(1))
	f.Add(make([]byte, format.ConflictKeyLen), make([]byte, format.ConflictValueLen-format.SealedOverhead), uint16(0), byte(0x80))
	f.Add(format.AppendSequenceKey(nil, 7, 16), make([]byte, 8), uint16(11), byte(2))
	f.Add([]byte{}, []byte{}, uint16(0), byte(0))
	for _, s := range sealedSubscriptions() {
		f.Add(s.Key, s.Value[:len(s.Value)-format.SealedOverhead], uint16(12), byte(3))
	}
	f.Fuzz(func(t *testing.T, key, data []byte, at uint16, flip byte) {
		for name, v := range sealedValues() {
			_, _ = v.again(key, data)
			sealed := format.Seal(bytes.Clone(data), 0, v.bucket, key)
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
		"checkpoint": {format.BucketCheckpoints, func(key, value []byte) ([]byte, error) {
			if len(value) != format.CheckpointLen {
				return nil, errors.ErrUnsupported // of format 3
			}
			c, err := format.DecodeCheckpoint(key, value)
			return c.Encode(key), err
		}},
		"definition of a subscription": {format.BucketSubscriptions, func(key, value []byte) ([]byte, error) {
			d, err := format.DecodeDefinition(key, value)
			return d.Encode(key), err
		}},
		"position": {format.BucketPositions, func(key, value []byte) ([]byte, error) {
			p, err := subsdb.DecodePosition(key, value)
			return p.Encode(key), err
		}},
		"parked event": {format.BucketParked, func(key, value []byte) ([]byte, error) {
			e, err := format.DecodeParked(key, value)
			return format.EncodeParked(key, &e), err
		}},
		"conflict": {format.BucketConflicts, func(key, value []byte) ([]byte, error) {
			e, err := format.DecodeConflict(key, value)
			if err != nil {
				return nil, err
			}
			again := format.EncodeConflict(key, e)
			if e.Record == (messages.RecordID{}) {
				// What is not a record's has no record; the bytes there say nothing.
				copy(again[format.ConflictValueLen-format.SealedOverhead-8:], value[format.ConflictValueLen-format.SealedOverhead-8:])
			}
			return again, nil
		}},
	}
}

// sealedSubscriptions are the values of some subscriptions.
func sealedSubscriptions() (all []subsdb.Change) {
	for _, s := range threeSubscriptions() {
		all = append(all, subsdb.NewSubscription(&s)...)
		for p, next := range s.Next {
			all = append(all,
				subsdb.PositionChange(s.Name, subsdb.Placed{Partition: p, Position: subsdb.Position{Next: next}}),
				subsdb.PositionChange(s.Name, subsdb.Placed{Partition: p, Position: subsdb.Position{Next: next, Rests: format.Witness{LSN: 5, CRC: 6}}}))
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
	s.files.Subscriptions.Load().DB.NoSync = true
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
		for bucket, v := range dump(t, s.files.Subscriptions.Load()) {
			if !strings.HasPrefix(bucket, string(format.BucketHeader)) {
				t.Fatalf("%s: %x was left", bucket, v)
			}
		}
	})
}
