package bolt

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/verify"
)

// LogFile is log.db alone, open read-only: what is left to look at when state.db is
// missing. Without its indexes every read goes through the whole log.
type LogFile struct{ s *Store }

// OpenLog opens log.db of a store, and changes nothing. Close must be called.
//
// Errors: ErrNotFound, ErrLocked, ErrForeign, ErrFormat, [*storage.DamagedError], those of
// the file system.
func OpenLog(ctx context.Context, dir string) (*LogFile, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	op := newReading()
	if err := op.holdDirectory(dir); err != nil {
		return nil, err
	}
	if err := op.openLogOnly(); err != nil {
		return nil, errors.Join(err, op.abandon())
	}
	return &LogFile{s: op.Store}, nil
}

func (op *opening) openLogOnly() error {
	there, err := op.directory.Present(format.LogFileName)
	if err != nil {
		return err
	}
	if !there {
		return fmt.Errorf("%w: %s", storage.ErrNotFound, op.directory.Path)
	}
	h, err := op.inspect(format.RoleLog)
	if err != nil {
		return err
	}
	op.id, op.descriptor, op.projected = h.ID, h.Descriptor, 1
	subscriptionsThere, err := op.inspectSubscriptions()
	if err != nil {
		return err
	}
	if op.log, err = op.openAgain(format.RoleLog); err != nil {
		return err
	}
	if subscriptionsThere {
		if err := op.openSubscriptions(); err != nil {
			return err
		}
	}
	op.makePartitions()
	if err := op.loadEpochs(); err != nil {
		return err
	}
	end, err := op.logEnd()
	op.lastLSN.Store(uint64(end))
	return err
}

// Close releases the files. Nobody may read any more.
func (l *LogFile) Close() error {
	return errors.Join(l.s.log.Close(), l.s.subscriptions.close(), l.s.wal.Close(), l.s.directory.Close())
}

// Descriptor returns the application's description.
func (l *LogFile) Descriptor() messages.Descriptor { return l.s.Descriptor() }

// LogWithLSN returns all events in commit order from an LSN on, like [Store.LogWithLSN].
func (l *LogFile) LogWithLSN(ctx context.Context, from messages.LSN) iter.Seq2[LoggedEvent, error] {
	return l.s.LogWithLSN(ctx, from)
}

// PLogWithLSN returns a partition's log from an offset on. It ends with an error at a damaged
// entry, whosever that was.
func (l *LogFile) PLogWithLSN(ctx context.Context, id messages.PartitionID, from messages.PLogOffset) iter.Seq2[LoggedEvent, error] {
	if _, err := l.s.partition(id); err != nil {
		return func(yield func(LoggedEvent, error) bool) { yield(LoggedEvent{}, err) }
	}
	return l.only(ctx, func(e *LoggedEvent) bool { return e.Partition == id && e.PLogOffset >= from })
}

// WLogWithLSN returns a workspace's log from an offset on, and ends like PLogWithLSN.
func (l *LogFile) WLogWithLSN(ctx context.Context, ws messages.WSID, from messages.WLogOffset) iter.Seq2[LoggedEvent, error] {
	return l.only(ctx, func(e *LoggedEvent) bool { return e.Workspace == ws && e.WLogOffset >= from })
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
		Descriptor: l.s.Descriptor(), ID: l.s.id.String(), Events: messages.LSN(l.s.lastLSN.Load()), Projected: 1, StateMissing: true,
	}
	m, err := l.image(ctx)
	m.close()
	if err != nil {
		return in, err
	}
	for i := range m.standings {
		r := m.standings[i].Register
		r.Checkpoint = 1
		in.Partitions = append(in.Partitions, PartitionInspection{Partition: messages.PartitionID(i), Register: r, Failed: l.s.partitions[i].failed})
	}
	if in.Log, err = l.s.log.Inspect(format.RoleLog); err != nil {
		return in, err
	}
	if in.WAL, err = l.s.inspectWAL(); err != nil {
		return in, err
	}
	in.Subscriptions, err = l.s.subscriptions.inspect()
	return in, err
}

// logImage shows log.db alone to [verify.Files].
type logImage struct {
	image
	// standings are where the partitions' logs end: where the projections would stand if
	// they had everything.
	standings []verify.Standing
}

// image reads the log to find where the partitions stand. What is damaged is found by
// those who read it for what it holds.
func (l *LogFile) image(ctx context.Context) (*logImage, error) {
	m := &logImage{image: image{s: l.s, projected: messages.LSN(l.s.lastLSN.Load()) + 1}, standings: make([]verify.Standing, len(l.s.partitions))}
	for i := range m.standings {
		m.standings[i].Register.Epoch = l.s.partitions[i].epoch
		m.standings[i].Checkpoint = 1
	}
	err := m.Log(ctx, func(lsn messages.LSN, e *messages.Event, _ error) error {
		if e == nil || uint64(e.Partition) >= uint64(len(m.standings)) {
			return nil
		}
		s := &m.standings[e.Partition]
		s.Last, s.Checkpoint, s.LastRegisteredAt = e.PLogOffset, e.PLogOffset+1, e.RegisteredAt
		s.LSN, s.At, s.Epoch = lsn, e.RegisteredAt, e.Epoch
		return nil
	})
	return m, err
}

// Standing implements [verify.Image].
func (m *logImage) Standing(_ context.Context, p messages.PartitionID) (verify.Standing, error) {
	return m.standings[p], m.s.partitions[p].failed
}

// verifyLog checks log.db alone, and says why the rest is not looked at.
func verifyLog(ctx context.Context, dir string, o verify.Options, why verify.Fault) (r verify.Report, err error) {
	l, err := OpenLog(ctx, dir)
	if err != nil {
		r.AddFirst(&o, why)
		return damageReport(dir, r, err, &o)
	}
	m, err := l.image(ctx)
	if err == nil {
		o.LogOnly = true
		r, err = verify.Files(ctx, m, o)
	}
	m.close()
	if err != nil {
		r, err = damageReport(dir, r, err, &o)
	}
	r.AddFirst(&o, why)
	return r, errors.Join(err, l.Close())
}
