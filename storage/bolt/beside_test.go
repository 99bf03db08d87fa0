package bolt

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// TestTransactionsBesideAppends: a flush of many events is cut, so that no commit waits for long. While a store is opened nobody
// commits, and it is not.
func TestTransactionsBesideAppends(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	s := open(t, dir, d, Options{})
	w := takeOver(t, s, 0)
	var workspaces []messages.WSID
	for ws := range messages.WSID(100) {
		workspaces = append(workspaces, ws)
	}
	w.appendMany(5000, workspaces...)
	transactions := failAt(s, 0, nil)
	w.flush()
	if *transactions < 3 {
		t.Errorf("got %d transactions beside appends, want 3 at least", *transactions)
	}
	closeStore(t, s)
	expect.NoError(t, os.Remove(filepath.Join(dir, format.StateFileName)))
	op := openedWith(t, dir, Options{}.WithDefaults())
	transactions = failAt(op.Store, 0, nil)
	expect.NoError(t, op.recover(t.Context()))
	if *transactions > 2 { // the headers are one
		t.Errorf("got %d transactions while it is opened, want 2 at most", *transactions)
	}
	op.start()
	closeStore(t, op.Store)
}
