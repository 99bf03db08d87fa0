package statedb

import (
	"bytes"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// The sequences of the model, by how their records are numbered.
const (
	seqAscending messages.SeqID = iota + 16
	seqDescending
	seqScattered
	seqSingletons
	seqWide
	seqNumbersOnly
	seqEnd
)

// records makes the records of an event.
func (w *workspaceModel) records(r *rand.Rand, seq messages.SeqID, n, size int) (list []messages.Record) {
	last := messages.Number(0)
	if w != nil {
		last = messages.Number(len(w.rows[seq]))
	}
	for range n {
		id := messages.RecordID{Seq: seq}
		switch seq {
		case seqAscending:
			last++
			id.Number = last
		case seqDescending:
			last++
			id.Number = 1<<40 - last
		case seqSingletons:
			id.Number = 1 + messages.Number(r.IntN(3))
		case seqWide:
			id.Number = messages.Number(math.MaxUint64 - r.Uint64N(4)<<(r.UintN(32)*2))
			id.Number = max(id.Number, 1)
		default:
			id.Number = 1 + messages.Number(r.IntN(400))
		}
		data := make([]byte, r.IntN(size+1))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		list = append(list, messages.Record{ID: id, Data: data})
	}
	return list
}

// appendSome appends events of one kind to the log.
func (m *model) appendSome(t *rapid.T) {
	ws := messages.WSID(rapid.IntRange(0, 3).Draw(t, "workspace"))
	events := rapid.SampledFrom([]int{1, 2, 7, 20, 63, 64, 130}).Draw(t, "events")
	seq := messages.SeqID(rapid.IntRange(int(seqAscending), int(seqEnd)-1).Draw(t, "sequence"))
	records := rapid.SampledFrom([]int{1, 1, 2, 5, 70}).Draw(t, "records")
	size := rapid.SampledFrom([]int{0, 10, 300, 3 * packBytes}).Draw(t, "size")
	spoil := rapid.SampledFrom([]int{0, 0, 2, 5}).Draw(t, "spoil")
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	if size > 1000 || records > 5 {
		events = min(events, 7)
	}
	for range events {
		n := messages.SequenceNumber{Seq: seq, Number: messages.Number(r.IntN(3) * r.IntN(1000))}
		var list []messages.Record
		if seq != seqNumbersOnly {
			list = m.workspaces[ws].records(r, seq, r.IntN(records+1), size)
		}
		if r.IntN(4) == 0 { // another sequence beside it
			list = append(list, m.workspaces[ws].records(r, seqSingletons, 2, size)...)
		}
		lsn := m.append(ws, n, list)
		if spoil > 0 && r.IntN(spoil) == 0 {
			m.spoil(r, lsn)
		}
	}
}

// spoil makes an event unreadable, or another one than the one that state.db means.
func (m *model) spoil(r *rand.Rand, lsn messages.LSN) {
	m.spoilt[lsn] = true
	value := m.log[lsn-1]
	switch r.IntN(4) {
	case 0:
		m.log[lsn-1] = nil
		return
	case 1:
		value[r.IntN(len(value))] ^= 1
		return
	}
	e := *m.pending[len(m.pending)-1]
	if r.IntN(2) == 0 {
		e.Records = nil
	} else {
		e.Workspace++
	}
	m.log[lsn-1] = format.EncodeEvent(&e)
	format.SealEvent(m.log[lsn-1], lsn)
}

// What a writer has written is read as it is, and takes no more room than it should.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		state, closeState := newState(t)
		defer closeState()
		m := newModel(state)
		for range rapid.IntRange(1, 8).Draw(rt, "transactions") {
			for range rapid.IntRange(1, 5).Draw(rt, "appends") {
				m.appendSome(rt)
			}
			m.flush(rt)
			for ws := range messages.WSID(5) {
				m.checkLog(rt, ws)
				m.checkNumbers(rt, ws)
				for seq := seqAscending - 1; seq < seqEnd; seq++ {
					m.checkRows(rt, ws, seq)
				}
			}
			m.checkPacks(rt)
		}
	})
}

// of returns what a workspace should have.
func (m *model) of(ws messages.WSID) *workspaceModel {
	if w := m.workspaces[ws]; w != nil {
		return w
	}
	return &workspaceModel{}
}

func (m *model) checkLog(t *rapid.T, ws messages.WSID) {
	w := m.of(ws)
	last, err := WLogEnd(m.state, ws)
	expect.NoError(t, err)
	expect.Equal(t, messages.WLogOffset(len(w.lsns)), last)
	from := messages.WLogOffset(1)
	to := last + 1
	for range 3 {
		lsns, err := WLog(m.state, ws, from, to)
		expect.NoError(t, err, ws, from, to)
		if !slices.Equal(w.lsns[from-1:to-1], lsns) {
			t.Fatalf("workspace %d, %d to %d: got %v, want %v", ws, from, to, lsns, w.lsns[from-1:to-1])
		}
		from = messages.WLogOffset(rapid.IntRange(1, len(w.lsns)+1).Draw(t, "from"))
		to = messages.WLogOffset(rapid.IntRange(int(from), len(w.lsns)+1).Draw(t, "to"))
	}
	lsns, err := WLog(m.state, ws, from, last+2)
	if !damaged(err) || !slices.Equal(w.lsns[from-1:], lsns) {
		t.Fatalf("workspace %d, one too many from %d: got %v, %v", ws, from, lsns, err)
	}
}

func (m *model) checkNumbers(t *rapid.T, ws messages.WSID) {
	w := m.of(ws)
	want := storage.WorkspaceNumbers{Workspace: ws, Kind: w.kind}
	if len(w.lsns) > 0 {
		want.Numbers = []messages.SequenceNumber{{Seq: messages.SeqWLogOffset, Number: messages.Number(len(w.lsns))}}
	}
	for _, seq := range slices.Sorted(maps.Keys(w.numbers)) {
		want.Numbers = append(want.Numbers, messages.SequenceNumber{Seq: seq, Number: w.numbers[seq]})
	}
	got, err := Numbers(m.state, ws, keepsNone, func(*format.Head) {})
	expect.NoError(t, err)
	expect.Equal(t, want, got)
}

// rowsOf returns what a range should have.
func (w *workspaceModel) rowsOf(r storage.RecordRange) (rows []Row) {
	for _, n := range slices.Sorted(maps.Keys(w.rows[r.Seq])) {
		if n >= r.From && n <= r.To {
			rows = append(rows, w.rows[r.Seq][n])
		}
	}
	return rows
}

func (m *model) checkRows(t *rapid.T, ws messages.WSID, seq messages.SeqID) {
	w := m.of(ws)
	m.checkRange(t, ws, AllRows(seq), 1<<20, math.MaxInt)
	if len(w.rows[seq]) == 0 {
		return
	}
	limit, size := rapid.IntRange(1, 100).Draw(t, "limit"), rapid.SampledFrom([]int{1, 1000, 1 << 20}).Draw(t, "bytes")
	m.checkRange(t, ws, storage.RecordRange{Seq: seq, From: 1, To: math.MaxUint64}, limit, size)
	numbers := slices.Collect(maps.Keys(w.rows[seq]))
	slices.Sort(numbers)
	// near draws a number that is there, or beside one.
	near := func(label string) messages.Number {
		return rapid.SampledFrom(numbers).Draw(t, label) + messages.Number(rapid.IntRange(-1, 1).Draw(t, "beside"))
	}
	from, to := near("from"), near("to")
	m.checkRange(t, ws, storage.RecordRange{Seq: seq, From: from, To: to}, limit, size)
	m.checkRange(t, ws, storage.RecordRange{Seq: seq, From: to, To: from}, limit, size)
	for _, n := range []messages.Number{from, to, near("number"), near("number"), 1, math.MaxUint64} {
		m.checkRange(t, ws, storage.RecordRange{Seq: seq, From: n, To: n}, 1, 1)
		view(t, m.state, func(tx *bbolt.Tx) error {
			writer := m.newWriter(tx)
			expect.NoError(t, writer.Load(ws))
			lsn, err := writer.Written(messages.RecordID{Seq: seq, Number: n})
			expect.NoError(t, err)
			expect.Equal(t, w.rows[seq][n].LSN, lsn, ws, seq, n)
			return nil
		})
	}
}

// checkRange reads a range in chunks.
func (m *model) checkRange(t *rapid.T, ws messages.WSID, r storage.RecordRange, limit, bytesLimit int) {
	want := m.of(ws).rowsOf(r)
	for {
		rows, next, err := Rows(m.state, ws, r, limit, bytesLimit)
		expect.NoError(t, err, ws, r)
		if len(rows) > len(want) {
			t.Fatalf("workspace %d, %v: got %d rows, want %d", ws, r, len(rows), len(want))
		}
		size := 0
		for i := range rows {
			m.checkRow(t, rows[i], want[i])
			if size >= bytesLimit {
				t.Fatalf("workspace %d, %v: got %d rows of %d bytes and more", ws, r, i, size)
			}
			size += len(rows[i].Data)
		}
		want = want[len(rows):]
		if len(rows) > limit || next != 0 && len(rows) < limit && size < bytesLimit {
			t.Fatalf("workspace %d, %v: got %d rows of %d bytes, limits are %d and %d", ws, r, len(rows), size, limit, bytesLimit)
		}
		if len(want) == 0 {
			expect.Equal(t, 0, next, "nothing follows")
			return
		}
		expect.Equal(t, want[0].ID.Number, next, ws, r, "what follows")
		r.From = next
	}
}

func (m *model) checkRow(t *rapid.T, got, want Row) {
	readable := !m.spoilt[want.LSN]
	if got.Pointed {
		expect.Equal(t, Row{Row: storage.Row{ID: want.ID}, LSN: want.LSN, Pointed: true}, got)
	} else if !readable || !bytes.Equal(got.Data, want.Data) || (got.Data == nil) != (len(want.Data) == 0) ||
		got.ID != want.ID || got.LSN != want.LSN || got.Partition != want.Partition || got.PLogOffset != want.PLogOffset {
		t.Fatalf("got %v, want %v, readable: %v", got, want, readable)
	}
}

// checkPacks makes sure that packs are as they should be, and that nothing else is there.
func (m *model) checkPacks(t *rapid.T) {
	view(t, m.state, func(tx *bbolt.Tx) error {
		first := map[format.RecordKey]messages.Number{} // by sequence
		next := map[format.RecordKey]messages.Number{}
		lists := map[messages.WSID]int{}
		ids := map[format.PackID]bool{}
		end := map[format.RecordKey]messages.Number{}
		link := func(key format.RecordKey, e format.PackEntry) {
			var p format.Pack
			packKey, value := seekPack(tx.Bucket(format.BucketPacks).Cursor(), e.ID)
			key.ID.Number = e.First
			expect.NoError(t, readPack(packKey, value, key, &e, &p, AllRows(key.ID.Seq)))
			seq := key
			seq.ID.Number = 0
			if e.First <= end[seq] || ids[e.ID] {
				t.Fatalf("%+v begins in another pack, or has its id", e)
			}
			if end[seq] == 0 {
				first[seq] = e.First
			} else {
				expect.Equal(t, e.First, next[seq], "the chain")
			}
			ids[e.ID], end[seq], next[seq] = true, e.Last, e.Next
			m.checkPack(t, &p)
		}
		expect.NoError(t, tx.Bucket(format.BucketIndex).ForEach(func(k, v []byte) error {
			key := format.ParseRecordKey(k)
			if key.ID.Seq == messages.SeqWLogOffset {
				lists[key.Workspace]++
				return nil
			}
			e, err := format.DecodePackEntry(k, v)
			expect.NoError(t, err)
			link(key, e)
			return nil
		}))
		for ws := range m.workspaces {
			var h format.Head
			expect.NoError(t, ReadHead(tx, ws, &h))
			for i := range h.Sequences {
				s := &h.Sequences[i]
				if len(s.Packs) > m.headPacks {
					t.Fatalf("the head of %d leads to %d packs", ws, len(s.Packs))
				}
				for _, e := range s.Packs {
					link(format.RecordKey{Workspace: ws, ID: messages.RecordID{Seq: s.Seq}}, e)
				}
			}
		}
		for seq, n := range next {
			expect.Equal(t, 0, n, "the end of the chain", seq)
		}
		n := 0
		expect.NoError(t, tx.Bucket(format.BucketPacks).ForEach(func(_, _ []byte) error { n++; return nil }))
		expect.Equal(t, len(ids), n, "packs")
		for ws, w := range m.workspaces {
			expect.Equal(t, len(w.lsns)/headList, lists[ws], "lists")
			var h format.Head
			expect.NoError(t, ReadHead(tx, ws, &h))
			expect.Equal(t, len(w.lsns)%headList, len(h.LSNs), "LSNs of the head")
			for i := range h.Sequences {
				s := &h.Sequences[i]
				seq := format.RecordKey{Workspace: ws, ID: messages.RecordID{Seq: s.Seq}}
				expect.Equal(t, first[seq], s.First, "the first pack", seq)
				if readable := m.readablePointers(s); readable >= packPointers {
					t.Fatalf("%v: %d pointers can be read", seq, readable)
				}
			}
		}
		return nil
	})
}

func (m *model) checkPack(t *rapid.T, p *format.Pack) {
	size := 0
	for i := range p.Rows {
		size += len(p.Rows[i].Data)
	}
	expect.Equal(t, partitionOf(p.Workspace), p.Partition)
	if len(p.Rows) > packRows || len(p.Rows) > 1 && size > packBytes {
		t.Fatalf("a pack has %d rows and %d bytes", len(p.Rows), size)
	}
}

// readablePointers counts the pointers that could become rows of packs.
func (m *model) readablePointers(s *format.HeadSequence) (n int) {
	for _, p := range s.Pointers {
		if !m.spoilt[p.LSN] {
			n++
		}
	}
	return n
}
