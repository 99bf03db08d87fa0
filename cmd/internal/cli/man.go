package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// WriteMan writes the manual pages of a program and its commands into a directory, as man(7) has them, and returns their
// names. They say what the help says.
func (p *Program) WriteMan(dir string) (names []string, err error) {
	return p.writeMan(p.Root, dir)
}

func (p *Program) writeMan(c *cobra.Command, dir string) (names []string, err error) {
	name := manName(c) + ".1"
	if err := os.WriteFile(filepath.Join(dir, name), []byte(p.man(c)), 0o644); err != nil { //nolint:gosec // everybody reads it
		return nil, err
	}
	names = []string{name}
	for _, below := range c.Commands() {
		if !below.IsAvailableCommand() {
			continue
		}
		more, err := p.writeMan(below, dir)
		if err != nil {
			return nil, err
		}
		names = append(names, more...)
	}
	return names, nil
}

func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// man returns the page of a command.
func (p *Program) man(c *cobra.Command) string {
	var page strings.Builder
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(&page, format+"\n", args...) }
	say(`.TH %s 1 "" %q`, strings.ToUpper(roff(manName(c))), p.Root.Name()+" "+p.Root.Version)
	say(".SH NAME\n%s \\- %s", roff(manName(c)), roff(c.Short))
	say(".SH SYNOPSIS\n.B %s", roff(c.UseLine()))
	say(".SH DESCRIPTION\n%s", paragraphs(c))
	if c.HasAvailableSubCommands() {
		say(".SH COMMANDS")
	}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			say(".TP\n.BR %s (1)\n%s", roff(manName(below)), roff(below.Short))
		}
	}
	say(".SH OPTIONS")
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		name, usage := pflag.UnquoteUsage(f)
		say(".TP\n\\fB\\-\\-%s\\fR \\fI%s\\fR\n%s", roff(f.Name), roff(name), roff(usage+defaultOf(f)))
	})
	say(".SH EXIT STATUS\n%s", roff(strings.TrimSpace(p.Exits)))
	if c.HasParent() {
		say(".SH SEE ALSO\n.BR %s (1)", roff(manName(c.Parent())))
	}
	return page.String()
}

// paragraphs are what the help says of a command.
func paragraphs(c *cobra.Command) string {
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	return strings.ReplaceAll(roff(strings.TrimSpace(text)), "\n\n", "\n.PP\n")
}

// defaultOf says what a flag is unless it is given.
func defaultOf(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "false", "0", "[]":
		return ""
	}
	return fmt.Sprintf(" (default %s)", f.DefValue)
}

// roff is a text as man(7) has it: no line is a request, and no backslash an escape.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
