package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

// OutboxChildCommand is the hidden command of the process that delivers and is killed.
const OutboxChildCommand = "outbox-that-is-killed"

// The outbox is an application of its own: its store has a copy of each author too.
const (
	outboxApplication = "outbox"
	outboxFile        = "outbox.txt"

	// kindCopy is that of the workspaces which copies are appended to.
	kindCopy messages.WSKind = 2
	// copyBit tells the workspace of an author's copies from the author's own.
	copyBit messages.WSID = 1 << 40
)

func outboxDescriptor(partitions uint32) messages.Descriptor {
	d := commitsDescriptor(partitions)
	d.Application = outboxApplication
	d.Kinds = append(d.Kinds, messages.Kind{ID: kindCopy, Name: "copy", Sequences: []messages.Sequence{
		{ID: seqCommit, Name: "Copy", Initial: 1},
	}})
	return d
}

// delivery delivers the commits twice: as lines of a file, and as copies in the store
// itself.
type delivery struct {
	app   *partition.App
	batch int
	// told is called with a line for each event when it is in the file, or its copy in the
	// log, one batch at a time.
	told func(lines []byte, events int) error

	mu   sync.Mutex
	file *os.File
}

// openOutbox opens the file that lines are added to. What a killed process has written of a
// line is cut off: all of its batch will be delivered again.
func openOutbox(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, outboxFile), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(f)
	if err == nil {
		err = f.Truncate(int64(bytes.LastIndexByte(content, '\n') + 1))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// subscribe starts both subscriptions. They read the authors, not the copies.
func (d *delivery) subscribe(ctx context.Context) ([]*partition.Subscription, error) {
	var all []*partition.Subscription
	for _, c := range []partition.SubscriptionConfig{{Name: "file", Handler: d.toFile}, {Name: "copies", Handler: d.toCopies}} {
		c.Kinds, c.Batch = []messages.WSKind{kindAuthor}, d.batch
		s, err := d.app.Subscribe(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("subscription %s: %w", c.Name, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// linesOf has a line for each event of a batch.
func linesOf(batch partition.Delivery) (lines []byte, err error) {
	for i := range batch.Events {
		e := &batch.Events[i]
		_, commit, err := decodeCommit(e.Body)
		if err != nil {
			return nil, err
		}
		lines = append(lines, ack{partition: e.Partition, offset: e.PLogOffset, commit: commit.ID}.line()...)
	}
	return lines, nil
}

// toFile writes a line for each event: an effect that the store knows nothing of. It
// happens again if the process dies before the position is stored.
func (d *delivery) toFile(_ context.Context, batch partition.Delivery) error {
	lines, err := linesOf(batch)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.file.Write(lines); err != nil {
		return err
	}
	return d.told(lines, len(batch.Events))
}

// toCopies appends each event to a copy of its author. The append has the delivery's id, so
// that it happens once, however often the event is delivered. Authors do not wait for one
// another; those of one author come in their order.
func (d *delivery) toCopies(ctx context.Context, batch partition.Delivery) error {
	byAuthor := make(map[messages.WSID][]*partition.DeliveredEvent)
	for i := range batch.Events {
		e := &batch.Events[i]
		byAuthor[e.Workspace] = append(byAuthor[e.Workspace], e)
	}
	errs := make(chan error, len(byAuthor))
	for ws, events := range byAuthor {
		go func() { errs <- d.copyAll(ctx, ws|copyBit, events) }()
	}
	var failed error
	for range byAuthor {
		failed = errors.Join(failed, <-errs)
	}
	if failed != nil {
		return failed
	}
	lines, err := linesOf(batch)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.told(lines, len(batch.Events))
}

func (d *delivery) copyAll(ctx context.Context, to messages.WSID, events []*partition.DeliveredEvent) error {
	sequencer, err := d.app.SequencerOf(to)
	if err != nil {
		return err
	}
	for _, e := range events {
		to := partition.AppendTo{Workspace: to, Kind: kindCopy, DedupID: e.DedupID, Wait: true}
		if _, err := sequencer.Append(ctx, to, partition.Draft{Wanted: []messages.Wanted{{Seq: seqCommit}}, Body: e.Body}); err != nil {
			return err
		}
	}
	return nil
}

// untilDone waits until everything is delivered.
func untilDone(ctx context.Context, all []*partition.Subscription) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		left := uint64(0)
		for _, s := range all {
			status, err := s.Status(ctx)
			if err != nil {
				return err
			}
			if status.Stopped != "" || status.Parked > 0 {
				return fmt.Errorf("subscription %s: stopped: %q, %d events parked", status.Name, status.Stopped, status.Parked)
			}
			left += status.Lag
		}
		if left == 0 {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// deliver delivers over a store that runs, until everything is delivered.
func (w *outboxWork) deliver(ctx context.Context, running *deployment, told func([]byte, int) error) (err error) {
	file, err := openOutbox(w.dir)
	if err != nil {
		return err
	}
	d := &delivery{app: running.app, batch: w.batch, told: told, file: file}
	// The subscriptions end before the file is closed.
	defer func() { err = errors.Join(err, running.undeploy(), file.Close()) }()
	all, err := d.subscribe(ctx)
	if err != nil {
		return err
	}
	return untilDone(ctx, all)
}

// outboxWork is what is known to the process that is killed and to the one that finishes.
type outboxWork struct {
	work
	batch int
	// target is after how many deliveries a child is to be killed.
	target int
}

func (w *outboxWork) flags(set *pflag.FlagSet) {
	w.work.flags(set)
	set.IntVar(&w.batch, "batch", 100, "deliver `N` events at a time")
	set.IntVar(&w.target, "target", 0, "wait to be killed after `N` deliveries")
	set.Lookup("target").Hidden = true
}

func (w *outboxWork) check() error {
	return errors.Join(w.work.check(), cli.InRange("batch", w.batch, 1, 10_000))
}

func (w *outboxWork) args() []string {
	return append([]string{OutboxChildCommand, "--batch", strconv.Itoa(w.batch), "--target", strconv.Itoa(w.target)}, w.work.args()[1:]...)
}

func (w *outboxWork) descriptor() messages.Descriptor { return outboxDescriptor(uint32(w.partitions)) }

// child delivers, and tells about each event when that is done. If it has told of
// enough it waits to be killed, else it ends when there is nothing left. If its parent is
// gone, it cannot tell any more.
func (w *outboxWork) child(ctx context.Context, s cli.Streams) error {
	running, err := deploy(ctx, w.dir, w.descriptor(), bolt.Options{})
	if err != nil {
		return err
	}
	told := 0
	err = w.deliver(ctx, running, func(lines []byte, events int) error {
		told += events
		_, err := s.Out.Write(lines)
		return err
	})
	if err == nil && told >= w.target {
		_, err = io.Copy(io.Discard, s.In)
	}
	return errors.Join(err, running.stop())
}
