package tests

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

const (
	// fullLoadEnv makes the test binary a process that appends to the store named as fast as it
	// can, until its standard input ends, and then closes it.
	fullLoadEnv = "PARTITA_FULL_LOAD_CHILD"
	// What the rows of the table of throughput have by default.
	fullLoadCallers    = 256
	fullLoadPartitions = 16
	fullLoadWorkspaces = 10_000
	fullLoadRecords    = 2
	fullLoadRecordLen  = 100
	// fullLoadTime is how long the load lasts: several flushes.
	fullLoadTime = 15 * time.Second
)

// BenchmarkFullLoadEnds ends a process at the full load of the table of throughput, by SIGKILL
// and in order. Measured is what follows: an open until the first Start is granted, or the close.
func BenchmarkFullLoadEnds(b *testing.B) {
	app := partition.Application{WorkspaceZero: true, Descriptor: shop(fullLoadPartitions)}
	b.Run("killed", func(b *testing.B) {
		replayed := uint64(0)
		for range b.N {
			b.StopTimer()
			dir := b.TempDir()
			child, _ := loadFully(b, dir)
			check(b, child.Process.Kill())
			if err := child.Wait(); err == nil {
				b.Fatal("the child ended before it was killed")
			}
			b.StartTimer()
			replayed += firstStart(b, dir, app)
		}
		b.ReportMetric(float64(replayed)/float64(b.N), "replayed/op")
	})
	b.Run("closed", func(b *testing.B) {
		for range b.N {
			b.StopTimer()
			child, stop := loadFully(b, b.TempDir())
			b.StartTimer()
			check(b, stop.Close())
			check(b, child.Wait()) // it has closed everything cleanly, or exits with 1
		}
	})
}

// loadFully lets a child process load a store and returns it when it has done so for long
// enough. It goes on until stop is closed.
func loadFully(b *testing.B, dir string) (child *exec.Cmd, stop io.Closer) {
	b.Helper()
	child = exec.Command(must(filepath.Abs(os.Args[0]))(b))
	child.Env = append(os.Environ(), fullLoadEnv+"="+dir)
	child.Stderr = os.Stderr
	stop = must(child.StdinPipe())(b)
	out := bufio.NewReader(must(child.StdoutPipe())(b))
	check(b, child.Start())
	events := 0
	if _, err := fmt.Fscanln(out, &events); err != nil {
		b.Fatalf("child: %v", errors.Join(err, child.Process.Kill()))
	}
	b.ReportMetric(float64(events)/fullLoadTime.Seconds(), "appends/s")
	return child, stop
}

// runFullLoadChild loads a store until stop ends. After fullLoadTime it prints how many events were
// acknowledged.
func runFullLoadChild(dir string, stop io.Reader) error {
	ctx := context.Background()
	app := partition.Application{WorkspaceZero: true, Descriptor: shop(fullLoadPartitions)}
	store, err := bolt.Open(ctx, dir, app.Descriptor, bolt.Options{Create: true})
	if err != nil {
		return err
	}
	parts := partition.NewAppParts(system, partition.Options{})
	deployed, err := parts.Deploy(ctx, app, store)
	if err != nil {
		return err
	}
	if err := deployed.Ready(ctx); err != nil {
		return err
	}
	load := startFullLoad(deployed, math.MaxInt64)
	select {
	case err := <-load.failed:
		return err
	case <-time.After(fullLoadTime):
		fmt.Fprintln(os.Stdout, load.appended.Load())
	}
	_, err = io.Copy(io.Discard, stop)
	return errors.Join(err, load.end(), parts.Close(ctx), store.Close(ctx))
}

// fullLoad is callers that append as fast as they can.
type fullLoad struct {
	appended atomic.Int64
	stopped  atomic.Bool
	callers  sync.WaitGroup
	failed   chan error
}

// startFullLoad lets callers append until so many events are acknowledged, and a few more, or until end.
func startFullLoad(app *partition.App, enough int64) *fullLoad {
	l := &fullLoad{failed: make(chan error, fullLoadCallers)}
	for i := range fullLoadCallers {
		l.callers.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for !l.stopped.Load() && l.appended.Load() < enough {
				if err := appendFully(context.Background(), app, random); err != nil {
					l.failed <- err
					return
				}
				l.appended.Add(1)
			}
		})
	}
	return l
}

// end waits for what is under way, and returns the first error of a caller.
func (l *fullLoad) end() error {
	l.stopped.Store(true)
	l.callers.Wait()
	close(l.failed)
	return <-l.failed
}

// appendFully appends one event as the rows of the table of throughput have it: two records and three numbers.
func appendFully(ctx context.Context, app *partition.App, random *rand.Rand) error {
	ws := messages.WSID(random.Uint64N(fullLoadWorkspaces))
	sequencer, err := app.SequencerOf(ws)
	if err != nil {
		return err
	}
	draft := partition.Draft{
		Wanted: []partition.Wanted{{Seq: messages.SeqCRecordID, Count: fullLoadRecords}, {Seq: seqInvoice}},
		Body:   make([]byte, fullLoadRecordLen),
	}
	for i := range fullLoadRecords {
		draft.Records = append(draft.Records, partition.DraftRecord{Number: i, New: true, Data: make([]byte, fullLoadRecordLen)})
	}
	for {
		_, err = sequencer.Append(ctx, partition.AppendTo{Workspace: ws, Kind: kindShop, Wait: true}, draft)
		busy, ok := errors.AsType[*partition.BusyError](err)
		if !ok {
			return err
		}
		time.Sleep(busy.RetryAfter) //nolint:forbidigo // it is what a caller would do
	}
}
