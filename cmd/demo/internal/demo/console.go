package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/partita-go/partita/cmd/demo/internal/progress"
	"github.com/partita-go/partita/cmd/demo/internal/table"
)

// console is where a command tells what it does. It keeps the first error of
// writing.
type console struct {
	*progress.Progress
	w       io.Writer
	unicode bool
	width   int
	// json says that the result goes to stdout as JSON, and all else to stderr.
	json   bool
	stdout io.Writer
	err    error
}

// maxText is how wide text becomes at most: longer lines are hard to read.
const maxText = 90

func newConsole(s streams, asJSON bool) *console {
	w := s.out
	if asJSON {
		w = s.err
	}
	config := progress.For(w)
	return &console{Progress: progress.New(config), w: w, unicode: config.Unicode, width: min(config.Width, maxText), json: asJSON, stdout: s.out}
}

// say writes one line.
func (c *console) say(format string, args ...any) { c.print(fmt.Sprintf(format, args...) + "\n") }

// tell writes a paragraph, wrapped, each line after the indent. An indent that
// is not blank, like a number, stands on the first line only.
func (c *console) tell(indent, format string, args ...any) {
	line := indent
	blank := strings.Repeat(" ", utf8.RuneCountInString(indent))
	for word := range strings.FieldsSeq(fmt.Sprintf(format, args...)) {
		fresh := strings.TrimSpace(line) == "" || line == indent
		switch {
		case fresh:
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) >= c.width:
			c.print(line + "\n")
			line = blank + word
		default:
			line += " " + word
		}
	}
	c.print(line + "\n")
}

// print writes text, in ASCII if there is nothing else.
func (c *console) print(text string) {
	if !c.unicode {
		text = strings.ReplaceAll(text, "…", "...")
	}
	if _, err := io.WriteString(c.w, text); err != nil && c.err == nil {
		c.err = err
	}
}

func (c *console) table(columns ...table.Column) *table.Table {
	return table.New(c.unicode, columns...)
}

// draw writes a table under its title.
func (c *console) draw(title string, t *table.Table) { c.print("\n" + title + "\n\n" + t.String()) }

// result ends a command: it writes the result as JSON if that is wanted, else as
// text does. It returns the first error of writing anything.
func (c *console) result(value any, text func(*console)) error {
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

// mark is what stands before the result of a check.
func (c *console) mark(good bool) string {
	switch {
	case good && c.unicode:
		return "✓"
	case good:
		return "ok"
	case c.unicode:
		return "✗"
	}
	return "BAD"
}

// place is a store's directory: the one that was named, or a temporary one.
type place struct {
	dir       string
	temporary bool
}

// findPlace returns the directory, made if it is temporary. end removes it then.
func findPlace(named string, keep bool) (p place, end func() error, err error) {
	if named != "" {
		return place{dir: named}, func() error { return nil }, nil
	}
	dir, err := os.MkdirTemp("", "partita-demo-")
	if err != nil {
		return place{}, nil, fmt.Errorf("no room for a temporary store: %w", err)
	}
	if keep {
		return place{dir: dir}, func() error { return nil }, nil
	}
	return place{dir: dir, temporary: true}, func() error { return os.RemoveAll(dir) }, nil
}
