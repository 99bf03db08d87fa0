// Package term says what the place can show to which a program writes.
package term

import (
	"io"
	"os"
	"strconv"
	"strings"
)

// DefaultWidth is the width of a terminal that does not tell it.
const DefaultWidth = 80

// Interactive reports whether w is a terminal on which a line can be redrawn.
func Interactive(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// Width returns the number of columns, as COLUMNS tells it.
func Width() int {
	columns, err := strconv.Atoi(os.Getenv("COLUMNS"))
	if err != nil || columns <= 0 {
		return DefaultWidth
	}
	return columns
}

// Unicode reports whether the locale's encoding is UTF-8.
func Unicode() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := os.Getenv(name); locale != "" {
			locale = strings.ToLower(locale)
			return strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
		}
	}
	return false
}
