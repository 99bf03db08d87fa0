package tests

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

// benchStores holds the stores that benchmarks have made, by what is in them: making one
// takes much longer than what is measured.
var benchStores = make(map[storeContents]string)

type storeContents struct {
	events, partitions int
	workspaces         uint64
}

// removeBenchStores is called when all benchmarks have run.
func removeBenchStores() {
	for _, dir := range benchStores {
		_ = os.RemoveAll(dir)
	}
}

// flushedStore returns a store with at least n events, all in the projections.
func flushedStore(b *testing.B, a partition.Application, n int) string {
	b.Helper()
	return flushedStoreOf(b, a, n, 10_000)
}

// flushedStoreOf is flushedStore with so many workspaces.
func flushedStoreOf(b *testing.B, a partition.Application, n int, workspaces uint64) string {
	b.Helper()
	contents := storeContents{events: n, partitions: int(a.Descriptor.Partitions), workspaces: workspaces}
	if dir, ok := benchStores[contents]; ok {
		return dir
	}
	dir := must(os.MkdirTemp("", fmt.Sprintf("partita-bench-%d-", n)))(b) //nolint:usetesting // it outlives this run of the benchmark
	b.Cleanup(func() {
		if benchStores[contents] != dir {
			_ = os.RemoveAll(dir) // it is not what it should be
		}
	})
	store := openBolt(b, dir, a.Descriptor, wideTail)
	newHistory(b, store, workspaces).write(b, n)
	check(b, store.Close(limit(b)))
	// Opening with a small tail brings the projections up to date.
	ctx, cancel := context.WithTimeout(context.Background(), projectLimit)
	defer cancel()
	store = must(bolt.Open(ctx, dir, a.Descriptor, bolt.Options{Create: true, TailEvents: 1000}))(b)
	parts := partition.NewAppParts(system, partition.Options{})
	check(b, must(parts.Deploy(limit(b), a, store))(b).Ready(limit(b)))
	check(b, parts.Close(limit(b)))
	check(b, store.Close(limit(b)))
	benchStores[contents] = dir
	return dir
}

// projectLimit is how long it may take to project millions of events on a slow disk.
const projectLimit = 10 * time.Minute

const (
	// loadChildEnv makes the test binary a process that writes into the store named
	// until it is killed.
	loadChildEnv = "PARTITA_LOAD_CHILD"
	// loadLines is how many lines the child prints before it is killed; it prints one
	// for every 100 events.
	loadLines = 100
)

// loadAndKill lets a child process work on a store and kills it.
func loadAndKill(b *testing.B, dir string) {
	b.Helper()
	child := exec.Command(must(filepath.Abs(os.Args[0]))(b))
	child.Env = append(os.Environ(), loadChildEnv+"="+dir)
	child.Stderr = os.Stderr
	out := must(child.StdoutPipe())(b)
	check(b, child.Start())
	lines := bufio.NewScanner(out)
	for n := 0; n < loadLines && lines.Scan(); n++ {
		if !strings.HasPrefix(lines.Text(), "event") {
			b.Fatalf("child: got %q", lines.Text())
		}
	}
	check(b, child.Process.Kill())
	if err := child.Wait(); err == nil {
		b.Fatal("the child ended before it was killed")
	}
}

// runLoadChild writes until the process is killed; it returns only on an error.
func runLoadChild(dir string) error {
	ctx := context.Background()
	app := partition.Application{WorkspaceZero: true, Descriptor: shop(8)}
	store, err := bolt.Open(ctx, dir, app.Descriptor, bolt.Options{Create: true})
	if err != nil {
		return err
	}
	deployed, err := partition.NewAppParts(system, partition.Options{}).Deploy(ctx, app, store)
	if err != nil {
		return err
	}
	if err := deployed.Ready(ctx); err != nil {
		return err
	}
	failed := make(chan error)
	events := make(chan struct{}, 1024)
	for i := range 32 {
		go func() { failed <- writeForEver(ctx, deployed, rand.New(rand.NewPCG(1, uint64(i))), events) }()
	}
	for n := 1; ; n++ {
		select {
		case <-events:
			if n%100 == 0 {
				fmt.Fprintln(os.Stdout, "event", n)
			}
		case err := <-failed:
			return err
		}
	}
}

func writeForEver(ctx context.Context, app *partition.App, random *rand.Rand, events chan<- struct{}) error {
	for {
		if _, err := commit(ctx, app, messages.WSID(random.Uint64N(10_000)), seqInvoice, seqReceipt); err != nil {
			return err
		}
		events <- struct{}{}
	}
}
