package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"time"

	"github.com/partita-go/partita/bench/internal/trio"
)

// clusterCommand measures three nodes.
func clusterCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o := trio.Options{Stderr: stderr}
	flags := flag.NewFlagSet("cluster", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.Dir, "dir", ".", "directory on the disk to measure; temporary ones are made below it")
	flags.IntVar(&o.Repeat, "repeat", 3, "how often what is compared is measured, in turn")
	flags.DurationVar(&o.Window, "time", 5*time.Second, "how long each load is measured")
	flags.DurationVar(&o.Warmup, "warmup", 2*time.Second, "how long each load runs before that")
	flags.DurationVar(&o.Failover, "failover", 500*time.Millisecond, "how long nobody is heard until a node of partita or etcd wants to lead")
	flags.IntVar(&o.HandOvers, "handovers", 4, "how often the owner hands over in each turn")
	flags.DurationVar(&o.Steady, "steady", time.Minute, "for how long elections are counted under full load")
	flags.Uint64Var(&o.Behind, "behind", 1_000_000, "how many events a node lacks that catches up")
	only := flags.String("only", ".", "regular expression of what is measured: alone, partita, log, nats, etcd, steady, behind")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if o.Only, err = regexp.Compile(*only); err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("got argument %q, want flags only", flags.Arg(0))
	case o.Repeat < 1:
		return fmt.Errorf("-repeat: got %d, want 1 or more", o.Repeat)
	case o.Window <= 0 || o.Steady <= 0:
		return errors.New("-time and -steady: want more than 0")
	}
	figures, err := trio.Measure(ctx, o)
	if figures == nil {
		return err
	}
	return errors.Join(err, figures.Write(stdout))
}

// node is one of them.
func node(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("%s: got %d arguments, want a config", trio.Command, len(args))
	}
	return trio.Run(ctx, args[0], stdin, stdout)
}
