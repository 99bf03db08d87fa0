// Package console is where a command tells what it does: lines, tables, progress, and its
// Result as text or as JSON.
package console

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/cmd/internal/human"
	"github.com/partita-go/partita/cmd/internal/progress"
	"github.com/partita-go/partita/cmd/internal/table"
	"github.com/partita-go/partita/cmd/internal/term"
)

// Console is where a command tells what it does. It keeps the first error of
// writing.
type Console struct {
	*progress.Progress
	w     io.Writer
	width int
	// coloured says that the marks of checks have colours.
	coloured bool
	// json says that the result goes to stdout as JSON, and all else to stderr.
	json   bool
	stdout io.Writer
	err    error
}

// maxText is how wide text becomes at most: longer lines are hard to read.
const maxText = 90

// New returns a console. Progress goes to the error stream, so that the text is the result
// alone; with asJSON all but the result goes there.
func New(s cli.Streams, asJSON bool) *Console {
	c := NewShow(s, asJSON)
	c.Progress = progress.New(progress.For(s.Err))
	return c
}

// NewShow is [New] for whoever tells a story: progress is a part of its text.
func NewShow(s cli.Streams, asJSON bool) *Console {
	w := s.Out
	if asJSON {
		w = s.Err
	}
	config := progress.For(w)
	return &Console{Progress: progress.New(config), w: w, width: min(config.Width, maxText), coloured: term.Coloured(w), json: asJSON, stdout: s.Out}
}

// Say writes one line, with the texts and errors among the arguments as [human.Plain] has
// them.
func (c *Console) Say(format string, args ...any) {
	for i, arg := range args {
		switch arg := arg.(type) {
		case string:
			args[i] = human.Plain(arg)
		case error:
			args[i] = human.Plain(arg.Error())
		}
	}
	c.Print(fmt.Sprintf(format, args...) + "\n")
}

// Tell writes a paragraph, wrapped, each line after the indent. An indent that
// is not blank, like a number, stands on the first line only.
func (c *Console) Tell(indent, format string, args ...any) {
	line := indent
	blank := strings.Repeat(" ", utf8.RuneCountInString(indent))
	for word := range strings.FieldsSeq(fmt.Sprintf(format, args...)) {
		fresh := strings.TrimSpace(line) == "" || line == indent
		switch {
		case fresh:
			line += human.Plain(word)
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) >= c.width:
			c.Print(line + "\n")
			line = blank + human.Plain(word)
		default:
			line += " " + human.Plain(word)
		}
	}
	c.Print(line + "\n")
}

// Print writes text. The mark that it begins with has a colour, where there are any.
func (c *Console) Print(text string) {
	if c.coloured {
		for mark, coloured := range map[string]string{Mark(true): green, Mark(false): red} {
			if behind, marked := strings.CutPrefix(text, mark); marked {
				text = coloured + mark + reset + behind
			}
		}
	}
	if _, err := io.WriteString(c.w, text); err != nil && c.err == nil {
		c.err = err
	}
}

// Draw writes a table under its title.
func (c *Console) Draw(title string, t *table.Table) { c.Print("\n" + title + "\n\n" + t.String()) }

// Result ends a command: it writes the result as JSON if that is wanted, else as
// text does. It returns the first error of writing anything.
func (c *Console) Result(value any, text func(*Console)) error {
	c.Done()
	if !c.json {
		text(c)
		return c.err
	}
	out, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	if _, err := c.stdout.Write(append(out, '\n')); err != nil {
		return err
	}
	return c.err
}

// How a terminal is told of colours.
const (
	green = "\x1b[32m"
	red   = "\x1b[31m"
	reset = "\x1b[0m"
)

// Mark is what stands before the result of a check.
func Mark(good bool) string {
	if good {
		return "✓"
	}
	return "✗"
}
