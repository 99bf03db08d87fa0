package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/partita-go/partita"
	"github.com/partita-go/partita/cmd/internal/human"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// Callers are how many append at the same time, one after the other.
var Callers = []int{1, 8, 64, 256}

// What is appended: one number and a body, in one of so many workspaces.
const (
	kind       messages.WSKind = 1
	invoices   messages.SeqID  = 16
	bodyBytes                  = 200
	workspaces                 = 10_000
	partitions                 = 4
	// toldOf is of how many appends of a caller progress is told: of each it would cost what is measured.
	toldOf = 32
	// maxEvents bounds what one number of callers appends, and so the room that it takes.
	maxEvents = 400_000
	// block is how much a synced write has, and blocks how long the file is in which they lie.
	block  = 4 << 10
	blocks = 4 << 10
)

// closeLimit is how long the store may take to close, whoever wants an end.
const closeLimit = time.Minute

// Result is what was measured.
type Result struct {
	// Sync is how long synced writes of 4 KiB took, one after the other.
	Sync Times
	// Appends are those of each number of [Callers].
	Appends []Appends
}

// Appends are those of so many callers.
type Appends struct {
	Callers   int
	PerSecond float64
	Times     Times
	// Disk is the share of the time in which the log was being written, 0 to 1.
	Disk float64
}

// Progress is told what is measured, and how often that was done. It is safe for concurrent use.
type Progress interface {
	Phase(name string, total int64)
	Add(n int64)
}

// Run measures in a directory that is there, for about a time. It makes a directory of its own in it, and removes that before
// it returns.
func Run(ctx context.Context, dir string, limit time.Duration, p Progress) (r Result, err error) {
	scratch, err := os.MkdirTemp(dir, "partita-bench-*")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	share := limit / time.Duration(1+len(Callers))
	p.Phase("synced writes", 0)
	if r.Sync, err = measureSync(ctx, filepath.Join(scratch, "writes"), share, p); err != nil {
		return r, err
	}
	r.Appends, err = measureAppends(ctx, filepath.Join(scratch, "store"), share, p)
	return r, err
}

// measureSync writes blocks of a file that is there already, as those of log.wal.
func measureSync(ctx context.Context, name string, limit time.Duration, p Progress) (t Times, err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR|synced, 0o600)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(make([]byte, block*blocks)); err != nil {
		return t, err
	}
	content, all := make([]byte, block), newHistogram()
	for begun := time.Now(); time.Since(begun) < limit && ctx.Err() == nil; {
		content[0]++
		at := time.Now()
		if _, err := f.WriteAt(content, all.TotalCount()%blocks*block); err != nil {
			return t, err
		}
		if err := all.RecordValue(int64(time.Since(at))); err != nil {
			return t, err
		}
		p.Add(1)
	}
	return timesOf(all), ctx.Err()
}

// measureAppends makes an application, as a program does that embeds partita.
func measureAppends(ctx context.Context, dir string, share time.Duration, p Progress) (all []Appends, err error) {
	app, err := partita.Open(ctx, dir, partition.Application{Descriptor: messages.Descriptor{
		Application: "bench", Partitions: partitions,
		Kinds: []messages.Kind{{ID: kind, Name: "shop", Sequences: []messages.Sequence{{ID: invoices, Name: "invoice", Initial: 1}}}},
	}}, partita.Options{Create: true})
	if err != nil {
		return nil, err
	}
	defer func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		err = errors.Join(err, app.Close(limited))
	}()
	for _, callers := range Callers {
		p.Phase("appends of "+human.Counted(callers, "caller"), 0)
		l := load{app: app, progress: p, callers: callers, limit: share, body: make([]byte, bodyBytes)}
		a, err := l.run(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// load is that of so many callers.
type load struct {
	app      *partita.App
	progress Progress
	callers  int
	limit    time.Duration
	body     []byte

	mu  sync.Mutex
	all *hdrhistogram.Histogram
}

func (l *load) run(ctx context.Context) (a Appends, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	before, err := l.app.Store.Figures(ctx)
	if err != nil {
		return a, err
	}
	l.all = newHistogram()
	begun := time.Now()
	var running sync.WaitGroup
	for i := range l.callers {
		running.Go(func() {
			if err := l.caller(ctx, i, begun); err != nil {
				cancel(err)
			}
		})
	}
	running.Wait()
	took := time.Since(begun).Seconds()
	if err := context.Cause(ctx); err != nil {
		return a, err
	}
	after, err := l.app.Store.Figures(ctx)
	a = Appends{Callers: l.callers, PerSecond: float64(l.all.TotalCount()) / took, Times: timesOf(l.all)}
	a.Disk = min(1, (after.CommitTime.Sum-before.CommitTime.Sum)/took)
	return a, err
}

// caller appends one event after the other until its time is up.
func (l *load) caller(ctx context.Context, id int, begun time.Time) error {
	mine := newHistogram()
	for n := 0; n < maxEvents/l.callers && time.Since(begun) < l.limit; n++ {
		ws := messages.WSID(1 + (id+n*l.callers)%workspaces)
		sequencer, err := l.app.SequencerOf(ws)
		if err != nil {
			return err
		}
		at := time.Now()
		_, err = sequencer.Append(ctx, partition.AppendTo{Workspace: ws, Kind: kind, Wait: true},
			partition.Draft{Wanted: []partition.Wanted{{Seq: invoices}}, Body: l.body})
		if err != nil {
			return err
		}
		if err := mine.RecordValue(int64(time.Since(at))); err != nil {
			return err
		}
		if n%toldOf == 0 {
			l.progress.Add(toldOf)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.Merge(mine)
	return nil
}
