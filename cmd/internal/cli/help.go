package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// maxHelp is how many columns the help has at most: longer lines are hard to read.
const maxHelp = 100

// help returns what there is to know about a command, for a terminal of so many columns.
func (p *Program) help(c *cobra.Command, columns int) string {
	columns = min(columns, maxHelp)
	var text strings.Builder
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(&text, format, args...) }
	say("%s\n\nUsage:\n  %s\n", strings.TrimSpace(cmp.Or(c.Long, c.Short)), c.UseLine())
	if c.HasAvailableSubCommands() {
		say("\nCommands:\n")
	}
	width := 0
	for _, name := range namesOf(c) {
		width = max(width, len(name))
	}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			say("  %-*s  %s\n", width, below.Name(), below.Short)
		}
	}
	say("\nFlags:\n%s", c.LocalFlags().FlagUsagesWrapped(columns))
	say("\n%s\n", strings.TrimSpace(p.Exits))
	return fitted(text.String(), columns)
}

// written is how many columns the prose of the help was written for.
const written = 80

// fitted breaks lines of a text that are too long, between words, if that is possible.
func fitted(text string, columns int) string {
	if columns < written {
		text = joined(text)
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		for len(line) > columns+1 {
			at := strings.LastIndexByte(line[:columns+1], ' ')
			if strings.TrimSpace(line[:max(at, 0)]) == "" {
				break
			}
			b.WriteString(line[:at] + "\n")
			line = line[at+1:]
		}
		b.WriteString(line)
	}
	return b.String()
}

// joined makes one line of each paragraph of prose, which is not indented.
func joined(text string) string {
	isProse := func(line string) bool { return line != "" && line[0] != ' ' }
	lines, before := []string(nil), ""
	for line := range strings.SplitSeq(text, "\n") {
		if isProse(line) && isProse(before) {
			lines[len(lines)-1] += " " + line
		} else {
			lines = append(lines, line)
		}
		before = line
	}
	return strings.Join(lines, "\n")
}

// helpCommand is cobra's, but that a command which is not there is an error.
func helpCommand() *cobra.Command {
	return &cobra.Command{Use: "help [COMMAND]", Short: "Tell about a command", RunE: func(c *cobra.Command, args []string) error {
		about, rest, err := c.Root().Find(args)
		if err != nil || len(rest) > 0 {
			return unknownCommand(c.Root(), strings.Join(args, " "))
		}
		about.InitDefaultHelpFlag()
		about.InitDefaultVersionFlag()
		return about.Help()
	}}
}
