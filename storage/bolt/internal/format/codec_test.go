package format

// These tests look inside: they seal spoilt values again, so that what is behind the checksums is reached.

import (
	"bytes"
	"errors"
	"hash/crc32"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
)

// genData draws data as a decoder returns it: nil if empty.
func genData(t *rapid.T, label string) []byte {
	if data := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, label); len(data) > 0 {
		return data
	}
	return nil
}

func genSequenceNumbers(t *rapid.T) []messages.SequenceNumber {
	var list []messages.SequenceNumber
	for range rapid.IntRange(0, 4).Draw(t, "runs") {
		seq := messages.SeqID(rapid.Uint16().Draw(t, "seq"))
		first := rapid.Uint64().Draw(t, "first")
		for i := range uint64(rapid.IntRange(1, 5).Draw(t, "length")) {
			list = append(list, messages.SequenceNumber{Seq: seq, Number: messages.Number(first + i)})
		}
	}
	return list
}

func genEvent(t *rapid.T) messages.Event {
	e := messages.Event{
		Kind:          messages.EventKind(rapid.Byte().Draw(t, "kind")),
		Epoch:         messages.Epoch(rapid.Uint64().Draw(t, "epoch")),
		Partition:     messages.PartitionID(rapid.Uint32().Draw(t, "partition")),
		PLogOffset:    messages.PLogOffset(rapid.Uint64().Draw(t, "offset")),
		Workspace:     messages.WSID(rapid.Uint64().Draw(t, "workspace")),
		WorkspaceKind: messages.WSKind(rapid.Uint16().Draw(t, "workspace kind")),
		WLogOffset:    messages.WLogOffset(rapid.Uint64().Draw(t, "wlog")),
		RegisteredAt:  messages.Timestamp(rapid.Int64().Draw(t, "time")),
		Numbers:       genSequenceNumbers(t),
		Body:          genData(t, "body"),
		DedupID:       rapid.SampledFrom([]messages.DedupID{{}, {1}, {15: 255}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}}).Draw(t, "id"),
		Together:      rapid.OneOf(rapid.Just(uint32(0)), rapid.Uint32()).Draw(t, "together"),
	}
	e.Brought = uint32(rapid.IntRange(0, len(e.Numbers)).Draw(t, "brought"))
	for range rapid.IntRange(0, 2).Draw(t, "moves") {
		e.Moves = append(e.Moves, messages.SequenceNumber{
			Seq: messages.SeqID(rapid.Uint16().Draw(t, "seq")), Period: calendar.Date(rapid.Uint32().Draw(t, "period")),
			Number: messages.Number(rapid.Uint64().Draw(t, "number")),
		})
	}
	for range rapid.IntRange(0, 3).Draw(t, "records") {
		id := messages.RecordID{Seq: messages.SeqID(rapid.Uint16().Draw(t, "seq")), Number: messages.Number(rapid.Uint64().Draw(t, "number"))}
		if len(e.Numbers) > 0 && rapid.Bool().Draw(t, "given") {
			id = rapid.SampledFrom(e.Numbers).Draw(t, "number").Record()
		}
		e.Records = append(e.Records, messages.Record{ID: id, New: rapid.Bool().Draw(t, "new"), Data: genData(t, "row")})
	}
	for range rapid.IntRange(0, 2).Draw(t, "sections") {
		e.Sections = append(e.Sections, messages.Section{Tag: rapid.Uint16Min(messages.MaxReservedTag+1).Draw(t, "tag"), Data: genData(t, "section")})
	}
	return e
}

func TestEventRoundTrip(t *testing.T) {
	var view EventView // reused, as a scan does
	rapid.Check(t, func(t *rapid.T) {
		e := genEvent(t)
		lsn := messages.LSN(rapid.Uint64().Draw(t, "lsn"))
		value := EncodeEvent(&e)
		SealEvent(value, lsn)
		if err := view.Decode(lsn, value); err != nil {
			t.Fatal(err)
		}
		got := view.Event()
		if !reflect.DeepEqual(got, e) {
			t.Fatalf("got %+v, want %+v", got, e)
		}
		want := e.Numbering()
		if numbers := view.Numbering(); len(numbers) != len(want.Numbers) || len(numbers) > 0 && !reflect.DeepEqual(numbers, want.Numbers) {
			t.Fatalf("numbering: got %v, want %v", numbers, want.Numbers)
		}
		clear(value) // the copy must not depend on the value
		if !reflect.DeepEqual(got, e) {
			t.Fatal("the decoded event shares memory with its value")
		}
	})
}

// Any single changed bit, and any other key, is found out.
func TestEventDamageIsFound(t *testing.T) {
	var view EventView
	rapid.Check(t, func(t *rapid.T) {
		e := genEvent(t)
		value := EncodeEvent(&e)
		SealEvent(value, 7)
		if view.Decode(8, value) == nil {
			t.Fatal("a value under another key was accepted")
		}
		at := rapid.IntRange(0, 8*len(value)-1).Draw(t, "bit")
		value[at/8] ^= 1 << (at % 8)
		if view.Decode(7, value) == nil {
			t.Fatalf("a change of bit %d was not found", at)
		}
		if view.Decode(7, value[:rapid.IntRange(0, len(value)-1).Draw(t, "length")]) == nil {
			t.Fatal("a value cut short was accepted")
		}
	})
}

func TestLargeEventNumbering(t *testing.T) {
	var e messages.Event
	for i := range messages.MaxEventNumbers {
		n := messages.SequenceNumber{Seq: 16, Number: messages.Number(3 * (i + 1))}
		e.Numbers = append(e.Numbers, n)
		e.Records = append(e.Records, messages.Record{ID: n.Record(), New: i%2 == 0})
	}
	e.Records = append(e.Records, messages.Record{ID: messages.RecordID{Seq: 16, Number: 1}, New: true})
	value := EncodeEvent(&e)
	SealEvent(value, 1)
	var view EventView
	if err := view.Decode(1, value); err != nil {
		t.Fatal(err)
	}
	if n := view.Numbering(); len(n) != messages.MaxEventNumbers+1 || n[len(n)-1].Number != 1 {
		t.Fatalf("got %d numbers", len(n))
	}
}

var someDescriptor = messages.Descriptor{
	Application: "test", Partitions: 4, TrustLevel: messages.TrustRecords,
	Kinds: []messages.Kind{{ID: 1, Name: "tenant", Sequences: []messages.Sequence{
		{ID: 16, Name: "invoice", Initial: 1000, Largest: 9_999_999, Formats: []string{"INV-{n}", "{n:07}"}},
		{ID: 17, Name: "receipt", Initial: 1, Largest: messages.LargestDefault, Restart: messages.Restart{
			Rule: calendar.Rule{Every: calendar.Year, FirstMonth: 7}, Zone: "Europe/Zurich", Keep: 2, Ahead: -1,
		}},
	}}},
}

func TestHeaderErrors(t *testing.T) {
	h := Header{Format: Version, Role: RoleLog, ID: StoreID{1, 2, 3}, Descriptor: someDescriptor}
	good := h.Encode()
	got, err := DecodeHeader(good)
	if err != nil || !reflect.DeepEqual(got, h) {
		t.Fatalf("got %+v, %v", got, err)
	}
	newer := bytes.Clone(good)
	newer[9]++
	if _, err := DecodeHeader(newer); !errors.Is(err, storage.ErrFormat) {
		t.Fatalf("newer format: got %v", err)
	}
	if _, err := DecodeHeader([]byte("something else")); !errors.Is(err, storage.ErrForeign) {
		t.Fatalf("no header: got %v", err)
	}
	flipped := bytes.Clone(good)
	flipped[30] ^= 1
	if _, err := DecodeHeader(flipped); !errors.Is(err, ErrChecksum) {
		t.Fatalf("damaged header: got %v", err)
	}
}

// What a checkpoint says is kept, and what contradicts itself is refused.
func TestCheckpoint(t *testing.T) {
	key := []byte("key4")
	rapid.Check(t, func(t *rapid.T) {
		c := Checkpoint{
			Next: messages.PLogOffset(rapid.Uint64Min(1).Draw(t, "next")), LSN: messages.LSN(rapid.Uint64().Draw(t, "lsn")),
			RegisteredAt: messages.Timestamp(rapid.Int64().Draw(t, "at")), Epoch: messages.Epoch(rapid.Uint64().Draw(t, "epoch")),
			Target:  messages.PLogOffset(rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64()).Draw(t, "target")),
			Through: messages.WSID(rapid.Uint64().Draw(t, "through")),
		}
		value := c.Encode(key)
		got, err := DecodeCheckpoint(key, value)
		if c.Target != 0 && c.Target <= c.Next {
			expect.ErrorIs(t, err, ErrLayout)
			return
		}
		expect.NoError(t, err)
		expect.Equal(t, c, got)
		checkSealed(t, value, func(k, v []byte) error { _, err := DecodeCheckpoint(k, v); return err })
	})
	for _, c := range []Checkpoint{{}, {Next: 5, Target: 5}} {
		_, err := DecodeCheckpoint(key, c.Encode(key))
		expect.ErrorIs(t, err, ErrLayout, c)
	}
}

func TestSealedValues(t *testing.T) {
	e := &storage.ConflictError{
		Place: storage.PlaceRecord, Partition: 3, PLogOffset: 4, LSN: 5, Workspace: 6, WLogOffset: 7,
		Record: messages.RecordID{Seq: 8, Number: 9},
	}
	ck := ConflictKeyOf(e).Append(nil)
	back, err := DecodeConflict(ck, EncodeConflict(ck, e))
	if err != nil || *back != *e {
		t.Fatalf("got %+v, %v", back, err)
	}
}

func FuzzDecodeEvent(f *testing.F) {
	e := messages.Event{
		Kind: 1, Epoch: 2, Partition: 3, PLogOffset: 4, Workspace: 5, WorkspaceKind: 6, WLogOffset: 7, RegisteredAt: 8,
		Numbers:  []messages.SequenceNumber{{Seq: 2, Number: 9}, {Seq: 2, Number: 10}, {Seq: 16, Number: 1}},
		Body:     []byte("body"),
		Records:  []messages.Record{{ID: messages.RecordID{Seq: 2, Number: 9}, New: true, Data: []byte("row")}},
		Sections: []messages.Section{{Tag: 16, Data: []byte("section")}},
	}
	f.Add(uint64(1), false, EncodeEvent(&e)[EventHeaderLen:])
	f.Add(uint64(2), true, []byte{})
	f.Add(uint64(3), false, EncodeEvent(&messages.Event{})[EventHeaderLen:])
	e.DedupID, e.Together = messages.DedupID{1, 2}, 300
	f.Add(uint64(5), true, EncodeEvent(&e)[EventHeaderLen:])
	e.Date, e.Brought, e.Moves = 20260329, 2, []messages.SequenceNumber{{Seq: 17, Period: 20260101, Number: 4000}}
	f.Add(uint64(7), true, EncodeEvent(&e)[EventHeaderLen:])
	f.Add(uint64(4), true, bytes.Repeat([]byte{0xff}, 64))
	// The payload gets a right checksum, so that the fuzzer reaches the decoder.
	f.Fuzz(func(t *testing.T, lsn uint64, reserved bool, payload []byte) {
		var raw EventView
		_ = raw.Decode(messages.LSN(lsn), payload)
		var view EventView
		version := byte(eventVersion)
		if reserved {
			version = eventReserved + byte(lsn%2)
		}
		if err := view.Decode(messages.LSN(lsn), resealedAs(version, payload, messages.LSN(lsn))); err != nil {
			return
		}
		e := view.Event()
		if versionOf(&e) != version {
			// The version that the event needs would say something else.
			return
		}
		again := EncodeEvent(&e)
		SealEvent(again, messages.LSN(lsn))
		var second EventView
		if err := second.Decode(messages.LSN(lsn), again); err != nil {
			t.Fatal(err)
		}
		if got := second.Event(); !reflect.DeepEqual(got, e) {
			t.Fatalf("got %+v, want %+v", got, e)
		}
	})
}

// resealedAs makes a value of a payload.
func resealedAs(version byte, payload []byte, lsn messages.LSN) []byte {
	value := append([]byte{version, 0, 0, 0, 0}, payload...)
	crc := sumOf(payload)
	value[1], value[2], value[3], value[4] = byte(crc>>24), byte(crc>>16), byte(crc>>8), byte(crc)
	SealEvent(value, lsn)
	return value
}

func FuzzDecodeHeader(f *testing.F) {
	h := Header{Role: RoleState, ID: StoreID{9}, Descriptor: someDescriptor}
	f.Add(h.Encode())
	f.Add([]byte(Magic))
	f.Fuzz(func(t *testing.T, value []byte) {
		_, _ = DecodeHeader(value)
		if len(value) < HeaderFixed+4 {
			return
		}
		copy(value, Magic)
		value[8], value[9] = 0, Version
		end := len(value) - 4
		crc := sumOf(value[:end])
		value[end], value[end+1], value[end+2], value[end+3] = byte(crc>>24), byte(crc>>16), byte(crc>>8), byte(crc)
		h, err := DecodeHeader(value)
		if err != nil {
			return
		}
		h.Format = h.Role.format() // what is encoded has the current one
		again, err := DecodeHeader(h.Encode())
		if err != nil || !reflect.DeepEqual(again, h) {
			t.Fatalf("got %+v, %v, want %+v", again, err, h)
		}
	})
}

// updateCRC is what the library computes.
func TestUpdateCRC(t *testing.T) {
	data := []byte("partita: a few bytes")
	for n := range len(data) {
		for split := range n {
			want := crc32.Checksum(data[:n], Castagnoli)
			if got := updateCRC(crc32.Checksum(data[:split], Castagnoli), data[split:n]); got != want {
				t.Fatalf("%d bytes, cut at %d: got %x, want %x", n, split, got, want)
			}
		}
	}
}

func sumOf(data []byte) uint32 { return crc32.Checksum(data, Castagnoli) }

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
		value := EncodeEvent(&e)
		lsn := messages.LSN(n)
		SealEvent(value, lsn)
		place := int(at) % len(value)
		changed := bytes.Clone(value)
		changed[place] ^= flip
		for what, damaged := range map[string][]byte{
			"changed": changed, "put in": slices.Insert(bytes.Clone(value), place, flip), "lost": slices.Delete(bytes.Clone(value), place, place+1),
			"cut off": value[:place],
		} {
			var view EventView
			if err := view.Decode(lsn, damaged); err == nil && !bytes.Equal(damaged, value) {
				t.Errorf("byte %d %s: accepted", place, what)
			}
		}
		var view EventView
		if err := view.Decode(lsn+1, value); err == nil {
			t.Error("accepted at another place of the log")
		}
	})
}
