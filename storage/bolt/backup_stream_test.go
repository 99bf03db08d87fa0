package bolt

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
)

// streamed returns a backup of a store as a stream.
func streamed(t *testing.T, s *Store, o CopyOptions) []byte {
	t.Helper()
	var b bytes.Buffer
	expect.NoError(t, s.WriteBackup(t.Context(), &b, o))
	return b.Bytes()
}

// A backup that was a stream holds all that was durable when it began, is sound, and has the subscriptions and the
// launches. When a file is written more is appended and projected: the projections may be behind the log, never ahead.
func TestBackupStream(t *testing.T) {
	dir, s := verifiable(t)
	w := takeOver(t, s, 0)
	_, err := s.NextGenerator(t.Context(), 7)
	expect.NoError(t, err)
	w.append(0, 2)
	b := streamed(t, s, CopyOptions{Progress: func(p CopyProgress) {
		if p.Done == p.Total {
			w.append(0, 2, 4)
			w.flush()
		}
	}})
	to := filepath.Join(t.TempDir(), "backup")
	phases := make(map[string]bool)
	copied, err := ReadBackup(t.Context(), bytes.NewReader(b), to, CopyOptions{Progress: func(p CopyProgress) { phases[p.Phase] = true }})
	expect.NoError(t, err)
	if copied.ID != s.files.ID.String() || copied.Events < 11 || copied.Report.Events != uint64(copied.Events) ||
		copied.LogFrom == 0 || copied.StateFrom == 0 || copied.LogTo == 0 || copied.StateTo == 0 {
		t.Errorf("got %+v", copied)
	}
	expect.Equal(t, map[string]bool{"copy ids.db": true, "copy state.db": true, "copy log.db": true}, phases)
	closeStore(t, s)
	both := filepath.Join(t.TempDir(), "again")
	_, err = ReadBackup(t.Context(), bytes.NewReader(streamed(t, openToRead(t, dir), CopyOptions{})), both, CopyOptions{})
	expect.NoError(t, err)
	sameEvents(t, dir, both)
}

// A stream that was cut off, changed, or goes on behind its end is no backup, wherever that is: nothing is made.
func TestBackupStreamIsWhole(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), smallMap)
	w := takeOver(t, s, 0)
	w.append(1, 2, 3)
	whole := streamed(t, s, CopyOptions{})
	to := filepath.Join(t.TempDir(), "backup")
	try := func(what string, at int, b []byte) {
		t.Helper()
		_, err := ReadBackup(t.Context(), bytes.NewReader(b), to, CopyOptions{SkipVerify: true})
		if !errors.Is(err, ErrStream) {
			t.Errorf("%s at %d: got %v, want ErrStream", what, at, err)
		}
		nothingAt(t, to)
	}
	for at := 0; at < len(whole); at += max(1, len(whole)/150) {
		try("cut off", at, whole[:at])
		b := bytes.Clone(whole)
		b[at] ^= 1
		try("changed", at, b)
	}
	try("cut off", len(whole)-1, whole[:len(whole)-1])
	try("goes on", len(whole), append(bytes.Clone(whole), 0))
	try("something else", 0, []byte("HTTP/1.1 500 Internal Server Error\r\n\r\n"))
	_, err := ReadBackup(t.Context(), bytes.NewReader(whole), to, CopyOptions{})
	expect.NoError(t, err)
	_, err = ReadBackup(t.Context(), bytes.NewReader(whole), to, CopyOptions{})
	expect.ErrorIs(t, err, ErrExists)
}

// A context that ends, a reader or a writer that fails, end it: nothing is left.
func TestBackupStreamIsGivenUp(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), smallMap)
	takeOver(t, s, 0).append(1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	expect.ErrorIs(t, s.WriteBackup(ctx, io.Discard, CopyOptions{}), context.Canceled)
	read, write := io.Pipe()
	expect.NoError(t, read.Close())
	expect.ErrorIs(t, s.WriteBackup(t.Context(), write, CopyOptions{}), io.ErrClosedPipe)
	to := filepath.Join(t.TempDir(), "backup")
	_, err := ReadBackup(ctx, bytes.NewReader(streamed(t, s, CopyOptions{})), to, CopyOptions{})
	expect.ErrorIs(t, err, context.Canceled)
	_, err = ReadBackup(t.Context(), read, to, CopyOptions{})
	expect.ErrorIs(t, err, io.ErrClosedPipe)
	nothingAt(t, to)
}
