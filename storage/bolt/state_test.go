package bolt

import (
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/statedb"
)

// headOf returns what state.db has of a workspace.
func headOf(t testing.TB, s *Store, ws messages.WSID) (h format.Head) {
	t.Helper()
	if err := s.state.View(func(tx *bbolt.Tx) error { return statedb.ReadHead(tx, ws, &h) }); err != nil {
		t.Fatal(err)
	}
	return h
}

// changeHead changes what state.db has of a workspace.
func changeHead(t testing.TB, s *Store, ws messages.WSID, change func(*format.Head)) {
	t.Helper()
	h := headOf(t, s, ws)
	change(&h)
	key := format.AppendWorkspaceKey(nil, ws)
	put(t, s.state, format.BucketWorkspaces, key, h.Encode(nil, key))
}

// putList puts a list of a partition's log into state.db.
func putList(t testing.TB, s *Store, p messages.PartitionID, first messages.PLogOffset, lsns ...messages.LSN) {
	t.Helper()
	key := format.AppendPLogKey(nil, p, first)
	put(t, s.state, format.BucketPLog, key, format.AppendList(nil, format.BucketPLog, key, lsns))
}

// content is what state.db has of a workspace or of a partition's log, however it is laid out.
type content struct {
	kind    messages.WSKind
	numbers []messages.SequenceNumber
	log     []messages.LSN
	rows    []storage.Row
}

// contents returns what state.db has, by workspace, and of the partitions' logs.
func contents(t testing.TB, s *Store) (all []any) {
	t.Helper()
	workspaces := make(map[messages.WSID]content)
	err := s.state.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(format.BucketWorkspaces).ForEach(func(k, v []byte) error {
			var h format.Head
			ws, err := statedb.DecodeHead(k, v, &h)
			c := content{kind: h.Kind, numbers: statedb.NumbersOf(nil, &h)}
			if err == nil {
				c.log, err = statedb.WLogIn(tx, ws, &h, 1, h.Last+1)
			}
			workspaces[ws] = c
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	for ws, c := range workspaces {
		for _, n := range c.numbers {
			c.rows = append(c.rows, collectRows(t, s, ws, storage.RecordRange{Seq: n.Seq})...)
		}
		workspaces[ws] = c
	}
	for i := range s.partitions {
		p := &s.partitions[i]
		lsns, err := statedb.PLog(s.state, p.id, 1, p.checkpoint)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, lsns)
	}
	return append(all, workspaces)
}
