// Package cli runs a program that is a tree of cobra's commands: it turns the error of a command
// into one line and an exit status, and helps.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/partita-go/partita/cmd/internal/human"
	"github.com/partita-go/partita/cmd/internal/term"
)

// Exit statuses.
const (
	Fine   = 0
	Failed = 1
	Wrong  = 2
	// AtOnce is that of a program which a second signal has ended.
	AtOnce = 3
)

// Streams are where a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Run returns what runs a command, for its RunE.
func Run(run func(context.Context, Streams) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, _ []string) error {
		return run(c.Context(), Streams{In: c.InOrStdin(), Out: c.OutOrStdout(), Err: c.ErrOrStderr()})
	}
}

// takesFiles marks a command that takes files as its arguments.
const takesFiles = "takes files"

// RunFiles lets a command take files as its arguments, one at least.
func RunFiles(c *cobra.Command, run func(ctx context.Context, s Streams, files []string) error) {
	c.Annotations = map[string]string{takesFiles: "true"}
	c.RunE = func(c *cobra.Command, files []string) error {
		return Run(func(ctx context.Context, s Streams) error { return run(ctx, s, files) })(c, files)
	}
}

// Program is a program and its commands.
type Program struct {
	// Root is the program itself. It is used once.
	Root *cobra.Command
	// Exits says in the help what the exit statuses mean.
	Exits string
	// Status returns the exit status of an error that is not wrong usage; nil means 1.
	Status func(error) int
}

// ErrUsage says that the arguments are wrong.
var ErrUsage = errors.New("wrong usage")

var errInterrupted = errors.New("interrupted")

// usageError is an ErrUsage whose text says what is wrong.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func (e *usageError) Is(target error) bool { return target == ErrUsage }

// WrongUsage returns an [ErrUsage].
func WrongUsage(format string, args ...any) error {
	return &usageError{text: fmt.Sprintf(format, args...)}
}

// InRange returns an [ErrUsage] unless least <= got <= most.
func InRange[T int | uint64](name string, got, least, most T) error {
	if got < least || got > most {
		return WrongUsage("--%s: got %d, want %d to %d", name, got, least, most)
	}
	return nil
}

// Run does what the arguments say, without the program's name, and returns the exit
// status: 0 if all is fine, 2 if the arguments are wrong, else what Status says. An error
// is one line on the error stream.
func (p *Program) Run(ctx context.Context, args []string, s Streams) int {
	name := p.Root.Name()
	c, err := p.execute(ctx, args, s)
	if err == nil {
		return Fine
	}
	if ctx.Err() != nil {
		err = errInterrupted
	}
	if errors.Is(err, ErrUsage) {
		_, _ = fmt.Fprintf(s.Err, "%s: %s (see %s --help)\n", name, OneLine(err), c.CommandPath())
		return Wrong
	}
	_, _ = fmt.Fprintf(s.Err, "%s: %s\n", name, OneLine(err))
	if p.Status == nil {
		return Failed
	}
	return p.Status(err)
}

// execute runs the command that the arguments name, and returns it.
func (p *Program) execute(ctx context.Context, args []string, s Streams) (*cobra.Command, error) {
	root := p.Root
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetArgs(append([]string{}, args...)) // nil would be those of the process
	root.SetFlagErrorFunc(wrongFlag)
	var helpErr error
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { _, helpErr = io.WriteString(s.Out, p.help(c, term.Width(s.Out))) })
	root.InitDefaultCompletionCmd()
	prepare(root)
	root.SetHelpCommand(helpCommand())
	c, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = helpErr
	}
	return c, err
}

// prepare lets a command, and those below it, refuse what is wrong in our words.
func prepare(c *cobra.Command) {
	c.Args = checkArguments
	c.Flags().SortFlags = false
	sayWhatIsWanted(c.Flags())
	if !c.Runnable() {
		c.RunE = func(c *cobra.Command, _ []string) error {
			return WrongUsage("no command: want one of %s", strings.Join(namesOf(c), ", "))
		}
	}
	for _, below := range c.Commands() {
		prepare(below)
	}
}

// wrongFlag returns an [ErrUsage] for a flag that cannot be understood. If the command before it is
// unknown, it is about that.
func wrongFlag(c *cobra.Command, err error) error {
	if before := c.Flags().Args(); len(before) > 0 && c.HasAvailableSubCommands() && c.Annotations[takesFiles] == "" {
		return unknownCommand(c, before[0])
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		// Package pflag takes it for several flags of one letter each.
		name, _, _ := strings.Cut(unknown.GetSpecifiedShortnames(), "=")
		if c.Flags().Lookup(name) != nil {
			return WrongUsage("unknown flag -%s: want --%s", name, name)
		}
	}
	return WrongUsage("%s", OneLine(err))
}

// checkArguments returns an [ErrUsage] if there is an argument that the command does not take, or a flag that is required has no
// value.
func checkArguments(c *cobra.Command, args []string) (err error) {
	if err := setVariables(c); err != nil {
		return err
	}
	switch {
	case c.Annotations[takesFiles] != "": // also beside commands: a file of such a name is ./name
		if len(args) == 0 {
			return WrongUsage("no file: want one at least")
		}
	case len(args) > 0 && c.HasAvailableSubCommands():
		return unknownCommand(c, args[0])
	case len(args) > 0:
		return WrongUsage("unexpected argument %.40q", args[0])
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Annotations[cobra.BashCompOneRequiredFlag] != nil && f.Value.String() == "" && err == nil {
			err = WrongUsage("--%s is missing", f.Name)
		}
	})
	return err
}

func unknownCommand(c *cobra.Command, name string) error {
	c.SuggestionsMinimumDistance = 2
	if near := c.SuggestionsFor(name); len(near) > 0 {
		return WrongUsage("unknown command %.40q: did you mean %s?", name, strings.Join(near, " or "))
	}
	return WrongUsage("unknown command %.40q", name)
}

// namesOf returns the names of the commands below one.
func namesOf(c *cobra.Command) (names []string) {
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			names = append(names, below.Name())
		}
	}
	return names
}

// OneLine returns an error's text in one line, as [human.Plain] has it.
func OneLine(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return human.Plain(strings.Join(lines, "; "))
}
