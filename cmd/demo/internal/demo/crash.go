package demo

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt"
)

// ChildCommand is the hidden command of the process that is killed.
const ChildCommand = "child-that-is-killed"

// work is what the show does, in the process that is killed and in the one that
// finishes it.
type work struct {
	dir        string
	partitions uint64
	processors int
	// commits limits the history, 0 means all of it.
	commits int
}

func (w *work) flags(set *pflag.FlagSet) {
	set.StringVar(&w.dir, "db", "", "keep the store in `DIR` (default: a temporary one)")
	partitionsFlag(set, &w.partitions)
	set.IntVar(&w.processors, "processors", 32, "run `N` command processors")
	set.IntVar(&w.commits, "commits", 0, "take the first `N` commits of the history")
	set.Lookup("commits").DefValue = "all"
}

// args are the child's.
func (w *work) args() []string {
	return []string{
		ChildCommand,
		"--db", w.dir,
		"--partitions", strconv.FormatUint(w.partitions, 10),
		"--processors", strconv.Itoa(w.processors),
		"--commits", strconv.Itoa(w.commits),
	}
}

func (w *work) check() error {
	return errors.Join(
		checkPartitions(w.partitions),
		cli.InRange("processors", w.processors, 1, maxConcurrent),
		cli.InRange("commits", w.commits, 0, 1<<30))
}

func (w *work) descriptor() messages.Descriptor { return commitsDescriptor(uint32(w.partitions)) }

// killable is what a child process does that is killed.
type killable interface {
	flags(set *pflag.FlagSet)
	check() error
	child(ctx context.Context, s cli.Streams) error
}

func childCommand(name string, w killable) *cobra.Command {
	c := &cobra.Command{Use: name, Hidden: true, Short: "Work until it is killed"}
	w.flags(c.Flags())
	c.RunE = cli.Run(func(ctx context.Context, s cli.Streams) error {
		if err := w.check(); err != nil {
			return err
		}
		return w.child(ctx, s)
	})
	return c
}

// child runs the commits that are missing, tells about each one as soon as it is
// acknowledged, and then waits to be killed. If its parent is gone, it ends.
func (w *work) child(ctx context.Context, s cli.Streams) error {
	running, err := deploy(ctx, w.dir, w.descriptor(), bolt.Options{})
	if err != nil {
		return err
	}
	scanned, err := scanAuthors(ctx, running.store)
	if err == nil {
		acks, told := make(chan ack, 1024), make(chan error, 1)
		go func() { told <- tellAcks(s.Out, acks) }()
		err = feed(ctx, running.app, w.processors, limited(w.commits), scanned.last, func(a ack) { acks <- a })
		close(acks)
		err = errors.Join(err, <-told)
	}
	if err == nil {
		_, err = io.Copy(io.Discard, s.In)
	}
	return errors.Join(err, running.stop())
}

// tellAcks writes a line for each ack, as early as it can. After an error it goes on
// reading, so that nobody waits for it.
func tellAcks(w io.Writer, acks <-chan ack) error {
	out := bufio.NewWriter(w)
	var err error
	for a := range acks {
		_, _ = out.WriteString(a.line())
		if len(acks) == 0 {
			err = errors.Join(err, out.Flush())
		}
	}
	return errors.Join(err, out.Flush())
}

// line tells about a commit.
func (a ack) line() string { return fmt.Sprintf("%d %d %s\n", a.partition, a.offset, a.commit) }

// parseAck reads a line about a commit.
func parseAck(line string) (ack, error) {
	words := strings.Fields(line)
	if len(words) != 3 {
		return ack{}, fmt.Errorf("got line %.60q, want three words", line)
	}
	partition, err := messages.ParsePartitionID(words[0])
	if err != nil {
		return ack{}, fmt.Errorf("got line %.60q: %w", line, err)
	}
	offset, err := messages.ParsePLogOffset(words[1])
	if err != nil {
		return ack{}, fmt.Errorf("got line %.60q: %w", line, err)
	}
	return ack{partition: partition, offset: offset, commit: words[2]}, nil
}

// crash is what is known of the process that was killed.
type crash struct {
	pid  int
	acks []ack
	took time.Duration
}

var errEarly = errors.New("it ended without an error")

// killAfter runs a child, kills it without warning when it has told about so many
// commits, and returns what it told. ErrEarly says that it had ended well before.
func killAfter(ctx context.Context, args []string, target int, progress func(done int)) (crash, error) {
	program, err := os.Executable()
	if err != nil {
		return crash{}, fmt.Errorf("this program's own file: %w", err)
	}
	started := time.Now()
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // this very program
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return crash{}, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return crash{}, err
	}
	if err := cmd.Start(); err != nil {
		return crash{}, fmt.Errorf("start the child: %w", err)
	}
	result := crash{pid: cmd.Process.Pid}
	listenErr := result.listen(stdout, func() error {
		progress(len(result.acks))
		if len(result.acks) == target {
			return cmd.Process.Kill()
		}
		return nil
	})
	if listenErr != nil {
		_ = cmd.Process.Kill()
	}
	_ = stdin.Close()
	waitErr := cmd.Wait()
	result.took = time.Since(started)
	switch {
	case ctx.Err() != nil:
		return result, context.Cause(ctx)
	case listenErr != nil:
		return result, listenErr
	case len(result.acks) < target:
		return result, fmt.Errorf("the child ended by itself (%w): %.400s", cmp.Or(waitErr, errEarly), complaint.String())
	case waitErr == nil:
		return result, fmt.Errorf("the child was to be killed: %w", errEarly)
	}
	return result, nil
}

// listen collects acks until the child's end. What was told before the kill is
// read too; only half a line is worth nothing.
func (c *crash) listen(r io.Reader, acked func() error) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return nil //nolint:nilerr // the child is gone, and why is found out elsewhere
		}
		a, err := parseAck(line)
		if err != nil {
			return err
		}
		c.acks = append(c.acks, a)
		if err := acked(); err != nil {
			return err
		}
	}
}
