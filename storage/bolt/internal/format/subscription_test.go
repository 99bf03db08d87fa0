package format

// These tests look inside: they seal spoilt values again.

import (
	"bytes"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
)

func genDefinition(t *rapid.T) Definition {
	d := Definition{
		Positions: rapid.Uint32().Draw(t, "positions"), Parked: rapid.Uint64().Draw(t, "parked"),
		Stopped: rapid.String().Draw(t, "stopped"),
	}
	switch rapid.IntRange(0, 2).Draw(t, "source") {
	case 1:
		d.Partition = new(messages.PartitionID(rapid.Uint32().Draw(t, "partition")))
	case 2:
		d.Workspace = new(messages.WSID(rapid.Uint64().Draw(t, "workspace")))
	}
	for range rapid.IntRange(0, 3).Draw(t, "kinds") {
		d.Kinds = append(d.Kinds, messages.WSKind(rapid.Uint16().Draw(t, "kind")))
	}
	return d
}

func TestDefinitionRoundTrip(t *testing.T) {
	key := []byte("key4")
	rapid.Check(t, func(t *rapid.T) {
		d := genDefinition(t)
		value := d.Encode(key)
		got, err := DecodeDefinition(key, value)
		expect.NoError(t, err)
		expect.Equal(t, d, got)
		checkSealed(t, value, func(k, v []byte) error { _, err := DecodeDefinition(k, v); return err })
	})
}

func TestDefinitionRefused(t *testing.T) {
	key := []byte("key")
	good := make([]byte, subscriptionFixed)
	spoilt := func(at int, b ...byte) []byte {
		data := bytes.Clone(good)
		copy(data[at:], b)
		return data
	}
	for what, data := range map[string][]byte{
		"too short": good[1:], "an unknown source": spoilt(12, 3), "an id of all": spoilt(20, 1),
		"a partition beyond its width": spoilt(12, sourcePartition, 0, 0, 0, 1), "more kinds than there are": spoilt(22, 1),
	} {
		_, err := DecodeDefinition(key, Seal(data, 0, BucketSubscriptions, key))
		expect.ErrorIs(t, err, ErrLayout, what)
	}
}

func TestParkedRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := storage.ParkedEvent{
			Partition: messages.PartitionID(rapid.Uint32().Draw(t, "partition")), Offset: rapid.Uint64().Draw(t, "offset"),
			At: messages.Timestamp(rapid.Int64().Draw(t, "at")), Tries: rapid.Uint32().Draw(t, "tries"), Reason: rapid.String().Draw(t, "reason"),
		}
		key := ParkedKey("name", e.Partition, e.Offset)
		if !bytes.HasPrefix(key, SubscriptionPrefix("name")) || !bytes.HasPrefix(key, PositionKey("name", e.Partition)) {
			t.Fatalf("key %x is not among its subscription's", key)
		}
		value := EncodeParked(key, &e)
		got, err := DecodeParked(key, value)
		expect.NoError(t, err)
		expect.Equal(t, e, got)
		for n := range value {
			if _, err := DecodeParked(key, value[:n:n]); err == nil {
				t.Fatalf("accepted after %d of %d bytes", n, len(value))
			}
		}
	})
	short, key := make([]byte, parkedFixed), []byte("key")
	_, err := DecodeParked(key, Seal(short, 0, BucketParked, key))
	expect.ErrorIs(t, err, ErrLayout, "a key without a place")
	_, err = DecodeParked(ParkedKey("name", 1, 2), nil)
	expect.ErrorIs(t, err, ErrTruncated)
}

func FuzzDecodeSubscription(f *testing.F) {
	d := Definition{Positions: 1, Parked: 2, Stopped: "why"}
	d.Workspace = new(messages.WSID(math.MaxUint64))
	key := ParkedKey("name", 1, 2)
	value := d.Encode(key)
	f.Add(value[:len(value)-SealedOverhead])
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = DecodeDefinition(key, data)
		_, _ = DecodeParked(key, data)
		if d, err := DecodeDefinition(key, Seal(bytes.Clone(data), 0, BucketSubscriptions, key)); err == nil {
			again, err := DecodeDefinition(key, d.Encode(key))
			expect.NoError(t, err)
			expect.Equal(t, d, again)
		}
		if e, err := DecodeParked(key, Seal(bytes.Clone(data), 0, BucketParked, key)); err == nil {
			again, err := DecodeParked(key, EncodeParked(key, &e))
			expect.NoError(t, err)
			expect.Equal(t, e, again)
		}
	})
}
