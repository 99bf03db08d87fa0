package demo

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/partita-go/partita/messages"
)

// Exit statuses.
const (
	exitFine   = 0
	exitFailed = 1
	exitUsage  = 2
)

// streams are where a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// command is one of the things that the program does.
type command struct {
	name string
	// hidden commands are not in the usage.
	hidden bool
	// flags defines the command's flags and returns what runs it.
	flags func(*flag.FlagSet) func(context.Context, streams) error
}

func commands() []command {
	return []command{
		{name: "", flags: showFlags},
		{name: "replay", flags: replayFlags},
		{name: "load", flags: loadFlags},
		{name: ChildCommand, hidden: true, flags: childFlags},
	}
}

// Run does what the arguments say, without the program's name, and returns the
// exit status: 0 if all is fine, 1 if it failed or a check did, 2 if the arguments
// are wrong. An error is one line on stderr.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	s := streams{in: stdin, out: stdout, err: stderr}
	err := dispatch(ctx, args, s)
	if err == nil {
		return exitFine
	}
	if ctx.Err() != nil {
		err = errInterrupted
	}
	_, _ = fmt.Fprintf(stderr, "demo: %s\n", oneLine(err))
	if errors.Is(err, errUsage) {
		return exitUsage
	}
	return exitFailed
}

var (
	errUsage       = errors.New("see demo help")
	errInterrupted = errors.New("interrupted")
)

// wrongUsage returns an error for which the exit status is 2.
func wrongUsage(format string, args ...any) error {
	return fmt.Errorf("%s (%w)", fmt.Sprintf(format, args...), errUsage)
}

// oneLine returns an error's text without line ends and control characters.
func oneLine(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, strings.Join(lines, "; "))
}

func dispatch(ctx context.Context, args []string, s streams) error {
	name := ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	if name == "help" {
		return printUsage(s.out)
	}
	for _, c := range commands() {
		if c.name == name {
			return c.run(ctx, args, s)
		}
	}
	return wrongUsage("unknown command %.40q", name)
}

func (c command) run(ctx context.Context, args []string, s streams) error {
	set := flag.NewFlagSet(c.name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	run := c.flags(set)
	switch err := set.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return printUsage(s.out)
	case err != nil:
		return wrongUsage("%s", oneLine(err))
	case set.NArg() > 0:
		return wrongUsage("unexpected argument %.40q", set.Arg(0))
	}
	return run(ctx, s)
}

const usage = `Demo shows what partita does, with real data and a real crash.

  demo [flags]            run the history of 20 projects as commands, kill the
                          process in the middle, recover, finish, check
    --db DIR              keep the store in DIR; an unfinished one is continued
    --keep                keep the temporary store
    --partitions N        partitions of a new store (default 8)
    --processors N        command processors (default 32)

  demo replay --db DIR [flags]   replay a store's log; its files stay untouched
    --from-start          from the start, not from the checkpoint, and check all
                          invariants
    --top N               how many busy workspaces are shown (default 10)

  demo load [flags]       write a synthetic load, measure, check
    --events N            events (default 100000)
    --workspaces N        workspaces (default 10000)
    --partitions N        partitions of a new store (default 8)
    --clients N           concurrent clients (default 64)
    --db DIR              the store's directory (default: a temporary one)
    --processors          through command processors, not the typed client
    --zipf                a few workspaces get most of the events
    --body N              bytes of an event's body (default 200)
    --check=false         do not check the invariants at the end

  Each command takes --json: one JSON document on stdout, progress on stderr.
  Integers beyond 2^53-1 are strings there.

Exit status: 0 fine; 1 failed, or a check did; 2 wrong usage.
`

func printUsage(w io.Writer) error {
	_, err := io.WriteString(w, usage)
	return err
}

// inRange returns a usage error unless least <= got <= most.
func inRange[T int | uint64](name string, got, least, most T) error {
	if got < least || got > most {
		return wrongUsage("--%s: got %d, want %d to %d", name, got, least, most)
	}
	return nil
}

func checkPartitions(n uint64) error { return inRange("partitions", n, 1, messages.MaxPartitions) }

// maxConcurrent bounds clients and command processors.
const maxConcurrent = 10_000
