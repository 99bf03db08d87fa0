package operate

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
)

// largeEvents are how many there are in a store whose import takes several transactions.
const largeEvents = 40

// newLargeStore makes a store of large events.
func newLargeStore(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	s, err := bolt.Open(limit(t), dir, descriptor(), bolt.Options{Create: true})
	check(t, err)
	_, err = s.TakeEpoch(limit(t), 0)
	check(t, err)
	for n := 1; n <= largeEvents; n++ {
		e := event(4, n)
		e.DedupID, e.Body = messages.DedupID{byte(n)}, bytes.Repeat([]byte{0xff, byte(n)}, 1<<18)
		check(t, s.Append(limit(t), storage.Batch{Partition: 0, Epoch: 1, Events: []messages.Event{e}}))
	}
	check(t, s.Close(limit(t)))
	return dir
}

// spawn starts the program as a process of its own.
func spawn(t *testing.T, args ...string) (c *exec.Cmd, stdin io.WriteCloser, stderr *bufio.Scanner) {
	t.Helper()
	c = exec.CommandContext(limit(t), os.Args[0], append([]string{programCommand}, args...)...)
	stdin, err := c.StdinPipe()
	check(t, err)
	out, err := c.StderrPipe()
	check(t, err)
	check(t, c.Start())
	return c, stdin, bufio.NewScanner(out)
}

// kill kills a process, and reports whether it had not ended by itself.
func kill(c *exec.Cmd) bool {
	return errors.Join(c.Process.Kill(), c.Wait()) != nil && !c.ProcessState.Exited()
}

// An import that is killed wherever it is, several times, is gone on with: no event is missing or doubled.
func TestImportKilled(t *testing.T) {
	dir := newLargeStore(t)
	text := exported(t, dir)
	to, file := filepath.Join(t.TempDir(), "new"), write(t, text)
	// While log.db is written. What the process has not taken of the pipe is much less than what it was given.
	for _, part := range []int{5, 3, 7} {
		c, stdin, _ := spawn(t, "import", "--from", "-", "--to", to)
		_, err := stdin.Write(text[:len(text)*part/8])
		check(t, err)
		if !kill(c) {
			t.Fatalf("got status %d, want it killed", c.ProcessState.ExitCode())
		}
	}
	// While state.db is rebuilt, and while all is verified: each phase is told when it has ended. On a quick machine the
	// process may have ended before it is killed, with a whole store. Then that begins anew.
	found := 0
	for _, phase := range []string{"import log.db", "rebuild state.db"} {
		c, _, stderr := spawn(t, "import", "--from", file, "--to", to)
		for stderr.Scan() && !strings.HasPrefix(stderr.Text(), phase+":") {
		}
		kill(c)
		found = largeEvents
		if _, err := os.Stat(to); err == nil {
			run(t, "verify", "--db", to).has(t, exitFine)
			check(t, os.RemoveAll(to))
			found = 0
		}
	}
	o := run(t, "import", "--from", file, "--to", to, "--json").has(t, exitFine).json(t)
	if o["events"] != float64(largeEvents) || o["found"] != float64(found) {
		t.Errorf("got %v events, %v found, want %d, %d", o["events"], o["found"], largeEvents, found)
	}
	if !bytes.Equal(exported(t, to), text) {
		t.Error("the store differs")
	}
}

// An import goes on behind what is there.
func TestImportGoesOn(t *testing.T) {
	text := exported(t, newLargeStore(t))
	to := filepath.Join(t.TempDir(), "new")
	run(t, "import", "--from", write(t, text[:len(text)/2]), "--to", to).fails(t, exitBlind, "it was cut off")
	o := run(t, "import", "--from", write(t, text), "--to", to, "--json").has(t, exitFine).json(t)
	if found, _ := o["found"].(float64); found < largeEvents/4 || found > largeEvents/2 {
		t.Errorf("got %v events found, want about half of %d", found, largeEvents)
	}
	if !bytes.Equal(exported(t, to), text) {
		t.Error("the store differs")
	}
}
