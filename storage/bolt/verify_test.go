package bolt

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/dedup"
	"github.com/partita-go/partita/storage/bolt/internal/files"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/verify"
)

// verifiable makes a store whose projections lag in partition 0, where event 6 is an
// update of a row:
//
//	LSN          1    2    3    4    5    6    7 |  8    9
//	partition 0  1/0  2/2  3/0  4/2       5/0    |  6/2  7/0     offset/workspace
//	partition 1                      1/1       2/1
//
// Events 1, 3 and 8 have an id.
func verifiable(t testing.TB) (dir string, s *Store) {
	t.Helper()
	dir = t.TempDir()
	s = open(t, dir, testDescriptor(2, messages.TrustNone), Options{})
	w, other := takeOver(t, s, 0), takeOver(t, s, 1)
	w.appendNamed(0, messages.DedupID{1})
	w.append(2)
	w.appendNamed(0, messages.DedupID{2})
	w.append(2)
	other.append(1)
	update := w.event(0)
	update.Records = append(update.Records, messages.Record{ID: messages.RecordID{Seq: testSeq, Number: 1000}, Data: []byte("updated")})
	if err := w.try(update); err != nil {
		t.Fatal(err)
	}
	other.append(1)
	w.flush()
	other.flush()
	w.appendNamed(2, messages.DedupID{3})
	w.append(0)
	return dir, s
}

func verified(t testing.TB, dir string, o verify.Options) verify.Report {
	t.Helper()
	before := hashes(t, dir)
	r, err := Verify(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	if after := hashes(t, dir); after != before {
		t.Errorf("the files were changed")
	}
	return r
}

// hashes stands for all that a directory holds.
func hashes(t testing.TB, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := ""
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all += fmt.Sprintf("%s %x\n", e.Name(), sha256.Sum256(content))
	}
	return all
}

func TestVerifySoundStore(t *testing.T) {
	dir, s := verifiable(t)
	closeStore(t, s)
	r := verified(t, dir, verify.Options{})
	want := verify.Report{Partitions: 2, Workspaces: 3, Events: 9, Numbers: 27, Rows: 14}
	if fmt.Sprintf("%+v", r) != fmt.Sprintf("%+v", want) {
		t.Errorf("got %+v, want %+v", r, want)
	}
}

func TestVerifyEmptyStore(t *testing.T) {
	dir := t.TempDir()
	closeStore(t, open(t, dir, testDescriptor(3, messages.TrustNone), Options{}))
	if r := verified(t, dir, verify.Options{}); r.Err() != nil || r.Partitions != 3 {
		t.Errorf("got %s", r)
	}
}

// doctoring is a way to make a store wrong, and all faults that must be found.
type doctoring struct {
	name string
	do   func(t *testing.T, s *Store)
	want []string
}

// TestVerifyFindsAndNames doctors a sound store in each way. All faults are listed, so
// that one cause does not make many.
func TestVerifyFindsAndNames(t *testing.T) {
	t.Parallel()
	for _, d := range slices.Concat(doctoredLogs(), doctoredIndexes(), doctoredValues(), doctoredIDs()) {
		t.Run(d.name, func(t *testing.T) {
			dir, s := verifiable(t)
			d.do(t, s)
			closeStore(t, s)
			r := verified(t, dir, verify.Options{})
			var got []string
			for _, f := range r.Faults {
				got = append(got, fmt.Sprintf("%v %s", f.Projection, strings.ReplaceAll(f.String(), dir+"/", "")))
			}
			for _, what := range r.Unread {
				got = append(got, "not looked at: "+what)
			}
			// Missing rows are told in the order of a table, which is another one each time.
			if !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(d.want))) || r.FaultCount != uint64(len(r.Faults)) {
				t.Errorf("got %d faults:\n%s\nwant:\n%s", r.FaultCount, strings.Join(got, "\n"), strings.Join(d.want, "\n"))
			}
		})
	}
}

func rewriting(lsn messages.LSN, change func(*messages.Event)) func(*testing.T, *Store) {
	return func(t *testing.T, s *Store) { rewriteLog(t, s, lsn, change) }
}

func doctoredLogs() []doctoring {
	return []doctoring{
		{"a projected event is damaged", func(t *testing.T, s *Store) { damageLog(t, s, 3) }, []string{
			"false damage: log.db, LSN 3: checksum does not match",
			"false PLog: partition 0, offset 4: offset is 4, want 3",
			"not looked at: partition 0 from LSN 4 on, and its projections",
			"not looked at: the index of deduplication ids",
		}},
		{"a projected event is missing", func(t *testing.T, s *Store) { removeLog(t, s, 3) }, []string{
			"false LSN: log.db, LSN 3: the entry is missing, the next one is LSN 4",
			"false PLog: partition 0, offset 4: offset is 4, want 3",
			"not looked at: partition 0 from LSN 4 on, and its projections",
			"not looked at: the index of deduplication ids",
		}},
		{"times fall", rewriting(3, func(e *messages.Event) { e.RegisteredAt = 0 }), []string{
			"false time: partition 0, offset 3: time is 0 us, the predecessor has 2 us",
		}},
		{"an epoch that nobody took", rewriting(3, func(e *messages.Event) { e.Epoch = 9 }), []string{
			"false epoch: partition 0, offset 3: epoch is 9, the register has 1",
			"false epoch: partition 0, offset 4: epoch is 1, the predecessor has 9",
		}},
		{"a number is given twice", rewriting(3, func(e *messages.Event) { e.Numbers[1].Number = 1000 }), []string{
			"false sequence: partition 0, offset 3: workspace 0, sequence 16: number is 1000, want 1001",
		}},
		{"a number is skipped", rewriting(9, func(e *messages.Event) { e.Numbers[1].Number++; e.Records[1].ID.Number++ }), []string{
			"false sequence: partition 0, offset 7: workspace 0, sequence 16: number is 1004, want 1003",
		}},
		{"a record is created again", rewriting(9, func(e *messages.Event) { e.Records[0].ID.Number-- }), []string{
			"false records: partition 0, offset 7: workspace 0: record 2/322685000131074 is created again, it was written at offset 5",
		}},
		{"another kind", rewriting(3, func(e *messages.Event) { e.WorkspaceKind = 7 }), []string{
			"false event: partition 0, offset 3: workspace 0: unknown kind 7",
			"false WLog: partition 0, offset 5: workspace 0: offset is 3, want 2",
			"false sequence: partition 0, offset 5: workspace 0, sequence 2: number is 322685000131074, want 322685000131073",
			"false sequence: partition 0, offset 5: workspace 0, sequence 16: number is 1002, want 1001",
		}},
		{"together with what is not there", rewriting(9, func(e *messages.Event) { e.Together = 2 }), []string{
			"false together: partition 0, offset 7: 2 of the events appended together with it are not there",
		}},
		{"two events with one id", rewriting(9, func(e *messages.Event) { e.DedupID = messages.DedupID{1} }), []string{
			"false dedup: partition 0, offset 7: workspace 0: id 01000000000000000000000000000000 is found at offset 1, want 4",
		}},
	}
}

// value returns a doctoring that changes what state.db has under a key; nil removes it.
func value(bucket, key []byte, change func(s *Store, v []byte) []byte) func(*testing.T, *Store) {
	return func(t *testing.T, s *Store) {
		if v := change(s, get(t, s.state, bucket, key)); v != nil {
			put(t, s.state, bucket, key, v)
			return
		}
		remove(t, s.state, bucket, key)
	}
}

// head returns a doctoring that changes a workspace's head, list one that replaces a list of a partition's log.
func head(ws messages.WSID, change func(*format.Head)) func(*testing.T, *Store) {
	return func(t *testing.T, s *Store) { changeHead(t, s, ws, change) }
}

func list(p messages.PartitionID, first messages.PLogOffset, lsns ...messages.LSN) func(*testing.T, *Store) {
	return func(t *testing.T, s *Store) { putList(t, s, p, first, lsns...) }
}

// to replaces a value.
func to(v []byte) func(*Store, []byte) []byte {
	return func(*Store, []byte) []byte { return v }
}

func doctoredIndexes() []doctoring {
	checkpointKey := format.AppendPartitionKey(nil, 0)
	return []doctoring{
		{"keys that nobody knows, which hide nothing", func(t *testing.T, s *Store) {
			put(t, settled(t, s), format.BucketHeader, []byte("wan"), nil)
			put(t, s.state, format.BucketHeader, []byte("projecteb"), nil)
			rewriteLog(t, s, 3, func(e *messages.Event) { e.Numbers[1].Number = 1000 })
		}, []string{
			"false sequence: partition 0, offset 3: workspace 0, sequence 16: number is 1000, want 1001",
			"false header: file log.db, bucket header, key 77616e: nothing is known of this key; what it was is missing",
			"true header: file state.db, bucket header, key 70726f6a6563746562: nothing is known of this key; what it was is missing",
		}},
		{"a damaged event hides nothing of others, nor what is before it", func(t *testing.T, s *Store) {
			damageLog(t, s, 9)
			rewriteLog(t, s, 3, func(e *messages.Event) { e.Numbers[1].Number = 1000 })
			rewriteLog(t, s, 5, func(e *messages.Event) { e.Numbers[1].Number++ })
		}, []string{
			"false damage: partition 0: register: stored data is damaged: partition 0, offset 7: bucket log, LSN 9: it may be the next event of this partition: checksum does not match",
			"false damage: partition 1: register: stored data is damaged: partition 1, offset 3: bucket log, LSN 9: it may be the next event of this partition: checksum does not match",
			"false sequence: partition 0, offset 3: workspace 0, sequence 16: number is 1000, want 1001",
			"false sequence: partition 1, offset 2: workspace 1, sequence 16: number is 1001, want 1002",
			"false damage: log.db, LSN 9: checksum does not match",
			"not looked at: the projections of partition 0",
			"not looked at: the projections of partition 1",
			"not looked at: the index of deduplication ids",
		}},
		{"the PLog index lacks an offset", list(0, 1, 1, 2), []string{
			"true PLog index: partition 0: the index ends at offset 2, want 5",
		}},
		{"the PLog index has a hole", func(t *testing.T, s *Store) {
			list(0, 1, 1, 2)(t, s)
			putList(t, s, 0, 4, 4, 6)
		}, []string{
			"true PLog index: partition 0, offset 4: the index has offset 4, want 3",
		}},
		{"the PLog index leads elsewhere", list(0, 1, 1, 2, 4, 5, 6), []string{
			"true PLog index: partition 0, offset 3: the index names LSN 4, which is partition 0, offset 4",
			"true PLog index: partition 0, offset 4: the index names LSN 5, which is partition 1, offset 1",
		}},
		{"the PLog index leads nowhere", list(0, 1, 1, 2, 3, 4, 40), []string{
			"true damage: partition 0, offset 5: index: stored data is damaged: bucket log, LSN 40: value is missing",
		}},
		{"the PLog index is damaged", value(format.BucketPLog, format.AppendPLogKey(nil, 1, 1), to([]byte("short"))), []string{
			"true damage: partition 1, offset 1: index: stored data is damaged: file state.db, bucket plog, partition 1, offset 1: checksum does not match",
		}},
		{"the PLog index has a foreign partition", list(9, 1, 1), []string{
			"true PLog index: state.db, bucket plog: entry of partition 9, the application has 2",
		}},
		{"the WLog index ends early", head(2, func(h *format.Head) { h.Last, h.LSNs = 1, h.LSNs[:1] }), []string{
			"true WLog: partition 0: workspace 2: the index ends at offset 1, want 2",
			"true numbers: partition 0: workspace 2: stored numbers are [{1 1} {2 322685000131073} {16 1001}], want [{1 2} {2 322685000131073} {16 1001}] (sequence, last number)",
		}},
		{"the WLog index leads elsewhere", head(0, func(h *format.Head) { h.LSNs[0] = 2 }), []string{
			"true WLog: partition 0: workspace 0: offset 1 of the index names LSN 2, which is workspace 2, offset 1",
		}},
		{"the WLog index goes on", head(1, func(h *format.Head) { h.Last, h.LSNs = 3, append(h.LSNs, 9) }), []string{
			"true WLog: partition 1: workspace 1: the index ends at offset 3, want 2",
			"true numbers: partition 1: workspace 1: stored numbers are [{1 3} {2 322685000131073} {16 1001}], want [{1 2} {2 322685000131073} {16 1001}] (sequence, last number)",
		}},
		{"a workspace without events", head(77, func(h *format.Head) { h.Kind, h.Last, h.LSNs = 1, 1, []messages.LSN{9} }), []string{
			"true WLog: partition 1: workspace 77: the index has 1 events, no event before the checkpoint is its",
			"true numbers: partition 1: workspace 77: stored numbers are [{1 1}], no event is its",
		}},
		{"a workspace has no head", func(t *testing.T, s *Store) {
			remove(t, s.state, format.BucketWorkspaces, format.AppendWorkspaceKey(nil, 1))
		}, []string{
			"true WLog: partition 1: workspace 1: no event is in its index, want 2",
			"true numbers: partition 1: workspace 1: stored kind is 0, want 1",
			"true numbers: partition 1: workspace 1: stored numbers are [], want [{1 2} {2 322685000131073} {16 1001}] (sequence, last number)",
			"true records: partition 1, offset 1: workspace 1: record 2/322685000131072, written at this offset, is not there",
			"true records: partition 1, offset 1: workspace 1: record 16/1000, written at this offset, is not there",
			"true records: partition 1, offset 2: workspace 1: record 2/322685000131073, written at this offset, is not there",
			"true records: partition 1, offset 2: workspace 1: record 16/1001, written at this offset, is not there",
		}},
		{"the checkpoint names another event", value(format.BucketCheckpoints, checkpointKey, func(*Store, []byte) []byte {
			return format.Checkpoint{Next: 6, LSN: 6, RegisteredAt: 4, Epoch: 1}.Encode(checkpointKey)
		}), []string{"true checkpoint: file state.db, bucket checkpoints, partition 0: " + files.ErrOtherLog.Error() +
			": LSN 6: got partition 0, offset 5, at 4 us, epoch 1, the log has partition 0, offset 5, at 5 us, epoch 1",
			"not looked at: what stands in state.db"}},
		{"a conflict", func(t *testing.T, s *Store) {
			e := &storage.ConflictError{Place: storage.PlaceWLog, Partition: 1, PLogOffset: 2, LSN: 7, Workspace: 1, WLogOffset: 2}
			key := format.ConflictKeyOf(e).Append(nil)
			put(t, s.state, format.BucketConflicts, key, format.EncodeConflict(key, e))
		}, []string{"true conflict: state.db, bucket conflicts: a projection met a foreign key: key is taken: WLog entry of workspace 1, offset 2 (wanted by partition 1, offset 2)"}},
	}
}

func doctoredValues() []doctoring {
	number := func(ws messages.WSID, seq messages.SeqID, n messages.Number) func(*testing.T, *Store) {
		return head(ws, func(h *format.Head) { h.Sequence(seq).Number = n })
	}
	pointer := func(n messages.Number, lsn messages.LSN) func(*testing.T, *Store) {
		return head(0, func(h *format.Head) { h.Sequence(testSeq).Point(n, lsn) })
	}
	return []doctoring{
		{"a number is too low", number(1, testSeq, 1000), []string{
			"true numbers: partition 1: workspace 1: stored numbers are [{1 2} {2 322685000131073} {16 1000}], want [{1 2} {2 322685000131073} {16 1001}] (sequence, last number)",
		}},
		{"a number is missing", number(1, testSeq, 0), []string{
			"true numbers: partition 1: workspace 1: stored numbers are [{1 2} {2 322685000131073}], want [{1 2} {2 322685000131073} {16 1001}] (sequence, last number)",
		}},
		{"a number too many", number(1, messages.SeqOWRecordID, 5), []string{
			"true numbers: partition 1: workspace 1: stored numbers are [{1 2} {2 322685000131073} {3 5} {16 1001}], want [{1 2} {2 322685000131073} {16 1001}] (sequence, last number)",
		}},
		{"another kind is stored", head(1, func(h *format.Head) { h.Kind = 9 }), []string{"true numbers: partition 1: workspace 1: stored kind is 9, want 1"}},
		{"numbers of a workspace without events", number(77, testSeq, 5), []string{
			"true numbers: partition 1: workspace 77: stored numbers are [{16 5}], no event is its",
		}},
		{"a head is damaged", value(format.BucketWorkspaces, format.AppendWorkspaceKey(nil, 1), func(_ *Store, v []byte) []byte {
			v[len(v)-1] ^= 1
			return v
		}), []string{
			"true damage: partition 1: index: stored data is damaged: bucket workspaces, workspace 1: checksum does not match",
			"true damage: partition 1: numbers: stored data is damaged: bucket workspaces, workspace 1: checksum does not match",
			"true damage: partition 1: records: stored data is damaged: bucket workspaces, workspace 1: checksum does not match",
		}},
		{"a row is missing", head(0, func(h *format.Head) {
			s := h.Sequence(testSeq)
			s.Pointers = slices.Delete(s.Pointers, 1, 2)
		}), []string{
			"true records: partition 0, offset 3: workspace 0: record 16/1001, written at this offset, is not there",
		}},
		{"a row is as it was before", pointer(1000, 1), []string{
			"true records: partition 0, offset 1: workspace 0: record 16/1000 names partition 0, offset 1, LSN 1 as its writer, want 0, 5, 6",
		}},
		{"a row of the tail", pointer(1003, 9), []string{
			"true records: partition 0, offset 7: workspace 0: record 16/1003 is there, no event before the checkpoint wrote it",
		}},
		{"a row that nobody wrote", pointer(5, 1), []string{
			"true damage: partition 0: records: stored data is damaged: partition 0, offset 1: bucket log, LSN 1: value belongs to another key",
		}},
		{"a row is another workspace's", pointer(1001, 2), []string{
			"true damage: partition 0: records: stored data is damaged: partition 0, offset 2: bucket log, LSN 2: value belongs to another key",
		}},
	}
}

// What no head leads to is told: a flush could stumble over it, or a reader take it for a row.
func TestVerifyFindsWhatNothingLeadsTo(t *testing.T) {
	t.Parallel()
	index := func(ws messages.WSID, seq messages.SeqID, n messages.Number) []byte {
		return format.AppendIndexKey(nil, format.RecordKey{Workspace: ws, ID: messages.RecordID{Seq: seq, Number: n}})
	}
	packOf := func(id format.PackID, ws messages.WSID, n messages.Number) func(*testing.T, *Store) {
		return func(t *testing.T, s *Store) {
			key := format.AppendPackKey(nil, id)
			p := format.Pack{Workspace: ws, Seq: testSeq, Rows: []format.Row{{Number: n, Offset: 1, LSN: 1}}}
			put(t, s.state, format.BucketPacks, key, p.Append(nil, key))
		}
	}
	entry := func(ws messages.WSID, n messages.Number) func(*testing.T, *Store) {
		return func(t *testing.T, s *Store) {
			e, key := format.PackEntry{ID: 1, First: n, Last: n, Next: n + 1}, index(ws, testSeq, n)
			put(t, s.state, format.BucketIndex, key, e.Append(nil, key))
		}
	}
	for name, do := range map[string]func(*testing.T, *Store){
		"a pack":                         packOf(1000, 1, 5000),
		"a pack of nobody":               packOf(1000, 77, 5000),
		"rubbish as a pack":              value(format.BucketPacks, format.AppendPackKey(nil, 1000), to([]byte("rubbish"))),
		"a key of no pack":               value(format.BucketPacks, []byte("zzz"), to([]byte("rubbish"))),
		"a key of no entry":              value(format.BucketIndex, []byte("zzz"), to([]byte("rubbish"))),
		"an entry of nobody":             entry(77, 5),
		"an entry before the first pack": entry(1, 5),
		"an entry behind the last pack":  entry(1, 1<<40),
		"an entry of a pack of the head": func(t *testing.T, s *Store) {
			h := headOf(t, s, 1)
			e := h.Find(testSeq).Packs[0]
			key := index(1, testSeq, e.First)
			put(t, s.state, format.BucketIndex, key, e.Append(nil, key))
		},
		"an entry of a sequence without": func(t *testing.T, s *Store) {
			key := index(1, 3, 5)
			put(t, s.state, format.BucketIndex, key, []byte("rubbish"))
		},
		"a list that begins elsewhere":    value(format.BucketIndex, index(1, messages.SeqWLogOffset, 2), to([]byte("rubbish"))),
		"a list behind those of the head": value(format.BucketIndex, index(1, messages.SeqWLogOffset, 6401), to([]byte("rubbish"))),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir, testDescriptor(1, messages.TrustNone), Options{})
			w := takeOver(t, s, 0)
			w.appendMany(200, 1, 2)
			w.flush()
			if r := verifiedOpen(t, s, dir); r.Err() != nil {
				t.Fatalf("before: got %s", r)
			}
			s = open(t, dir, testDescriptor(1, messages.TrustNone), Options{})
			do(t, s)
			if r := verifiedOpen(t, s, dir); r.Err() == nil {
				t.Errorf("got %s, want a fault", r)
			}
		})
	}
}

// verifiedOpen closes a store and verifies it.
func verifiedOpen(t *testing.T, s *Store, dir string) verify.Report {
	t.Helper()
	closeStore(t, s)
	return verified(t, dir, verify.Options{})
}

func doctoredIDs() []doctoring {
	runs := func(s *Store, entries ...dedup.Entry) func(tx *bbolt.Tx) error {
		return func(tx *bbolt.Tx) error {
			if err := tx.Bucket(format.BucketHeader).Delete(format.KeyDedup); err != nil {
				return err
			}
			if err := tx.DeleteBucket(format.BucketDedup); err != nil {
				return err
			}
			if _, err := tx.CreateBucket(format.BucketDedup); err != nil {
				return err
			}
			return (&projection{s: s, flushTables: &flushTables{}}).putEntries(tx, entries)
		}
	}
	entry := func(s *Store, id byte, lsn messages.LSN) dedup.Entry {
		key := format.DedupKey{Workspace: 0, ID: messages.DedupID{id}}
		return dedup.Entry{Hash: key.Hash(s.files.ID), LSN: lsn}
	}
	index := func(entries func(s *Store) []dedup.Entry) func(*testing.T, *Store) {
		return func(t *testing.T, s *Store) {
			if err := s.state.Update(runs(s, entries(s)...)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return []doctoring{
		{"an id is not in the index", index(func(s *Store) []dedup.Entry { return []dedup.Entry{entry(s, 2, 3)} }), []string{
			"true dedup: partition 0, offset 1: workspace 0: id 01000000000000000000000000000000 is in the index 0 times, want once",
		}},
		{"an id is twice in the index", index(func(s *Store) []dedup.Entry {
			return []dedup.Entry{entry(s, 1, 1), entry(s, 2, 3), entry(s, 2, 3)}
		}), []string{
			"true dedup: partition 0, offset 3: workspace 0: id 02000000000000000000000000000000 is in the index 2 times, want once",
		}},
		{"an id of the tail is in the index", index(func(s *Store) []dedup.Entry {
			return []dedup.Entry{entry(s, 1, 1), entry(s, 2, 3), {Hash: 5, LSN: 8}}
		}), []string{
			"true dedup: state.db, bucket dedup: hash 0000000000000005 names LSN 8, which has no such id before the checkpoint",
		}},
	}
}

// manyWorkspaces makes a store with 9,000 events of 3,000 workspaces, all flushed.
func manyWorkspaces(t *testing.T) (dir string, w *writer, workspaces []messages.WSID) {
	t.Helper()
	dir = t.TempDir()
	w = takeOver(t, open(t, dir, testDescriptor(2, messages.TrustNone), Options{}), 0)
	for ws := messages.WSID(0); len(workspaces) < 3000; ws += 2 {
		workspaces = append(workspaces, ws)
	}
	w.appendMany(9000, workspaces...)
	w.flush()
	return dir, w, workspaces
}

// With memory for a few workspaces only, there are many passes, and they find the same.
func TestVerifyInPasses(t *testing.T) {
	t.Parallel()
	dir, w, workspaces := manyWorkspaces(t)
	s := w.s
	w.appendMany(100, workspaces...)
	for _, lsn := range []messages.LSN{10, 2000, 4000, 9050} {
		rewriteLog(t, s, lsn, func(e *messages.Event) { e.Numbers[1].Number += 5 })
	}
	for ws := messages.WSID(100); ws < 200; ws += 2 {
		changeHead(t, s, ws, func(h *format.Head) {
			h.Last, h.LSNs = 2, h.LSNs[:2]
			q := h.Sequence(testSeq)
			q.Pointers = slices.Delete(q.Pointers, 0, 1)
		})
	}
	closeStore(t, s)
	sorted := func(r verify.Report) []string {
		var lines []string
		for _, f := range r.Faults {
			lines = append(lines, f.String())
		}
		slices.Sort(lines)
		return lines
	}
	passes := 0
	counting := func(p verify.Progress) { passes = max(passes, p.Pass) }
	whole := verified(t, dir, verify.Options{MaxFaults: 1000, Progress: counting})
	if passes != 1 || whole.FaultCount < 104 || whole.FaultCount != uint64(len(whole.Faults)) {
		t.Fatalf("got %d passes and %d faults, %d in words", passes, whole.FaultCount, len(whole.Faults))
	}
	for _, memory := range []int64{400_000, 150_000, 50_000, 1} {
		passes = 0
		r := verified(t, dir, verify.Options{MaxFaults: 1000, MaxMemory: memory, Progress: counting})
		if passes < 2 || !slices.Equal(sorted(r), sorted(whole)) || r.FaultCount != whole.FaultCount ||
			r.Events != whole.Events || r.Workspaces != whole.Workspaces || r.Rows != whole.Rows || r.Numbers != whole.Numbers {
			t.Errorf("with %d bytes in %d passes: got %d faults of %d workspaces, want %d of %d",
				memory, passes, r.FaultCount, r.Workspaces, whole.FaultCount, whole.Workspaces)
		}
	}
	r := verified(t, dir, verify.Options{MaxFaults: 3, MaxMemory: 150_000})
	if len(r.Faults) != 3 || r.FaultCount != whole.FaultCount {
		t.Errorf("got %d faults in words, %d in all, want 3 and %d", len(r.Faults), r.FaultCount, whole.FaultCount)
	}
}

// What keeps a store from being looked at is an error; damage that keeps it from being
// opened is a fault.
func TestVerifyCannotLook(t *testing.T) {
	dir, s := verifiable(t)
	if _, err := Verify(t.Context(), dir, verify.Options{}); !errors.Is(err, storage.ErrLocked) {
		t.Errorf("locked: got %v", err)
	}
	closeStore(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Verify(ctx, dir, verify.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: got %v", err)
	}
	if _, err := Verify(t.Context(), t.TempDir(), verify.Options{}); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("missing: got %v", err)
	}
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, format.LogFileName), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(t.Context(), foreign, verify.Options{}); !errors.Is(err, storage.ErrForeign) {
		t.Errorf("foreign: got %v", err)
	}
}

// A fault of a page is told with its file, and what is in the projection can be made anew.
func TestVerifyPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	closeStore(t, open(t, dir, testDescriptor(1, messages.TrustNone), Options{}))
	whole := filesOf(t, dir)
	for name, r := range map[string]format.Role{format.LogFileName: format.RoleLog, format.StateFileName: format.RoleState} {
		at := freelistOf(t, dir, r)
		writeFiles(t, dir, withByte(whole, name, at+boltfile.PageFlagsAt, boltfile.PageFreelist|boltfile.PageLeaf))
		report := verified(t, dir, verify.Options{})
		where := fmt.Sprintf("file %s, page %d", filepath.Join(dir, name), at/os.Getpagesize())
		found := slices.ContainsFunc(report.Faults, func(f verify.Fault) bool {
			return f.Check == verify.CheckPages && f.Where == where && strings.Contains(f.Text, "want those of a freelist") &&
				f.Projection == (r == format.RoleState)
		})
		if !found {
			t.Errorf("want a fault at %s, got %s", where, report)
		}
		writeFiles(t, dir, whole)
	}
}

// Numbers given twice lie before a damaged event of their partition: they are told and
// counted in whichever pass they come.
func TestVerifyInPassesBesideDamage(t *testing.T) {
	t.Parallel()
	dir, w, _ := manyWorkspaces(t)
	s := w.s
	for lsn := messages.LSN(3100); lsn < 8000; lsn += 400 {
		rewriteLog(t, s, lsn, func(e *messages.Event) { e.Numbers[1].Number-- })
	}
	damageLog(t, s, 8500)
	closeStore(t, s)
	whole := verified(t, dir, verify.Options{MaxFaults: 1000})
	if whole.FaultCount < 15 || whole.Workspaces != 3000 {
		t.Fatalf("in one pass: got %v", whole)
	}
	for _, memory := range []int64{400_000, 150_000, 50_000} {
		r := verified(t, dir, verify.Options{MaxFaults: 1000, MaxMemory: memory})
		if r.FaultCount != whole.FaultCount || r.Workspaces != whole.Workspaces {
			t.Errorf("with %d bytes: got %d faults, %d workspaces, want %d, %d", memory, r.FaultCount, r.Workspaces, whole.FaultCount, whole.Workspaces)
		}
	}
}
