package logdb

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/wal"
	"github.com/partita-go/partita/storage/replog"
)

// Log is log.db and log.wal as one log. Load reads where it ends; then it can be read. Vouch, Settle and Start, in
// this order, let one goroutine append to it.
type Log struct {
	// File is log.db.
	File *boltfile.File
	// WAL is log.wal. Whoever appends has it, and Close after that.
	WAL wal.Writer
	// Memory is how many bytes may wait for log.db; one commit may have more. Set before Start.
	Memory  int64
	pending pending
	// applier is nil until Start.
	applier *applier
	// failed is told why log.db cannot take what is in log.wal.
	failed func(error)
	// Position is up to where log.db had a replicated log when Load read it, zero if it never had one; Kept is up to where
	// all of the directory had it. See Replicate for the rest, which is nil without such a log.
	Position, Kept replog.Position
	kept           func(to replog.Position) replog.Position
	trim           func(index uint64)
	// ids says that there is an ids.db beside log.db, which the numbers of a replicated log rest on.
	ids atomic.Bool
	// commit is the last commit of log.db that Load has seen.
	commit uint64
	// end is the last LSN that Load has seen.
	end messages.LSN
	// left says that there is a log.wal that a crash has left: until the applier removes it, the first append or Close,
	// whoever comes first. It is false if nothing may be written. From Start on, who looks has removing.
	left     bool
	removing sync.Mutex
	// content is what was read of it, until Settle: it is large.
	content []byte
}

// New is the log in a directory of which log.db is open. Close must be called.
func New(f *boltfile.File, d *boltfile.Directory) *Log {
	return &Log{File: f, Memory: 2 * wal.Half, WAL: wal.Writer{Directory: d, Disk: d, Half: wal.Half}, failed: func(error) {}}
}

// Start lets the applier run. failed is told in its goroutine, why log.db cannot take what was
// acknowledged: ErrConflict if its next place is taken, ErrOutcomeUnknown if nothing may be written any more. The log.wal
// of a crash goes a second later, unless an append comes before.
func (l *Log) Start(failed func(error)) {
	l.failed = failed
	l.applier = newApplier(l)
	go l.applier.run()
}

// Close brings what is left to log.db, removes log.wal then, and releases the files.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	return errors.Join(l.endWAL(), l.File.Close(), l.WAL.Close())
}

// InPlace returns ErrDisplaced, and ErrForeign, if the log.db of its directory is not the one that is open: somebody
// has taken the files away, or put others in their place. Nothing is made beside them. A closed log is in place.
func (l *Log) InPlace() error {
	err := l.WAL.Directory.MustBe(format.LogFileName, l.File.Handle)
	switch {
	case err == nil, errors.Is(err, storage.ErrClosed), errors.Is(err, fs.ErrClosed):
		return nil
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("%w: %w", storage.ErrForeign, err) // whatever lies there is not beside our log.db
	}
	return fmt.Errorf("%w: %w", storage.ErrDisplaced, err)
}

// Pending returns the events that log.db has not yet, and the LSN of the first. Whoever reads log.db after that finds
// there what is not among them.
func (l *Log) Pending() (first messages.LSN, values [][]byte) { return l.pending.all() }

// Refused returns why log.db has not taken what it was given last, nil if it has.
func (l *Log) Refused() error { return l.pending.state().failed }
