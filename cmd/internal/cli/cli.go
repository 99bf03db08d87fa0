// Package cli finds out which command of a program is wanted, runs it, and turns its
// error into one line and an exit status.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/partita-go/partita/cmd/internal/human"
)

// Exit statuses.
const (
	Fine   = 0
	Failed = 1
	Wrong  = 2
)

// Streams are where a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Command is one of the things that a program does.
type Command struct {
	Name string
	// Flags defines the command's flags and returns what runs it.
	Flags func(*flag.FlagSet) func(context.Context, Streams) error
}

// Program is a program and its commands.
type Program struct {
	Name, Usage string
	Commands    []Command
	// Version returns what --version tells; nil means that there is no such flag.
	Version func() string
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
	err := p.dispatch(ctx, args, s)
	if err == nil {
		return Fine
	}
	if ctx.Err() != nil {
		err = errInterrupted
	}
	if errors.Is(err, ErrUsage) {
		_, _ = fmt.Fprintf(s.Err, "%s: %s (see %s help)\n", p.Name, OneLine(err), p.Name)
		return Wrong
	}
	_, _ = fmt.Fprintf(s.Err, "%s: %s\n", p.Name, OneLine(err))
	if p.Status == nil {
		return Failed
	}
	return p.Status(err)
}

func (p *Program) dispatch(ctx context.Context, args []string, s Streams) error {
	name := ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	if name == "help" {
		return p.printUsage(s.Out)
	}
	for _, c := range p.Commands {
		if c.Name == name {
			return p.run(ctx, c, args, s)
		}
	}
	if name == "" {
		return p.runNothing(args, s)
	}
	return WrongUsage("unknown command %.40q", name)
}

// runNothing is for a program that does nothing without a command.
func (p *Program) runNothing(args []string, s Streams) error {
	if len(args) == 0 {
		return WrongUsage("no command")
	}
	if args[0] == "-h" || args[0] == "-help" || args[0] == "--help" {
		return p.printUsage(s.Out)
	}
	if p.Version != nil && (args[0] == "-version" || args[0] == "--version") {
		_, err := fmt.Fprintln(s.Out, p.Version())
		return err
	}
	return WrongUsage("unknown flag %.40q before a command", args[0])
}

func (p *Program) run(ctx context.Context, c Command, args []string, s Streams) error {
	set := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	run := c.Flags(set)
	sayWhatIsWanted(set)
	switch err := set.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return p.printUsage(s.Out)
	case err != nil:
		return WrongUsage("%s", OneLine(err))
	case set.NArg() > 0:
		return WrongUsage("unexpected argument %.40q", set.Arg(0))
	}
	return run(ctx, s)
}

func (p *Program) printUsage(w io.Writer) error {
	_, err := io.WriteString(w, p.Usage)
	return err
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
