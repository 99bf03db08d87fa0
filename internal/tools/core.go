package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
)

// checkCore reports every goroutine, channel operation and select in the
// directories' Go files, except tests: what runs there is a state machine, and
// what is declared there is plain data. Imports and the clock are the linters'.
func checkCore(dirs []string, stdout io.Writer) error {
	if len(dirs) == 0 {
		return fmt.Errorf("core: which directories?")
	}
	fset := token.NewFileSet()
	files, found := 0, 0
	for _, dir := range dirs {
		before := files
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			files++
			ast.Inspect(file, func(node ast.Node) bool {
				if what := concurrency(node); what != "" {
					found++
					_, _ = fmt.Fprintf(stdout, "%v: the core has no %s\n", fset.Position(node.Pos()), what)
				}
				return true
			})
			return nil
		})
		if err != nil {
			return fmt.Errorf("core: %w", err)
		}
		if files == before {
			return fmt.Errorf("core: no Go file in %s", dir)
		}
	}
	if found > 0 {
		return fmt.Errorf("core: %d places to mend", found)
	}
	_, _ = fmt.Fprintf(stdout, "core: %d files without goroutine, channel or select\n", files)
	return nil
}

// concurrency names what the node is, "" if it is harmless.
func concurrency(node ast.Node) string {
	switch node := node.(type) {
	case *ast.GoStmt:
		return "goroutine"
	case *ast.SelectStmt:
		return "select"
	case *ast.ChanType:
		return "channel"
	case *ast.SendStmt:
		return "send on a channel"
	case *ast.UnaryExpr:
		if node.Op == token.ARROW {
			return "receive from a channel"
		}
	}
	return ""
}
