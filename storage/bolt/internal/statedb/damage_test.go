package statedb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

var damagedBuckets = [][]byte{format.BucketWorkspaces, format.BucketIndex, format.BucketPacks, format.BucketPLog}

// readWorkspaces are those that the tests of damage read.
var readWorkspaces = []messages.WSID{10, 20, 30, 100, 129}

// fewEvents is the first workspace that has neither lists nor packs.
const fewEvents = 100

// filled is a state.db that has lists, packs and pointers of some workspaces beside each other, and lists of partitions.
type filled struct {
	*model
	t    *testing.T
	plog *plogs
}

func newFilled(t *testing.T) *filled {
	t.Helper()
	m := newModel(openState(t))
	m.headPacks = 1 // most of them are led to by the index
	r := rand.New(rand.NewPCG(1, 2))
	for range 3 {
		for i := range 3 * 90 {
			ws := messages.WSID(10 * (1 + i%3))
			var list []messages.Record
			for _, seq := range []messages.SeqID{seqAscending, seqScattered, seqWide} {
				list = append(list, m.workspaces[ws].records(r, seq, r.IntN(2), 6)...)
			}
			m.append(ws, messages.SequenceNumber{Seq: seqNumbersOnly, Number: messages.Number(i + 1)}, list)
		}
		m.flush(t)
	}
	for ws := range messages.WSID(30) { // heads enough for a branch
		m.append(fewEvents+ws, messages.SequenceNumber{}, nil)
	}
	m.flush(t)
	x := &filled{model: m, t: t, plog: newPLogs(t, m.state)}
	for p := range messages.PartitionID(3) {
		x.plog.put(p, 2*listLen+10)
	}
	return x
}

// reads takes all that a workspace has, in ways that begin at different places, and makes sure that what is read is right,
// or that damage is told. It returns how often it was told.
func (x *filled) reads(ws messages.WSID, what string) (told int) {
	x.t.Helper()
	w := x.of(ws)
	right := func(err error, same bool, part string, args ...any) {
		x.t.Helper()
		if err != nil {
			told++
		}
		if err != nil && !damaged(err) || !same {
			x.t.Fatalf("%s: workspace %d, %s: got %v, right: %v", what, ws, fmt.Sprintf(part, args...), err, same)
		}
	}
	last, err := WLogEnd(x.state, ws)
	right(err, err != nil || int(last) == len(w.lsns), "end of the log")
	for _, from := range []int{1, headList, headList + 1, 3 * headList, len(w.lsns)} {
		if from > len(w.lsns) {
			continue
		}
		lsns, err := WLog(x.state, ws, messages.WLogOffset(from), messages.WLogOffset(len(w.lsns)+1))
		right(err, isPrefix(lsns, w.lsns[from-1:], err), "log from %d", from)
	}
	numbers, err := Numbers(x.state, ws, keepsNone, func(*format.Head) {})
	right(err, err != nil || numbers.Kind == w.kind && len(numbers.Numbers) == 1+len(w.numbers), "numbers")
	for seq := range w.rows {
		told += x.readRows(ws, seq, what)
	}
	return told
}

func isPrefix(got, want []messages.LSN, err error) bool {
	return len(got) <= len(want) && (err != nil || len(got) == len(want)) && slices.Equal(got, want[:len(got)])
}

// readRows reads the rows of a sequence from different places, and where each was written.
func (x *filled) readRows(ws messages.WSID, seq messages.SeqID, what string) (told int) {
	x.t.Helper()
	all := x.workspaces[ws].rowsOf(AllRows(seq))
	for i := 0; i < len(all); i += 5 {
		r := storage.RecordRange{Seq: seq, From: all[i].ID.Number, To: all[min(i+i%3*40, len(all)-1)].ID.Number}
		if i == 0 {
			r = AllRows(seq)
		}
		want := x.workspaces[ws].rowsOf(r)
		rows, next, err := Rows(x.state, ws, r, 50, math.MaxInt)
		if err != nil {
			told++
		}
		if err != nil && !damaged(err) || err == nil && (len(rows) != min(50, len(want)) || (next == 0) != (len(want) <= 50)) {
			x.t.Fatalf("%s: workspace %d, %v: got %d rows, %v, next %d, want %d", what, ws, r, len(rows), err, next, len(want))
		}
		for j := range rows {
			if rows[j].ID != want[j].ID || rows[j].LSN != want[j].LSN || !rows[j].Pointed && !bytes.Equal(rows[j].Data, want[j].Data) {
				x.t.Fatalf("%s: workspace %d, %v: got %v, want %v", what, ws, r, rows[j], want[j])
			}
		}
		lsn, err := x.written(ws, all[i].ID)
		if err != nil {
			told++
		}
		if err != nil && !damaged(err) || err == nil && lsn != all[i].LSN {
			x.t.Fatalf("%s: workspace %d, %v: got LSN %d, %v, want %d", what, ws, all[i].ID, lsn, err, all[i].LSN)
		}
	}
	return told
}

func (x *filled) written(ws messages.WSID, id messages.RecordID) (lsn messages.LSN, err error) {
	err = x.state.View(func(tx *bbolt.Tx) error {
		var h format.Head
		if err := ReadHead(tx, ws, &h); err != nil {
			return err
		}
		lsn, err = Written(tx, &h, format.RecordKey{Workspace: ws, ID: id})
		return err
	})
	return lsn, err
}

// readPLogs reads the logs of the partitions.
func (x *filled) readPLogs(what string) (told int) {
	x.t.Helper()
	for p, want := range x.plog.lsns {
		for _, from := range []int{1, listLen, listLen + 1, 2*listLen + 1, len(want)} {
			lsns, err := PLog(x.state, p, messages.PLogOffset(from), messages.PLogOffset(len(want)+1))
			if err != nil {
				told++
			}
			if err != nil && !damaged(err) || !isPrefix(lsns, want[from-1:], err) {
				x.t.Fatalf("%s: partition %d from %d: got %d LSNs, %v", what, p, from, len(lsns), err)
			}
		}
	}
	return told
}

func (x *filled) readAll(what string) (told int) {
	x.t.Helper()
	for _, ws := range readWorkspaces {
		told += x.reads(ws, what)
	}
	return told + x.readPLogs(what)
}

// entry is an entry of a bucket, and where its bytes are in the file.
type entry struct {
	bucket, key, value []byte
	keyAt, valueAt     int64
}

func (x *filled) entries() (all []entry) {
	x.t.Helper()
	view(x.t, x.state, func(tx *bbolt.Tx) error {
		start := tx.DB().Info().Data
		at := func(b []byte) int64 { return int64(uintptr(unsafe.Pointer(&b[0])) - start) }
		for _, bucket := range damagedBuckets {
			expect.NoError(x.t, tx.Bucket(bucket).ForEach(func(k, v []byte) error {
				all = append(all, entry{bucket: bucket, key: bytes.Clone(k), value: bytes.Clone(v), keyAt: at(k), valueAt: at(v)})
				return nil
			}))
		}
		return nil
	})
	return all
}

// flip changes a byte of the file, as a disk does: nothing moves.
func (x *filled) flip(at int64, mask byte) {
	x.t.Helper()
	b := make([]byte, 1)
	_, err := x.state.Handle.ReadAt(b, at)
	expect.NoError(x.t, err)
	b[0] ^= mask
	_, err = x.state.Handle.WriteAt(b, at)
	expect.NoError(x.t, err)
}

// A changed byte of a value is told, and so is one of a key of what is read; others mislead nobody.
func TestFlippedBytes(t *testing.T) {
	x := newFilled(t)
	expect.Equal(t, 0, x.readAll("nothing damaged"))
	r := rand.New(rand.NewPCG(3, 4))
	for _, e := range x.entries() {
		for i := range 3 {
			part, at, length := "key", e.keyAt, len(e.key)
			if i == 0 {
				part, at, length = "value", e.valueAt, len(e.value)
			}
			byteAt, mask := r.IntN(length), byte(1)<<r.IntN(8)
			what := fmt.Sprintf("bucket %s, key %x, byte %d ^ %x of the %s", e.bucket, e.key, byteAt, mask, part)
			x.flip(at+int64(byteAt), mask)
			if x.readAll(what) == 0 && !x.unread(&e) {
				t.Errorf("%s: nobody is told", what)
			}
			x.flip(at+int64(byteAt), mask)
		}
	}
	expect.Equal(t, 0, x.readAll("nothing damaged any more"))
}

// unread reports whether an entry is the head of a workspace that the test does not read.
func (x *filled) unread(e *entry) bool {
	if !bytes.Equal(e.bucket, format.BucketWorkspaces) {
		return false
	}
	return !slices.Contains(readWorkspaces, messages.WSID(format.Uint64(e.key)))
}

// A writer that meets damage says so, and changes nothing; what it writes beside damage is right. The first key of a page
// is left out: bbolt finds the page's entry in the branch by it, and adds another one when it is damaged.
func TestWriterMeetsDamage(t *testing.T) {
	x := newFilled(t)
	all := x.entries()
	content := x.content()
	before := x.state
	defer func() { x.state = before }()
	r := rand.New(rand.NewPCG(7, 8))
	for i := range 40 { // what is written beside damage
		ws := readWorkspaces[i%3]
		list := x.workspaces[ws].records(r, seqScattered, 2, 6)
		x.append(ws, messages.SequenceNumber{}, append(list, x.workspaces[ws].records(r, seqAscending, 2, 6)...))
	}
	refused := map[string]int{}
	for i := range 2 * len(all) {
		e := &all[i/2]
		part, at, length := "key", e.keyAt, len(e.key)
		if i%2 == 0 {
			part, at, length = "value", e.valueAt, len(e.value)
		} else if i < 2 || all[i/2-1].keyAt/pageSize != at/pageSize {
			continue
		}
		byteAt, mask := r.IntN(length), byte(1)<<r.IntN(8)
		what := fmt.Sprintf("bucket %s, key %x, byte %d ^ %x of the %s", e.bucket, e.key, byteAt, mask, part)
		content[at+int64(byteAt)] ^= mask
		f, closeState := copyState(t, content)
		content[at+int64(byteAt)] ^= mask
		x.state = f
		err := f.Update(func(tx *bbolt.Tx) error {
			w := x.newWriter(tx)
			for _, ws := range readWorkspaces {
				before := dump(tx)
				err := x.writeWorkspace(w, ws)
				if err == nil {
					continue
				}
				refused[string(e.bucket)]++
				if !damaged(err) || dump(tx) != before {
					t.Errorf("%s, workspace %d: got %v, and something is changed: %v", what, ws, err, dump(tx) != before)
				}
				return err
			}
			return nil
		})
		if err == nil {
			x.readAll(what)
		}
		closeState()
	}
	for _, bucket := range damagedBuckets[:3] {
		if refused[string(bucket)] == 0 {
			t.Errorf("bucket %s: no damage was met", bucket)
		}
	}
}

// dump returns all entries that a writer can change.
func dump(tx *bbolt.Tx) string {
	var all []byte
	for _, bucket := range damagedBuckets[:3] {
		c := tx.Bucket(bucket).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			all = append(append(all, k...), v...)
		}
	}
	return string(all)
}

// content returns the bytes of the file.
func (x *filled) content() []byte { return contentOf(x.t, x.state) }

// branchKeys returns where the bytes of keys of branches are in the file.
func (x *filled) branchKeys() (places []int64) {
	x.t.Helper()
	content := x.content()
	view(x.t, x.state, func(tx *bbolt.Tx) error {
		size := tx.DB().Info().PageSize
		for id := range len(content) / size {
			info, err := tx.Page(id)
			expect.NoError(x.t, err)
			if info == nil || info.Type != "branch" {
				continue
			}
			for i := range info.Count {
				e := id*size + boltfile.PageHeaderLen + 16*i
				pos, length := binary.NativeEndian.Uint32(content[e:]), binary.NativeEndian.Uint32(content[e+4:])
				for at := range length {
					places = append(places, int64(e)+int64(pos)+int64(at))
				}
			}
		}
		return nil
	})
	return places
}

// A changed key of a branch leads nobody astray without telling.
func TestFlippedBranches(t *testing.T) {
	x := newFilled(t)
	places := x.branchKeys()
	if len(places) < 100 {
		t.Fatalf("got %d bytes of keys of branches", len(places))
	}
	r := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		at, mask := places[r.IntN(len(places))], byte(1)<<r.IntN(8)
		x.flip(at, mask)
		x.readAll(fmt.Sprintf("byte %d of a branch's key ^ %x", at, mask))
		x.flip(at, mask)
	}
	expect.Equal(t, 0, x.readAll("nothing damaged any more"))
}

// A branch whose key is above the first key of its page hides that one from whoever writes, though a cursor that steps
// over finds it. If its head were written anew, the old one would stay where it lies, and come back when its page is
// written for a neighbour: its workspace's numbers would be given twice.
func TestRaisedBranchKey(t *testing.T) {
	m := newModel(openState(t))
	const last = 60
	for ws := range messages.WSID(last) {
		m.append(ws+1, messages.SequenceNumber{}, nil)
	}
	m.flush(t)
	var first messages.WSID
	view(t, m.state, func(tx *bbolt.Tx) error {
		root := int64(tx.Bucket(format.BucketWorkspaces).Root())
		element := root*pageSize + boltfile.PageHeaderLen + 16 // the second one
		content := contentOf(t, m.state)
		key := element + int64(binary.NativeEndian.Uint32(content[element:]))
		first = messages.WSID(format.Uint64(content[key:][:format.WorkspaceKeyLen]))
		_, err := m.state.Handle.WriteAt(format.AppendWorkspaceKey(nil, first+1), key)
		return err
	})
	if first <= 1 || first >= last {
		t.Fatalf("got workspace %d at the begin of a page, want one in the middle", first)
	}
	for _, ws := range []messages.WSID{first, first + 1} {
		m.append(ws, messages.SequenceNumber{}, nil)
		err := m.state.Update(func(tx *bbolt.Tx) error {
			return m.writeWorkspace(m.newWriter(tx), ws)
		})
		if ws == first && damaged(err) {
			return
		}
		expect.NoError(t, err)
		m.pending = nil
	}
	got, err := WLogEnd(m.state, first)
	t.Fatalf("got end %d of %d, %v, want damage before", got, len(m.workspaces[first].lsns), err)
}

// The same for the entry of a pack: it would be written beside the old one.
func TestRaisedBranchKeyOfPacks(t *testing.T) {
	x := newFilled(t)
	for range 40 { // entries of packs, enough for pages that begin with one
		x.append(20, messages.SequenceNumber{}, x.workspaces[20].records(rand.New(rand.NewPCG(1, 1)), seqAscending, packPointers, 5))
		x.flush(t)
	}
	tried := 0
	for _, key := range x.branchKeysOf(format.BucketIndex) {
		content := x.content()
		k := format.ParseRecordKey(content[key:][:format.IndexKeyLen])
		if k.ID.Seq == messages.SeqWLogOffset {
			continue
		}
		tried++
		last := key + format.IndexKeyLen - 1
		for content[last] == math.MaxUint8 {
			last--
		}
		x.flip(last, content[last]^(content[last]+1))
		view(t, x.state, func(tx *bbolt.Tx) error {
			w := x.newWriter(tx)
			expect.NoError(t, w.Load(k.Workspace))
			for _, n := range []messages.Number{k.ID.Number, k.ID.Number + 1} {
				if _, err := w.packFor(w.Head.Find(k.ID.Seq), n); !damaged(err) {
					t.Errorf("%+v, record %d: got %v, want damage", k, n, err)
				}
			}
			return nil
		})
		x.flip(last, content[last]^(content[last]+1))
	}
	if tried == 0 {
		t.Error("no page begins with a pack")
	}
}

// A writer that would let the index lead to packs of the head meets what stands there, and leaves it as it is.
func TestForeignEntryIsNotOverwritten(t *testing.T) {
	for _, packs := range []int{3, 5} { // none is led to by the index yet, and two are
		m := newModel(openState(t))
		appendPack := func() {
			r := rand.New(rand.NewPCG(1, 1))
			m.append(10, messages.SequenceNumber{}, m.workspaces[10].records(r, seqAscending, 2*packPointers, 0)[:packPointers])
		}
		for range packs {
			appendPack()
			m.flush(t)
		}
		var h format.Head
		view(t, m.state, func(tx *bbolt.Tx) error { return ReadHead(tx, 10, &h) })
		s := h.Find(seqAscending)
		expect.Equal(t, packs > 3, s.Indexed())
		expect.Equal(t, 3, len(s.Packs))
		for _, at := range []messages.Number{s.Packs[0].First, s.Packs[0].First + 1, s.Top + 1} {
			key := format.AppendIndexKey(nil, format.RecordKey{Workspace: 10, ID: messages.RecordID{Seq: seqAscending, Number: at}})
			update(t, m.state, func(tx *bbolt.Tx) error { return tx.Bucket(format.BucketIndex).Put(key, []byte("foreign")) })
			appendPack()
			if err := m.state.Update(m.write); !damaged(err) {
				t.Errorf("%d packs, record %d: got %v", packs, at, err)
			}
			view(t, m.state, func(tx *bbolt.Tx) error {
				expect.Equal(t, "foreign", string(tx.Bucket(format.BucketIndex).Get(key)), at)
				return nil
			})
			update(t, m.state, func(tx *bbolt.Tx) error { return tx.Bucket(format.BucketIndex).Delete(key) })
		}
		m.flush(t)
	}
}

// Packs that are asked for ahead end where damage is met, and whoever asked does not go on behind it.
func TestAheadTellsOfDamage(t *testing.T) {
	m := newModel(openState(t))
	m.headPacks = 1
	for range 4 {
		m.append(10, messages.SequenceNumber{}, m.workspaces[10].records(rand.New(rand.NewPCG(1, 1)), seqAscending, 2*packPointers, 0)[:packPointers])
		m.flush(t)
	}
	for _, foreign := range []bool{false, true} {
		var ids []format.PackID
		var sound bool
		update(t, m.state, func(tx *bbolt.Tx) error {
			var h format.Head
			expect.NoError(t, ReadHead(tx, 10, &h))
			s := h.Find(seqAscending)
			c := chain{key: format.RecordKey{Workspace: 10, ID: messages.RecordID{Seq: seqAscending, Number: s.First}}}
			if foreign {
				c.key.ID.Number = s.Packs[0].First + 1
				expect.NoError(t, tx.Bucket(format.BucketIndex).Put(format.AppendIndexKey(nil, c.key), []byte("foreign")))
				c.key.ID.Number = s.Packs[0].First - 1 // of the last pack of the index
			}
			expect.NoError(t, c.seek(boltfile.SnapshotOf(tx), s))
			ids, sound = c.ahead(nil, math.MaxUint64)
			return nil
		})
		expect.Equal(t, !foreign, sound)
		expect.Equal(t, map[bool]int{false: 4, true: 1}[foreign], len(ids))
	}
}

// A writer that lets the index lead to a pack before all others meets what stands there, and leaves it as it is.
func TestForeignEntryBeforeAll(t *testing.T) {
	for _, packs := range []int{2, 5} { // the index leads to none yet, and to two
		m := newModel(openState(t))
		for range packs {
			m.append(10, messages.SequenceNumber{}, m.workspaces[10].records(rand.New(rand.NewPCG(1, 1)), seqDescending, packPointers, 0))
			m.flush(t)
		}
		var h format.Head
		view(t, m.state, func(tx *bbolt.Tx) error { return ReadHead(tx, 10, &h) })
		s := h.Find(seqDescending)
		expect.Equal(t, packs > 3, s.Indexed())
		key := format.AppendIndexKey(nil, format.RecordKey{Workspace: 10, ID: messages.RecordID{Seq: seqDescending, Number: s.First - 1}})
		update(t, m.state, func(tx *bbolt.Tx) error { return tx.Bucket(format.BucketIndex).Put(key, []byte("foreign")) })
		m.append(10, messages.SequenceNumber{}, m.workspaces[10].records(rand.New(rand.NewPCG(1, 1)), seqDescending, 2*packPointers, 0))
		if err := m.state.Update(m.write); !damaged(err) {
			t.Errorf("%d packs: got %v", packs, err)
		}
		update(t, m.state, func(tx *bbolt.Tx) error { return tx.Bucket(format.BucketIndex).Delete(key) })
		m.flush(t)
	}
}

// branchKeysOf returns where the keys of a bucket's root are in the file, without the first one.
func (x *filled) branchKeysOf(bucket []byte) (places []int64) {
	x.t.Helper()
	content := x.content()
	view(x.t, x.state, func(tx *bbolt.Tx) error {
		root := int(tx.Bucket(bucket).Root())
		info, err := tx.Page(root)
		expect.NoError(x.t, err)
		expect.Equal(x.t, "branch", info.Type)
		for i := 1; i < info.Count; i++ {
			element := root*pageSize + boltfile.PageHeaderLen + 16*i
			places = append(places, int64(element)+int64(binary.NativeEndian.Uint32(content[element:])))
		}
		return nil
	})
	return places
}

// What is not there any more, or lies under another key, is missed.
func TestHiddenEntries(t *testing.T) {
	x := newFilled(t)
	all := x.entries()
	for i, e := range all {
		if bytes.Equal(e.bucket, format.BucketWorkspaces) && format.Uint64(e.key) >= fewEvents {
			continue // without a head it seems to have no events: nothing else says that it has
		}
		other := &all[(i+1)%len(all)]
		if !bytes.Equal(other.bucket, e.bucket) {
			other = &all[i-1]
		}
		for what, change := range map[string]func(b *bbolt.Bucket) error{
			"removed":   func(b *bbolt.Bucket) error { return b.Delete(e.key) },
			"exchanged": func(b *bbolt.Bucket) error { return b.Put(e.key, other.value) },
			"moved":     func(b *bbolt.Bucket) error { return errors.Join(b.Delete(e.key), b.Put(movedKey(e.key), e.value)) },
		} {
			what = fmt.Sprintf("bucket %s, key %x %s", e.bucket, e.key, what)
			update(t, x.state, func(tx *bbolt.Tx) error { return change(tx.Bucket(e.bucket)) })
			if x.readAll(what) == 0 {
				t.Errorf("%s: nobody is told", what)
			}
			x.checkWriter(&e, what)
			update(t, x.state, func(tx *bbolt.Tx) error {
				b := tx.Bucket(e.bucket)
				return errors.Join(b.Delete(movedKey(e.key)), b.Put(e.key, e.value))
			})
		}
	}
	expect.Equal(t, 0, x.readAll("nothing damaged any more"))
}

// checkWriter makes sure that a writer misses the pack of an entry.
func (x *filled) checkWriter(e *entry, what string) {
	x.t.Helper()
	if !bytes.Equal(e.bucket, format.BucketIndex) || format.ParseRecordKey(e.key).ID.Seq == messages.SeqWLogOffset {
		return
	}
	k := format.ParseRecordKey(e.key)
	view(x.t, x.state, func(tx *bbolt.Tx) error {
		w := x.newWriter(tx)
		expect.NoError(x.t, w.Load(k.Workspace))
		if _, err := w.packFor(w.Head.Find(k.ID.Seq), k.ID.Number); !damaged(err) {
			x.t.Errorf("%s: a writer got %v", what, err)
		}
		return nil
	})
}

// movedKey is a key that no entry has.
func movedKey(key []byte) []byte {
	moved := bytes.Clone(key)
	moved[0] ^= 0x80
	return moved
}

// A chunk reads no pack behind the one that ends it.
func TestChunkEndsReading(t *testing.T) {
	x := newFilled(t)
	var h format.Head
	view(t, x.state, func(tx *bbolt.Tx) error { return ReadHead(tx, 10, &h) })
	packs := h.Find(seqAscending).Packs
	e := packs[len(packs)-1]
	update(t, x.state, func(tx *bbolt.Tx) error { return tx.Bucket(format.BucketPacks).Delete(format.AppendPackKey(nil, e.ID)) })
	rows, next, err := Rows(x.state, 10, AllRows(seqAscending), 3, math.MaxInt)
	expect.NoError(t, err)
	expect.Equal(t, []messages.Number{3, 4}, []messages.Number{messages.Number(len(rows)), next})
	rows, _, err = Rows(x.state, 10, AllRows(seqAscending), math.MaxInt, math.MaxInt)
	if !damaged(err) {
		t.Errorf("got %v", err)
	}
	expect.Equal(t, int(e.First)-1, len(rows), "rows before the damage")
}

// A pack that is another one than its entry says, although its checksum is right, is told. So it is where an id was given
// anew because the last packs were hidden.
func TestForeignPack(t *testing.T) {
	m := newModel(openState(t))
	for range packPointers {
		m.append(10, messages.SequenceNumber{}, m.workspaces[10].records(rand.New(rand.NewPCG(1, 1)), seqAscending, 1, 5))
	}
	m.flush(t)
	key := format.AppendPackKey(nil, 1)
	var pack format.Pack
	view(t, m.state, func(tx *bbolt.Tx) error { return pack.Decode(key, bytes.Clone(tx.Bucket(format.BucketPacks).Get(key))) })
	for what, change := range map[string]func(*format.Pack){
		"none": func(*format.Pack) {}, "workspace": func(p *format.Pack) { p.Workspace++ }, "sequence": func(p *format.Pack) { p.Seq++ },
		"first row": func(p *format.Pack) { p.Rows = p.Rows[1:] }, "last row": func(p *format.Pack) { p.Rows = p.Rows[:3] },
	} {
		foreign := pack
		change(&foreign)
		update(t, m.state, func(tx *bbolt.Tx) error { return tx.Bucket(format.BucketPacks).Put(key, foreign.Append(nil, key)) })
		rows, _, err := Rows(m.state, 10, AllRows(seqAscending), math.MaxInt, math.MaxInt)
		if what == "none" {
			expect.NoError(t, err)
			expect.Equal(t, packPointers, len(rows))
		} else if !damaged(err) || !errors.Is(err, format.ErrMisplaced) || len(rows) != 0 {
			t.Errorf("another %s: got %d rows, %v", what, len(rows), err)
		}
	}
}

// A list of a workspace's log that is not as long as all are is told.
func TestForeignList(t *testing.T) {
	m := newModel(openState(t))
	for range 2*headList + 3 {
		m.append(10, messages.SequenceNumber{}, nil)
	}
	m.flush(t)
	key := format.AppendIndexKey(nil, listKey(10, headList+1))
	for _, n := range []messages.LSN{headList - 1, headList, headList + 1} {
		var list []messages.LSN
		for i := range n {
			list = append(list, headList+1+i)
		}
		update(t, m.state, func(tx *bbolt.Tx) error {
			return tx.Bucket(format.BucketIndex).Put(key, format.AppendList(nil, format.BucketIndex, key, list))
		})
		lsns, err := WLog(m.state, 10, 1, 2*headList+4)
		if n == headList {
			expect.NoError(t, err)
			expect.Equal(t, m.workspaces[10].lsns, lsns)
		} else if !damaged(err) || len(lsns) != headList {
			t.Errorf("%d LSNs: got %d, %v", n, len(lsns), err)
		}
	}
}

// Where the last pack cannot be read its id is not known, nor the next one: a writer that guessed could overwrite a pack.
func TestLastPackDamaged(t *testing.T) {
	m := newModel(openState(t))
	key := format.AppendPackKey(nil, 7)
	update(t, m.state, func(tx *bbolt.Tx) error { return tx.Bucket(format.BucketPacks).Put(key, []byte("foreign bytes")) })
	m.append(10, messages.SequenceNumber{}, m.workspaces[10].records(rand.New(rand.NewPCG(1, 1)), seqAscending, packPointers, 5))
	if err := m.state.Update(m.write); !damaged(err) {
		t.Errorf("got %v", err)
	}
	update(t, m.state, func(tx *bbolt.Tx) error { return tx.Bucket(format.BucketPacks).Delete(key) })
	m.flush(t)
}
