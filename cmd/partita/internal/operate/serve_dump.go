package operate

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/cmd/partita/internal/serve"
	"github.com/partita-go/partita/dumps"
)

// dumpFlag are the flags of serve about dumps.
type dumpFlag struct {
	set              *pflag.FlagSet
	groups, messages []string
	rule             dumps.Group
}

// The names of those flags that go with --dump.
const (
	dumpGroups, dumpMessages, dumpRate   = "dump-groups", "dump-messages", "dump-rate"
	dumpBodies, dumpLongest, dumpMemory  = "dump-bodies", "dump-longest", "dump-memory"
	mebibyte, maxDumpRate, maxDumpMemory = 1 << 20, 1_000_000_000, 1 << 20
)

func dumpFlags(set *pflag.FlagSet, c *serve.Config) *dumpFlag {
	f := &dumpFlag{set: set}
	set.StringVar(&c.Dump, "dump", "", "write messages of actors to `FILE`")
	set.StringSliceVar(&f.groups, dumpGroups, []string{dumps.AllGroups}, "dump messages of actors of these `GROUPS`, as partition,appender; * is all")
	set.StringSliceVar(&f.messages, dumpMessages, nil, "dump messages of these types, as Append,Appended, `NAMES` (default all)")
	set.IntVar(&f.rule.Rate, dumpRate, 100_000, "dump at most `N` messages of a group in a second")
	set.IntVar(&f.rule.Longest, dumpLongest, 4096, "cut messages that are longer than `BYTES`")
	set.BoolVar(&f.rule.Bodies, dumpBodies, false, "show bodies of events and data of records")
	set.IntVar(&c.Dumps.Memory, dumpMemory, 8, "keep at most so many `MIB` of messages that are not written yet")
	return f
}

// apply turns the flags into a configuration.
func (f *dumpFlag) apply(c *serve.Config) error {
	if c.Dump == "" {
		return f.goesWithDump()
	}
	if err := cli.InRange(dumpRate, f.rule.Rate, 1, maxDumpRate); err != nil {
		return err
	}
	if err := cli.InRange(dumpMemory, c.Dumps.Memory, 1, maxDumpMemory); err != nil {
		return err
	}
	c.Dumps.Memory *= mebibyte
	f.rule.Messages = f.messages
	c.Dumps.Groups = make(map[string]dumps.Group, len(f.groups))
	for _, g := range f.groups {
		c.Dumps.Groups[g] = f.rule
	}
	return nil
}

// goesWithDump returns an error if another flag about dumps was given without --dump.
func (f *dumpFlag) goesWithDump() error {
	for _, name := range []string{dumpGroups, dumpMessages, dumpRate, dumpLongest, dumpBodies, dumpMemory} {
		if f.set.Changed(name) {
			return cli.WrongUsage("--%s goes with --dump", name)
		}
	}
	return nil
}

// listen lets SIGHUP open the dump anew instead of ending the program, until what it returns is called.
func (f *dumpFlag) listen(c *serve.Config) (stop func()) {
	if c.Dump == "" {
		return func() {}
	}
	hangups := make(chan os.Signal, 1)
	// Ignored first: it must not reach whoever takes it for an interrupt, nor end the program in between.
	signal.Ignore(syscall.SIGHUP)
	signal.Notify(hangups, syscall.SIGHUP)
	c.Reopen = hangups
	return func() { signal.Stop(hangups) }
}
