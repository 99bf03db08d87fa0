// Package term says what the place can show to which a program writes.
package term

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/term"
)

// DefaultWidth is the width of what does not tell it.
const DefaultWidth = 80

// Interactive reports whether w is a terminal on which a line can be redrawn.
func Interactive(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(file.Fd()))
}

// Width returns how many columns w has: those that COLUMNS tells, else those of the terminal.
func Width(w io.Writer) int {
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		return columns
	}
	if file, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
			return columns
		}
	}
	return DefaultWidth
}

// Coloured reports whether w shows colours: a terminal, unless NO_COLOR is set (https://no-color.org).
func Coloured(w io.Writer) bool { return Interactive(w) && os.Getenv("NO_COLOR") == "" }
