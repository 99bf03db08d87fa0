package check

import (
	"context"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/files"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/subsdb"
	"github.com/partita-go/partita/storage/verify"
)

// Register returns where a partition stands.
type Register func(context.Context, messages.PartitionID) (storage.Register, error)

// Image shows the files of a store to [verify.Files]. Nobody writes them, so that a read may begin inside another one.
type Image struct {
	files    *files.Set
	stand    *files.Stand
	register Register
	// stop ends the reading ahead of the pass under way, nil if there is none.
	stop func()
}

var _ verify.Image = (*Image)(nil)

// NewImage is the image of files of which the log was read to its end.
func NewImage(f *files.Set, register Register) (*Image, error) {
	stand, err := f.Stand()
	return &Image{files: f, stand: stand, register: register}, err
}

// Close ends what goes on in the background.
func (m *Image) Close() {
	if m.stop != nil {
		m.stop()
	}
}

// Descriptor implements [verify.Image].
func (m *Image) Descriptor() messages.Descriptor { return m.files.Descriptor.Normalized() }

// Projected implements [verify.Image].
func (m *Image) Projected() messages.LSN { return m.stand.Projected }

// Standing implements [verify.Image].
func (m *Image) Standing(ctx context.Context, p messages.PartitionID) (verify.Standing, error) {
	r, err := m.register(ctx, p)
	c := m.stand.Checkpoints[p]
	return verify.Standing{
		Register: r, LSN: c.LSN, At: c.RegisteredAt, Epoch: c.Epoch, Target: c.Target, Through: c.Through,
	}, err
}

// Log implements [verify.Image]. A pass over the files begins with it: whatever of them is
// not in memory any more is read ahead, since bbolt's map has single pages read.
func (m *Image) Log(ctx context.Context, each func(messages.LSN, *messages.Event, error) error) error {
	m.Close()
	names := []string{format.LogFileName}
	if m.files.State != nil {
		names = append(names, format.StateFileName)
	}
	m.stop = boltfile.ReadAhead(ctx, m.files.Directory, names...)
	var view format.EventView
	var e messages.Event
	take := func(lsn messages.LSN, v []byte) error {
		if err := view.Decode(lsn, v); err != nil {
			return each(lsn, nil, err)
		}
		view.Lend(&e)
		return each(lsn, &e, nil)
	}
	err := m.files.Log.File.Scan(ctx, format.BucketLog, nil, func(k, v []byte) error {
		lsn, ok := format.ParseLSN(k)
		if !ok {
			return m.files.Log.File.BadKey(format.BucketLog, k)
		}
		return take(lsn, v)
	})
	if err != nil {
		return err
	}
	first, values := m.files.Log.Pending()
	for i, v := range values {
		if err := take(first+messages.LSN(i), v); err != nil {
			return err
		}
	}
	return nil
}

// Event implements [verify.Image].
func (m *Image) Event(ctx context.Context, lsn messages.LSN) (e messages.Event, err error) {
	if err := ctx.Err(); err != nil {
		return e, err
	}
	err = m.files.Log.Events([]messages.LSN{lsn}, func(v *format.EventView) error {
		e = v.Event()
		return nil
	})
	return e, err
}

// Subscriptions implements [verify.Image].
func (m *Image) Subscriptions(
	ctx context.Context,
	parked func(*storage.Subscription, *storage.ParkedEvent), each func(*storage.Subscription, error) error,
) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return subsdb.View(m.files.Subscriptions.Load(), func(tx subsdb.Tx) error {
		check := func(name string, positions []subsdb.Placed) error {
			return tx.OfLog(name, subsdb.CheckRests(m.files.Log, positions, m.files.End))
		}
		return tx.Each(check, parked, each)
	})
}
