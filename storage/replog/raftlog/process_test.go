package raftlog

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/replog"
)

// nodeVariable makes this test's program a node: its directory.
const nodeVariable = "PARTITA_RAFTLOG_NODE"

// runNode is such a node. It reads commands from its standard input, and writes what happens to its standard output:
//
//	peers n1=127.0.0.1:1 n2=…   where the nodes are
//	append BODY                 answered "done BODY OUTCOME"
//	dump                        answered "dump" and all bodies
//
// It says "at ADDRESS" first, and "term N" when that changes.
func runNode() bool {
	dir := os.Getenv(nodeVariable)
	if dir == "" {
		return false
	}
	if err := serveNode(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

func serveNode(dir string) error {
	var mu sync.Mutex
	peers := make(map[replog.NodeID]string)
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = fmt.Fprintf(os.Stdout, format+"\n", args...)
	}
	id := replog.NodeID(filepath.Base(dir))
	port, err := Listen(PortOptions{Node: id, Listen: "127.0.0.1:0", Address: func(id replog.NodeID) string {
		mu.Lock()
		defer mu.Unlock()
		return peers[id]
	}})
	if err != nil {
		return err
	}
	say("at %s", port.Addr())
	l, err := New(Options{Dir: dir, Node: id, Shard: testShard, Port: port, segmentSize: 1 << 20})
	if err != nil {
		return err
	}
	b := newBook()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		command, rest, _ := strings.Cut(in.Text(), " ")
		switch command {
		case "peers":
			mu.Lock()
			first := len(peers) == 0
			for peer := range strings.FieldsSeq(rest) {
				name, where, _ := strings.Cut(peer, "=")
				peers[replog.NodeID(name)] = where
			}
			mu.Unlock()
			if first {
				if err := l.Start(replog.Position{}, b); err != nil {
					return err
				}
				go tellTerms(l, say)
			}
		case "append":
			go func() {
				err := l.Append(context.Background(), b.end().Head, []byte(rest))
				say("done %s %s", rest, outcomeWord(err))
			}()
		case "dump":
			b.mu.Lock()
			all := strings.Join(b.bodies, " ")
			b.mu.Unlock()
			say("dump %s", all)
		}
	}
	return errors.Join(l.Close(), port.Close())
}

func tellTerms(l *Log, say func(string, ...any)) {
	for {
		now, changed := l.Leadership()
		say("term %d", now.Term)
		<-changed
	}
}

func outcomeWord(err error) string {
	switch {
	case err == nil:
		return "there"
	case errors.Is(err, messages.ErrOutcomeUnknown):
		return "unknown"
	}
	return "never"
}

// process is a node as the test drives it.
type process struct {
	id    replog.NodeID
	cmd   *exec.Cmd
	stdin io.WriteCloser
	// lines are what it says; the channel is closed when it has ended.
	lines chan string
}

func startProcess(t *testing.T, dir string) *process {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), nodeVariable+"="+dir)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{id: replog.NodeID(filepath.Base(dir)), cmd: cmd, stdin: stdin, lines: make(chan string, 1000)}
	go func() {
		defer close(p.lines)
		for out := bufio.NewScanner(stdout); out.Scan(); {
			p.lines <- out.Text()
		}
	}()
	return p
}

func (p *process) say(format string, args ...any) { _, _ = fmt.Fprintf(p.stdin, format+"\n", args...) }

// hear waits for a line that begins so, and returns the rest. It returns false if the process has ended.
func (p *process) hear(t *testing.T, begin string) (string, bool) {
	t.Helper()
	over := time.After(patience)
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				return "", false
			}
			if rest, found := strings.CutPrefix(line, begin); found {
				return rest, true
			}
		case <-over:
			t.Fatalf("node %s: waited in vain for %q", p.id, begin)
		}
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	for range p.lines {
		// Until it has ended.
	}
	_ = p.cmd.Wait()
}
