package tests

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/verify"
)

// idsChildEnv makes the test binary a process that makes decimal ids over the store named until it is killed.
const idsChildEnv = "PARTITA_IDS_CHILD"

// idsLaunch is the launch of all of them, as when a deployment starts again by itself.
const idsLaunch = 3

// Processes that make ids over one store and one launch are killed. No id comes twice, and no generator.
func TestCrashIDs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	kills := setting("CRASH_KILLS", unlessShort(18))
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	seen := make(map[ids.DecimalID]bool)
	process := make(map[uint32]int) // of a generator
	for round := range kills {
		for _, text := range idsUntilKilled(t, dir, 1+random.IntN(40)) {
			id, err := ids.ParseDecimalID(text)
			if err != nil || id.Launch() != idsLaunch || seen[id] {
				t.Fatalf("got %q, %v, which is no id of launch %d, or comes again", text, err, idsLaunch)
			}
			seen[id] = true
			if of, known := process[id.Generator()]; known && of != round {
				t.Fatalf("generator %d is process %d's and %d's", id.Generator(), of, round)
			}
			process[id.Generator()] = round
		}
	}
	if len(seen) < kills {
		t.Fatalf("got %d ids, want at least %d", len(seen), kills)
	}
	if r, err := bolt.Verify(t.Context(), dir, verify.Options{}); err != nil || r.Err() != nil {
		t.Errorf("got %v, %v", &r, err)
	}
	t.Logf("ids: kills=%d generators=%d ids=%d twice=0", kills, len(process), len(seen))
}

// idsUntilKilled lets a child process make ids, kills it after so many lines, and returns all lines that it has finished.
func idsUntilKilled(t *testing.T, dir string, n int) (lines []string) {
	t.Helper()
	child := exec.Command(must(filepath.Abs(os.Args[0]))(t))
	child.Env = append(os.Environ(), idsChildEnv+"="+dir)
	child.Stderr = os.Stderr
	out := must(child.StdoutPipe())(t)
	check(t, child.Start())
	reader := bufio.NewReader(out)
	for {
		line, err := reader.ReadString('\n')
		if err != nil { // what stands before the end of the file is not finished
			break
		}
		lines = append(lines, strings.TrimSpace(line))
		if len(lines) == n {
			check(t, child.Process.Kill())
		}
	}
	if err := child.Wait(); err == nil || len(lines) < n {
		t.Fatalf("the child ended before it was killed: %v after %d ids", err, len(lines))
	}
	return lines
}

// runIDsChild makes ids until the process is killed, with two generators at a time, which it makes anew again and again.
// It returns only on an error.
func runIDsChild(dir string, out io.Writer) error {
	ctx := context.Background()
	store, err := bolt.Open(ctx, dir, shop(2), bolt.Options{Create: true})
	if err != nil {
		return err
	}
	failed := make(chan error)
	for range 2 {
		go func() {
			for {
				if err := printIDs(ctx, store, out); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	return <-failed
}

func printIDs(ctx context.Context, store *bolt.Store, out io.Writer) error {
	g, err := ids.NewDecimalGenerator(ctx, store, idsLaunch)
	if err != nil {
		return err
	}
	for range 3 {
		id, err := g.Next(ctx)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, id); err != nil {
			return err
		}
	}
	return nil
}
