package statedb

// The tests of this package look inside: how long lists, packs and heads may get.

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// pageSize is small, so that few entries make branches.
const pageSize = 1024

// newState makes a state.db that is empty. closeState removes it.
func newState(t testing.TB) (f *boltfile.File, closeState func()) {
	t.Helper()
	f, closeState = copyState(t, nil)
	update(t, f, func(tx *bbolt.Tx) (err error) {
		for _, name := range format.RoleState.Buckets() {
			_, failed := tx.CreateBucket(name)
			err = errors.Join(err, failed)
		}
		return err
	})
	return f, closeState
}

// copyState makes a state.db that has what another one has.
func copyState(t testing.TB, content []byte) (f *boltfile.File, closeState func()) {
	t.Helper()
	dir := t.TempDir()
	d, err := boltfile.OpenDirectory(dir)
	expect.NoError(t, err)
	path := filepath.Join(dir, format.StateFileName)
	if content != nil {
		expect.NoError(t, os.WriteFile(path, content, 0o600))
	}
	f, err = boltfile.OpenFile(d, format.StateFileName, path, &bbolt.Options{NoSync: true, PageSize: pageSize})
	expect.NoError(t, err)
	f.Vouched = true // nobody needs these files after a crash
	return f, func() { expect.NoError(t, errors.Join(f.Close(), d.Close(), os.RemoveAll(dir))) }
}

// openState is newState until the test ends.
func openState(t testing.TB) *boltfile.File {
	t.Helper()
	f, closeFile := newState(t)
	t.Cleanup(closeFile)
	return f
}

// contentOf returns the bytes of a file.
func contentOf(t expect.T, f *boltfile.File) (content []byte) {
	t.Helper()
	view(t, f, func(tx *bbolt.Tx) error {
		content = make([]byte, tx.Size())
		_, err := f.Handle.ReadAt(content, 0)
		return err
	})
	return content
}

func update(t expect.T, f *boltfile.File, fn func(*bbolt.Tx) error) {
	t.Helper()
	expect.NoError(t, f.Update(fn))
}

func view(t expect.T, f *boltfile.File, fn func(*bbolt.Tx) error) {
	t.Helper()
	expect.NoError(t, f.View(fn))
}

// damaged says that an error names a damaged place, and nothing else.
func damaged(err error) bool {
	_, ok := errors.AsType[*storage.DamagedError](err)
	return ok
}

// model is what state.db and the log should have.
type model struct {
	state *boltfile.File
	// log has the values; those of spoilt events are not what was written.
	log        [][]byte
	spoilt     map[messages.LSN]bool
	workspaces map[messages.WSID]*workspaceModel
	// pending are the events that no transaction has written yet.
	pending []*messages.Event
	plog    messages.PLogOffset
	// headPacks is how many packs of a sequence a head leads to, at most.
	headPacks int
}

type workspaceModel struct {
	kind    messages.WSKind
	lsns    []messages.LSN
	numbers map[messages.SeqID]messages.Number
	rows    map[messages.SeqID]map[messages.Number]Row
}

func newModel(state *boltfile.File) *model {
	return &model{state: state, headPacks: 3, spoilt: map[messages.LSN]bool{}, workspaces: map[messages.WSID]*workspaceModel{}}
}

func partitionOf(ws messages.WSID) messages.PartitionID { return messages.PartitionID(ws % 3) }

// append appends an event with records to the log, and lets one of its workspace be pending.
func (m *model) append(ws messages.WSID, number messages.SequenceNumber, records []messages.Record) messages.LSN {
	w := m.workspaces[ws]
	if w == nil {
		w = &workspaceModel{
			kind: messages.WSKind(ws + 7), numbers: map[messages.SeqID]messages.Number{}, rows: map[messages.SeqID]map[messages.Number]Row{},
		}
		m.workspaces[ws] = w
	}
	m.plog++
	e := &messages.Event{
		Kind: messages.EventBusiness, Partition: partitionOf(ws), PLogOffset: m.plog, Workspace: ws, WorkspaceKind: w.kind,
		WLogOffset: messages.WLogOffset(len(w.lsns) + 1), Records: records,
	}
	if number.Number != 0 {
		e.Numbers = []messages.SequenceNumber{number}
		w.numbers[number.Seq] = max(w.numbers[number.Seq], number.Number)
	}
	m.pending = append(m.pending, e)
	m.log = append(m.log, format.EncodeEvent(e))
	lsn := messages.LSN(len(m.log))
	format.SealEvent(m.log[lsn-1], lsn)
	w.lsns = append(w.lsns, lsn)
	for _, rec := range records {
		if w.rows[rec.ID.Seq] == nil {
			w.rows[rec.ID.Seq] = map[messages.Number]Row{}
		}
		w.rows[rec.ID.Seq][rec.ID.Number] = Row{LSN: lsn, Row: storage.Row{
			ID: rec.ID, Data: CloneData(rec.Data), Partition: e.Partition, PLogOffset: e.PLogOffset,
		}}
	}
	return lsn
}

// value reads the log.
func (m *model) value(lsn messages.LSN) []byte { return m.log[lsn-1] }

// flush writes the pending events in a transaction, as a projection does.
func (m *model) flush(t expect.T) {
	t.Helper()
	update(t, m.state, m.write)
	m.pending = nil
}

// newWriter returns a writer that lets bucket index lead to packs sooner than others do.
func (m *model) newWriter(tx *bbolt.Tx) *Writer {
	w := NewWriter(tx, &boltfile.ByteArena{}, m.value)
	w.packer.headPacks = m.headPacks
	return w
}

func (m *model) write(tx *bbolt.Tx) error {
	w := m.newWriter(tx)
	for ws := range m.workspaces {
		if err := m.writeWorkspace(w, ws); err != nil {
			return err
		}
	}
	return nil
}

func (m *model) writeWorkspace(w *Writer, ws messages.WSID) error {
	first := messages.LSN(len(m.log) - len(m.pending) + 1)
	if err := w.Load(ws); err != nil {
		return err
	}
	h := &w.Head
	for i, e := range m.pending {
		if e.Workspace != ws {
			continue
		}
		lsn := first + messages.LSN(i)
		h.Kind, h.Last, h.LSNs = e.WorkspaceKind, e.WLogOffset, append(h.LSNs, lsn)
		for _, rec := range e.Records {
			h.Sequence(rec.ID.Seq).Point(rec.ID.Number, lsn)
		}
		for _, n := range e.Numbers {
			s := h.Sequence(n.Seq)
			s.Number = max(s.Number, n.Number)
		}
	}
	w.Rows, w.Partition = m.readRows(ws, first), partitionOf(ws)
	return w.Store()
}

// readRows returns rows that pending events of a workspace write, as if they were read before: none, the last write of each
// record, or the first one.
func (m *model) readRows(ws messages.WSID, first messages.LSN) (rows []ReadRow) {
	which := (len(m.log) + int(ws)) % 3
	for i, e := range m.pending {
		lsn := first + messages.LSN(i)
		if e.Workspace != ws || m.spoilt[lsn] || which == 0 {
			continue
		}
		for _, rec := range e.Records {
			row := ReadRow{rec.ID.Seq, format.Row{Number: rec.ID.Number, Offset: e.PLogOffset, LSN: lsn, Data: rec.Data}}
			at, found := slices.BinarySearchFunc(rows, row, func(a, b ReadRow) int {
				return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Number, b.Number))
			})
			switch {
			case !found:
				rows = slices.Insert(rows, at, row)
			case which == 1 || rows[at].LSN == lsn: // an event may write a record several times
				rows[at] = row
			}
		}
	}
	return rows
}

// keepsNone says that all periods are kept.
func keepsNone(messages.WSKind, messages.SeqID) bool { return false }
