package bolt

import (
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
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
