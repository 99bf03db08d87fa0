package demo

import (
	"context"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
	p := cli.Program{Root: command(), Exits: "Exit status: 0 fine; 1 failed, or a check did; 2 wrong usage."}
	return p.Run(ctx, args, cli.Streams{In: stdin, Out: stdout, Err: stderr})
}

// command returns the program.
func command() *cobra.Command {
	c := showCommand()
	c.AddCommand(replayCommand(), loadCommand(), outboxCommand(),
		childCommand(ChildCommand, new(work)), childCommand(OutboxChildCommand, new(outboxWork)))
	return c
}

func partitionsFlag(set *pflag.FlagSet, to *uint64) {
	set.Uint64Var(to, "partitions", 8, "cut a new store into `N` partitions")
}

func checkPartitions(n uint64) error { return cli.InRange("partitions", n, 1, messages.MaxPartitions) }

// maxConcurrent bounds clients and command processors.
const maxConcurrent = 10_000
