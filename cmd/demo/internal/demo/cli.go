package demo

import (
	"context"
	"io"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/messages"
)

// Exit statuses.
const (
	exitFine   = cli.Fine
	exitFailed = cli.Failed
	exitUsage  = cli.Wrong
)

// Run does what the arguments say, without the program's name, and returns the
// exit status: 0 if all is fine, 1 if it failed or a check did, 2 if the arguments
// are wrong. An error is one line on stderr.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := cli.Program{Name: "demo", Usage: usage, Commands: []cli.Command{
		{Name: "", Flags: showFlags},
		{Name: "replay", Flags: replayFlags},
		{Name: "load", Flags: loadFlags},
		{Name: "outbox", Flags: outboxFlags},
		{Name: ChildCommand, Flags: childFlags(new(work))},
		{Name: OutboxChildCommand, Flags: childFlags(new(outboxWork))},
	}}
	return p.Run(ctx, args, cli.Streams{In: stdin, Out: stdout, Err: stderr})
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

  demo outbox [flags]     deliver the history to a file and to a copy of each
                          log, by subscriptions; kill the process in the middle
    --kills N             how often it is killed (default 3)
    --batch N             events of a delivery (default 100)
    --partitions N        partitions of the store (default 8)
    --processors N        command processors (default 32)
    --db DIR              the directory of a new store, with the file outbox.txt
                          (default: a temporary one)

  Each command takes --json: one JSON document on stdout, progress on stderr.
  Integers beyond 2^53-1 are strings there.

Exit status: 0 fine; 1 failed, or a check did; 2 wrong usage.
`

func checkPartitions(n uint64) error { return cli.InRange("partitions", n, 1, messages.MaxPartitions) }

// maxConcurrent bounds clients and command processors.
const maxConcurrent = 10_000
