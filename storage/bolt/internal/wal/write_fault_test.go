package wal_test

import (
	"syscall"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
)

// Before anything of a commit was written, a lack of space refuses it; after that nobody knows, whatever failed.
func TestWALWriteFails(t *testing.T) {
	for _, failed := range []struct{ before, after, want error }{
		{syscall.ENOSPC, nil, storage.ErrFull},
		{syscall.EIO, nil, messages.ErrOutcomeUnknown},
		{nil, syscall.ENOSPC, messages.ErrOutcomeUnknown},
		{nil, syscall.EIO, messages.ErrOutcomeUnknown},
	} {
		w := newWALWriter(t, smallHalf)
		w.BeforeCommit = func() error { return failed.before }
		w.AfterCommit = func() error { return failed.after }
		values := [][]byte{[]byte("event")}
		expect.ErrorIs(t, w.Write(wal.Size(values), 1, values), failed.want, failed)
		expect.Equal(t, 0, w.Used, "nothing is acknowledged")
		expect.NoError(t, w.Remove())
		expect.NoError(t, w.Remove(), "there is none any more")
	}
}
