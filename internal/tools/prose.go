package main

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// proseWidth is how many characters a line of Markdown may have.
const proseWidth = 120

// checkProse reports the lines of Markdown below a directory that are too long to read in a
// terminal or beside a difference. Nothing is excused: a table that needs more is a list.
func checkProse(dir string, stdout io.Writer) error {
	files, found, tree := 0, 0, os.DirFS(dir)
	err := fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "bin" || entry.Name() == "testdata"):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		files++
		text, err := fs.ReadFile(tree, path)
		if err != nil {
			return err
		}
		n, err := longLines(path, string(text), stdout)
		found += n
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("prose: %w", err)
	case files == 0:
		return fmt.Errorf("prose: no Markdown in %s", dir)
	case found > 0:
		return fmt.Errorf("prose: %d lines have more than %d characters", found, proseWidth)
	}
	_, _ = fmt.Fprintf(stdout, "prose: %d files, no line above %d characters\n", files, proseWidth)
	return nil
}

func longLines(path, text string, stdout io.Writer) (found int, err error) {
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for line := 1; lines.Scan(); line++ {
		if n := utf8.RuneCountInString(lines.Text()); n > proseWidth {
			found++
			_, _ = fmt.Fprintf(stdout, "%s:%d: got %d characters, want at most %d\n", path, line, n, proseWidth)
		}
	}
	return found, lines.Err()
}
