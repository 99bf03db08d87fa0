package format

// These tests look inside: they seal spoilt values again.

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
)

// genNumbers draws numbers that go up.
func genNumbers[N ~uint64 | ~uint16](t *rapid.T, most int, gen *rapid.Generator[N], label string) []N {
	list := rapid.SliceOfNDistinct(gen, 0, most, rapid.ID[N]).Draw(t, label)
	slices.Sort(list)
	return list
}

// anyNumber draws small and large ones.
func anyNumber[N ~uint64](least uint64) *rapid.Generator[N] {
	return rapid.Map(rapid.OneOf(
		rapid.Uint64Range(least, least+200), rapid.Uint64Min(least), rapid.Uint64Range(math.MaxUint64-100, math.MaxUint64),
	), func(n uint64) N { return N(n) })
}

func genHead(t *rapid.T) Head {
	h := Head{
		Kind: messages.WSKind(rapid.Uint16().Draw(t, "kind")), LSNs: genNumbers(t, 70, anyNumber[messages.LSN](1), "lsns"),
	}
	h.Last = messages.WLogOffset(rapid.Uint64Min(uint64(len(h.LSNs))).Draw(t, "last"))
	for _, seq := range genNumbers(t, 5, rapid.Uint16Min(1), "sequences") {
		s := h.Sequence(messages.SeqID(seq))
		if rapid.Bool().Draw(t, "restarts") {
			genPeriods(t, s)
			continue
		}
		s.Number = anyNumber[messages.Number](0).Draw(t, "number")
		for _, n := range genNumbers(t, 20, anyNumber[messages.Number](1), "pointers") {
			s.Point(n, anyNumber[messages.LSN](1).Draw(t, "lsn"))
		}
		if rapid.Bool().Draw(t, "packs") {
			genPacks(t, s)
		}
	}
	set := messages.Timestamp(rapid.Int64Range(-1e15, 1e16).Draw(t, "set"))
	for range rapid.IntRange(0, 20).Draw(t, "zones") {
		zone := calendar.ZoneNamed(rapid.SampledFrom([]string{"UTC", "Europe/Zurich", "Mars/Olympus_Mons"}).Draw(t, "zone"))
		h.Zones = h.Zones.Merge(calendar.ZoneChange{Zone: zone, Set: set.Time()})
		set += messages.Timestamp(rapid.Int64Range(0, 1e14).Draw(t, "later"))
	}
	return h
}

// genPacks draws packs that end far enough below the highest number to be followed by others.
func genPacks(t *rapid.T, s *HeadSequence) {
	s.First = messages.Number(rapid.Uint64Range(1, 1<<40).Draw(t, "first"))
	next := s.First + messages.Number(rapid.SampledFrom([]uint64{0, 1, 1 << 40}).Draw(t, "those of the index"))
	for range rapid.IntRange(1, 40).Draw(t, "packs of the head") {
		e := PackEntry{ID: PackID(rapid.Uint64Min(1).Draw(t, "id")), First: next}
		e.Last = e.First + messages.Number(rapid.Uint64Max(1<<50).Draw(t, "rows"))
		next = e.Last + 1 + messages.Number(rapid.Uint64Max(1<<50).Draw(t, "gap"))
		if len(s.Packs) > 0 {
			s.Packs[len(s.Packs)-1].Next = e.First
		}
		s.Packs = append(s.Packs, e)
		s.Top = max(s.Top, e.Last)
	}
}

func genPeriods(t *rapid.T, s *HeadSequence) {
	s.Older = rapid.Bool().Draw(t, "older")
	periods := rapid.SliceOfNDistinct(rapid.Uint32Min(1), 1, 12, rapid.ID[uint32]).Draw(t, "periods")
	slices.Sort(periods)
	s.ClosedBelow = calendar.Date(rapid.Uint32Max(periods[0]).Draw(t, "closed below"))
	for _, period := range periods {
		s.Periods = append(s.Periods, PeriodNumber{calendar.Date(period), anyNumber[messages.Number](1).Draw(t, "number")})
	}
}

// sameHead compares heads; whether an empty list has memory does not matter.
func sameHead(a, b *Head) bool {
	same := a.Kind == b.Kind && a.Last == b.Last && slices.Equal(a.LSNs, b.LSNs) && len(a.Sequences) == len(b.Sequences) &&
		slices.Equal(a.Zones, b.Zones)
	for i := 0; same && i < len(a.Sequences); i++ {
		s, r := a.Sequences[i], b.Sequences[i]
		same = slices.Equal(s.Pointers, r.Pointers) && slices.Equal(s.Periods, r.Periods) && slices.Equal(s.Packs, r.Packs)
		s.Pointers, r.Pointers, s.Periods, r.Periods, s.Packs, r.Packs = nil, nil, nil, nil, nil, nil
		same = same && reflect.DeepEqual(s, r)
	}
	return same
}

func TestHeadRoundTrip(t *testing.T) {
	var got Head // reused, as a writer does
	rapid.Check(t, func(t *rapid.T) {
		h := genHead(t)
		key := []byte("key4")
		value := h.Encode([]byte("before"), key)[6:]
		expect.NoError(t, got.Decode(key, value))
		if !sameHead(&h, &got) {
			t.Fatalf("got %+v, want %+v", got, h)
		}
		var other Head
		checkSealed(t, value, other.Decode)
	})
}

// A head is changed as a map of maps would be, whatever its memory was used for before.
func TestHeadChanges(t *testing.T) {
	type model struct {
		number, top messages.Number
		pointers    map[messages.Number]messages.LSN
	}
	var h Head
	rapid.Check(t, func(t *rapid.T) {
		fresh := Head{}
		expect.NoError(t, h.Decode(nil, fresh.Encode(nil, nil)))
		want := map[messages.SeqID]*model{}
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			seq := messages.SeqID(rapid.IntRange(16, 21).Draw(t, "seq"))
			m := want[seq]
			if m == nil {
				m = &model{pointers: map[messages.Number]messages.LSN{}}
				want[seq] = m
			}
			n := messages.Number(rapid.IntRange(1, 9).Draw(t, "number"))
			s := h.Sequence(seq)
			if rapid.Bool().Draw(t, "point") {
				lsn := messages.LSN(rapid.Uint64Min(1).Draw(t, "lsn"))
				s.Point(n, lsn)
				m.pointers[n], m.top = lsn, max(m.top, n)
			} else {
				s.Number, m.number = n, n
			}
		}
		expect.Equal(t, len(want), len(h.Sequences))
		for seq, m := range want {
			s := h.Find(seq)
			expect.Equal(t, *m, model{number: h.NumberOf(seq), top: s.Top, pointers: pointersOf(t, s)}, seq)
		}
		if !slices.IsSortedFunc(h.Sequences, func(a, b HeadSequence) int { return int(a.Seq) - int(b.Seq) }) {
			t.Fatalf("not ordered: %v", h.Sequences)
		}
	})
}

func pointersOf(t *rapid.T, s *HeadSequence) map[messages.Number]messages.LSN {
	pointers := map[messages.Number]messages.LSN{}
	below := messages.Number(0)
	for i, p := range s.Pointers {
		if p.Number <= below {
			t.Fatalf("not ordered: %v", s.Pointers)
		}
		if at, found := s.Pointed(p.Number); at != i || !found {
			t.Fatalf("number %d: got %d, %v, want %d", p.Number, at, found, i)
		}
		if at, found := s.Pointed(below + 1); at != i || found != (below+1 == p.Number) {
			t.Fatalf("number %d: got %d, %v, want %d", below+1, at, found, i)
		}
		pointers[p.Number], below = p.LSN, p.Number
	}
	return pointers
}

func TestHeadNumbers(t *testing.T) {
	h := Head{Kind: 7, Last: 9, LSNs: []messages.LSN{4, 5}, Sequences: []HeadSequence{{Seq: 16, Number: 3}}}
	for seq, want := range map[messages.SeqID]messages.Number{KindSeq: 7, messages.SeqWLogOffset: 9, 16: 3, 17: 0} {
		expect.Equal(t, want, h.NumberOf(seq), seq)
	}
	expect.Equal(t, 7, h.Listed())
	if h.Find(17) != nil {
		t.Error("found a sequence that is not there")
	}
}

// What no store writes is refused, although its checksum is right.
func TestHeadRefused(t *testing.T) {
	var h Head
	head := func(rest ...uint64) []byte { return append([]byte{headVersion}, uvarints(rest...)...) }
	const both = flagNumber | flagRecords
	checkFields(t, BucketWorkspaces, h.Decode, []fieldsCase{
		{"empty", head(0, 0, 0, 0), nil},
		{"all", head(3, 9, 2, 5, 1, 2, 16, both, 7, 10, 1, 2, 0, zigzag(8), 3, zigzag(-2), 2, zigzag(9), 1, 2, zigzag(-1), 3, 3, 17, 0), nil},
		{"no bytes", nil, ErrLayout},
		{"version 0", []byte{0, 0, 0, 0, 0}, ErrVersion},
		{"an older version", []byte{headVersion - 1, 0, 0, 0, 0}, ErrVersion},
		{"a newer version", []byte{headZones + 1, 0, 0, 0, 0}, ErrVersion},
		{"a kind beyond its width", head(1<<16, 0, 0, 0), ErrLayout},
		{"something behind", head(0, 0, 0, 0, 0), ErrLayout},
		{"more LSNs than events", head(0, 1, 2, 5, 1, 0), ErrLayout},
		{"an LSN twice", head(0, 2, 2, 5, 0, 0), ErrLayout},
		{"LSN 0", head(0, 2, 1, 0, 0), ErrLayout},
		{"LSNs that go round", head(0, 2, 2, 5, math.MaxUint64, 0), ErrLayout},
		{"more LSNs than bytes", head(0, math.MaxUint64, math.MaxInt32), ErrLayout},
		{"more sequences than bytes", head(0, 0, 0, math.MaxInt32), ErrLayout},
		{"more pointers than bytes", head(0, 0, 0, 1, 16, flagRecords, 10, 0, math.MaxInt32), ErrLayout},
		{"sequence 0", head(0, 0, 0, 1, 0, 0), ErrLayout},
		{"a sequence twice", head(0, 0, 0, 2, 16, 0, 16, 0), ErrLayout},
		{"sequences that go down", head(0, 0, 0, 2, 17, 0, 16, 0), ErrLayout},
		{"unknown flags", head(0, 0, 0, 1, 16, 16), ErrLayout},
		{"unknown flags beside known ones", head(0, 0, 0, 1, 16, 16|both, 7, 10, 0, 0), ErrLayout},
		{"periods", head(0, 0, 0, 2, 16, flagPeriods, 5, 2, 5, 1, 2, 1, 17, flagPeriods|flagOlder, 0, 1, 1, 1), nil},
		{"no period", head(0, 0, 0, 1, 16, flagPeriods, 0, 0), ErrLayout},
		{"a period twice", head(0, 0, 0, 1, 16, flagPeriods, 0, 2, 5, 1, 0, 1), ErrLayout},
		{"period 0", head(0, 0, 0, 1, 16, flagPeriods, 0, 1, 0, 1), ErrLayout},
		{"number 0 of a period", head(0, 0, 0, 1, 16, flagPeriods, 0, 1, 5, 0), ErrLayout},
		{"a period that is closed", head(0, 0, 0, 1, 16, flagPeriods, 6, 1, 5, 1), ErrLayout},
		{"a period beyond its width", head(0, 0, 0, 1, 16, flagPeriods, 0, 2, 5, 1, math.MaxUint32, 1), ErrLayout},
		{"more periods than bytes", head(0, 0, 0, 1, 16, flagPeriods, 0, math.MaxInt32), ErrLayout},
		{"older periods and nothing else", head(0, 0, 0, 1, 16, flagOlder), ErrLayout},
		{"periods beside a number", head(0, 0, 0, 1, 16, flagPeriods|flagNumber, 0, 1, 5, 1), ErrLayout},
		{"periods beside records", head(0, 0, 0, 1, 16, flagPeriods|flagRecords, 0, 1, 5, 1), ErrLayout},
		{"number 0", head(0, 0, 0, 1, 16, flagNumber, 0), ErrLayout},
		{"no highest record", head(0, 0, 0, 1, 16, flagRecords, 0, 1, 0), ErrLayout},
		{"packs behind the highest record", head(0, 0, 0, 1, 16, flagRecords, 10, 11, 0, 1, zigzag(9), 0, 0), ErrLayout},
		{"a pack that ends behind it", head(0, 0, 0, 1, 16, flagRecords, 10, 5, 0, 1, zigzag(9), 0, 6), ErrLayout},
		{"no pack", head(0, 0, 0, 1, 16, flagRecords, 10, 1, 0, 0), ErrLayout},
		{"pack 0", head(0, 0, 0, 1, 16, flagRecords, 10, 1, 0, 1, zigzag(0), 0, 0), ErrLayout},
		{"a pack in another one", head(0, 0, 0, 1, 16, flagRecords, 10, 1, 0, 2, zigzag(9), 0, 2, zigzag(1), 0, 1), ErrLayout},
		{"packs that go round", head(0, 0, 0, 1, 16, flagRecords, 10, 1, 0, 2, zigzag(9), 5, 0, zigzag(1), math.MaxUint64-2, 0), ErrLayout},
		{"rows that go round", head(0, 0, 0, 1, 16, flagRecords, 10, 1, 0, 1, zigzag(9), 5, math.MaxUint64-2), ErrLayout},
		{"more packs than bytes", head(0, 0, 0, 1, 16, flagRecords, 10, 1, 0, math.MaxInt32), ErrLayout},
		{"a pointer twice", head(0, 0, 0, 1, 16, flagRecords, 10, 0, 2, 1, zigzag(8), 0, zigzag(1)), ErrLayout},
		{"a pointer of record 0", head(0, 0, 0, 1, 16, flagRecords, 10, 0, 1, 10, zigzag(8)), ErrLayout},
		{"a pointer below 0", head(0, 0, 0, 1, 16, flagRecords, 10, 0, 1, 11, zigzag(8)), ErrLayout},
		{"a pointer to LSN 0", head(0, 0, 0, 1, 16, flagRecords, 10, 0, 1, 0, zigzag(0)), ErrLayout},
	})
}

func FuzzDecodeHead(f *testing.F) {
	h := Head{Kind: 1, Last: 70, LSNs: []messages.LSN{5, 8}}
	*h.Sequence(16) = HeadSequence{Seq: 16, Number: 9, Top: 9, First: 2, Pointers: []Pointer{{Number: 3, LSN: 8}, {Number: 9, LSN: 5}}}
	h.Sequence(17).Number = 1
	*h.Sequence(18) = HeadSequence{
		Seq: 18, Periods: []PeriodNumber{{20260328, 3}, {20260329, 1}}, ClosedBelow: 20260327, Older: true,
	}
	key := []byte("key")
	value := h.Encode(nil, key)
	f.Add(value[:len(value)-SealedOverhead])
	f.Add([]byte{headVersion, 0, 0, 0, 1, 16, flagRecords, 0, 1, 0})
	f.Add([]byte{headZones, 0, 0, 0, 0, 1, 3, 'U', 'T', 'C', 8})
	f.Add([]byte{headVersion, 0, 0, 0, 1, 16, flagPeriods | flagOlder, 3, 2, 3, 1, 1, 9})
	// The data gets a right checksum, so that the fuzzer reaches the decoder.
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, again Head
		_ = got.Decode(key, data)
		if got.Decode(key, Seal(slices.Clone(data), 0, BucketWorkspaces, key)) != nil {
			return
		}
		expect.NoError(t, again.Decode(key, got.Encode(nil, key)))
		if !sameHead(&got, &again) {
			t.Fatalf("got %+v, want %+v", again, got)
		}
	})
}
