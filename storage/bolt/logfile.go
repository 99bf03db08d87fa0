package bolt

import (
	"context"
	"errors"
	"iter"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/check"
	"github.com/partita-go/partita/storage/bolt/internal/fetch"
	"github.com/partita-go/partita/storage/bolt/internal/files"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// LogFile is log.db alone, open read-only: what is left to look at when state.db is
// missing. Without its indexes every read goes through the whole log.
type LogFile struct {
	files *files.Set
	// epochs are the current ones, by partition.
	epochs []files.Epoch
}

// OpenLog opens log.db of a store, and changes nothing. Close must be called.
//
// Errors: ErrNotFound, ErrLocked, ErrForeign, ErrFormat, [*storage.DamagedError], those of
// the file system.
func OpenLog(ctx context.Context, dir string) (*LogFile, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := files.OpenLog(dir, reading())
	if err != nil {
		return nil, err
	}
	l := &LogFile{files: f}
	if l.epochs, err = f.Epochs(); err == nil {
		err = f.ReadEnd()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return l, nil
}

// Close releases the files. Nobody may read any more.
func (l *LogFile) Close() error {
	return l.files.Close()
}

// Descriptor returns the application's description.
func (l *LogFile) Descriptor() messages.Descriptor { return l.files.Descriptor.Normalized() }

// LogWithLSN returns all events in commit order from an LSN on, like [Store.LogWithLSN].
func (l *LogFile) LogWithLSN(ctx context.Context, from messages.LSN) iter.Seq2[LoggedEvent, error] {
	r := fetch.Reader{Log: l.files.Log, Enter: context.Context.Err}
	return r.Events(ctx, func() (fetch.Source, error) { return fetch.LogSource(from, l.files.End), nil })
}

// PLogWithLSN returns a partition's log from an offset on. It ends with an error at a damaged
// entry, whosever that was.
func (l *LogFile) PLogWithLSN(ctx context.Context, id messages.PartitionID, from messages.PLogOffset) iter.Seq2[LoggedEvent, error] {
	if err := mustHave(id, len(l.epochs)); err != nil {
		return func(yield func(LoggedEvent, error) bool) { yield(LoggedEvent{}, err) }
	}
	return l.only(ctx, func(e *LoggedEvent) bool { return e.Partition == id && e.PLogOffset >= from })
}

// WLogWithLSN returns a workspace's log from an offset on, and ends like PLogWithLSN.
func (l *LogFile) WLogWithLSN(ctx context.Context, ws messages.WSID, from messages.WLogOffset) iter.Seq2[LoggedEvent, error] {
	return l.only(ctx, func(e *LoggedEvent) bool { return e.Workspace == ws && e.WLogOffset >= from })
}

// Log returns all events in commit order from an LSN on, like [Store.Log].
func (l *LogFile) Log(ctx context.Context, from messages.LSN) iter.Seq2[messages.Event, error] {
	return fetch.WithoutLSN(l.LogWithLSN(ctx, from))
}

// PLog is [LogFile.PLogWithLSN] without the LSNs.
func (l *LogFile) PLog(ctx context.Context, id messages.PartitionID, from messages.PLogOffset) iter.Seq2[messages.Event, error] {
	return fetch.WithoutLSN(l.PLogWithLSN(ctx, id, from))
}

// WLog is [LogFile.WLogWithLSN] without the LSNs.
func (l *LogFile) WLog(ctx context.Context, ws messages.WSID, from messages.WLogOffset) iter.Seq2[messages.Event, error] {
	return fetch.WithoutLSN(l.WLogWithLSN(ctx, ws, from))
}

func (l *LogFile) only(ctx context.Context, wanted func(*LoggedEvent) bool) iter.Seq2[LoggedEvent, error] {
	return func(yield func(LoggedEvent, error) bool) {
		for e, err := range l.LogWithLSN(ctx, 1) {
			if (err != nil || wanted(&e)) && !yield(e, err) {
				return
			}
		}
	}
}

// Inspect returns what the log says about the store. Nothing is projected; how many
// workspaces there are is not counted. It takes as long as reading the log.
func (l *LogFile) Inspect(ctx context.Context) (Inspection, error) {
	in := Inspection{
		Descriptor: l.Descriptor(), ID: l.files.ID.String(), Events: l.files.End, Projected: 1, StateMissing: true,
	}
	m, err := check.NewLogImage(ctx, l.files, l.epochs)
	m.Close()
	if err != nil {
		return in, err
	}
	for i := range m.Standings {
		r := m.Standings[i].Register
		r.Checkpoint = 1
		in.Partitions = append(in.Partitions, PartitionInspection{
			Partition: messages.PartitionID(i), Register: r, Failed: l.epochs[i].Damage,
		})
	}
	if in.Log, err = l.files.Log.File.Inspect(format.RoleLog); err != nil {
		return in, err
	}
	if in.WAL, err = l.files.InspectWAL(); err != nil {
		return in, err
	}
	if in.Subscriptions, err = l.files.InspectSubscriptions(); err != nil {
		return in, err
	}
	ids, err := l.files.OpenIDs(ctx)
	if ids == nil || err != nil {
		return in, err
	}
	in.IDs, err = files.InspectIDs(ids)
	return in, errors.Join(err, ids.Close())
}
