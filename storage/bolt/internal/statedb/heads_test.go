package statedb

import (
	"context"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// putHeads makes workspaces from one up to another.
func putHeads(t *testing.T, state *boltfile.File, first, last int) {
	t.Helper()
	update(t, state, func(tx *bbolt.Tx) error {
		b := tx.Bucket(format.BucketWorkspaces)
		b.FillPercent = boltfile.LogFill
		for ws := first; ws <= last; ws++ {
			if err := b.Put(format.AppendWorkspaceKey(nil, messages.WSID(ws)), nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// Counting ends where it would take long, or has been cancelled.
func TestCountWorkspaces(t *testing.T) {
	state := openState(t)
	check := func(want uint64, wantMore bool) {
		t.Helper()
		n, more, err := CountWorkspaces(t.Context(), state)
		expect.NoError(t, err)
		expect.Equal(t, want, n)
		expect.Equal(t, wantMore, more)
	}
	check(0, false)
	putHeads(t, state, 1, 3)
	check(3, false)
	putHeads(t, state, 4, maxCountedWorkspaces)
	check(maxCountedWorkspaces, false)
	putHeads(t, state, maxCountedWorkspaces+1, maxCountedWorkspaces+5)
	check(maxCountedWorkspaces, true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := CountWorkspaces(ctx, state)
	expect.ErrorIs(t, err, context.Canceled)
}

// A key of another length is no workspace's.
func TestDecodeHeadKey(t *testing.T) {
	var h format.Head
	_, err := DecodeHead([]byte("short"), nil, &h)
	expect.ErrorIs(t, err, format.ErrLayout)
	if !damaged(err) {
		t.Errorf("got %v", err)
	}
}
