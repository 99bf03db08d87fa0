package bolt_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/partita-go/partita/storage/bolt/internal/expect"
)

// byName are the functions that find files by a name which is resolved anew. What they are used for must have nothing to
// do with the files of a store, whose directory is held.
var byName = map[string]map[string][]string{
	"os": {
		// How a directory is held, and whether it is still the one under its name.
		"internal/boltfile/directory.go": {"OpenRoot", "Stat"},
		// The directories above, which are no store's.
		"internal/boltfile/names.go": {"Stat", "Mkdir", "Remove", "Open"},
		// Copies are made under another name beside their own.
		"internal/copies/into.go": {"MkdirTemp", "Remove", "RemoveAll", "Rename", "Lstat", "ReadDir"},
		"internal/copies/kept.go": {"Mkdir"},
	},
	"syscall":  {"internal/copies/into.go": {"Rmdir"}},
	"bbolt":    {"internal/boltfile/file.go": {"Open"}},              // with a way to open files
	"filepath": {"internal/boltfile/directory.go": {"EvalSymlinks"}}, // how that is looked for again
	"unix":     {},
}

// harmless are functions of these packages, and what else they export, that take no name of a file.
var harmless = map[string][]string{
	"os": {
		"File", "FileInfo", "FileMode", "PathError", "ModeSymlink", "Root", "SameFile",
		"O_RDONLY", "O_WRONLY", "O_RDWR", "O_CREATE", "O_EXCL", "ErrNotExist", "ErrExist", "ErrPermission",
	},
	"syscall": {
		"EINVAL", "ENOSPC", "EDQUOT", "EFBIG", "Flock", "LOCK_UN", "Syscall", "SYS_FCNTL", "F_GETFL", "F_SETFL", "O_DIRECT", "O_DSYNC",
	},
	"bbolt":    {"Bucket", "Cursor", "DB", "DefaultOptions", "FreelistMapType", "Options", "Tx"},
	"filepath": {"Abs", "Base", "Clean", "Dir", "Join"},
}

// TestFilesAreFoundInTheHeldDirectory reads the sources: whatever else finds a file by its name goes through the
// directory that the store holds.
func TestFilesAreFoundInTheHeldDirectory(t *testing.T) {
	files, err := filepath.Glob("*.go")
	expect.NoError(t, err)
	rooms, err := filepath.Glob("internal/*/*.go")
	expect.NoError(t, err)
	files = append(files, rooms...)
	seen := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		expect.NoError(t, err)
		for _, i := range file.Imports {
			if i.Name != nil && byName[i.Name.Name] == nil && byName[filepath.Base(strings.Trim(i.Path.Value, `"`))] != nil {
				t.Errorf("%s: %s has another name there", set.Position(i.Pos()), i.Path.Value)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			of, ok := selector.X.(*ast.Ident)
			if !ok || byName[of.Name] == nil {
				return true
			}
			seen++
			if what := selector.Sel.Name; !slices.Contains(harmless[of.Name], what) && !slices.Contains(byName[of.Name][name], what) {
				t.Errorf("%s: %s.%s: find files through the directory that the store holds", set.Position(n.Pos()), of.Name, what)
			}
			return true
		})
	}
	if seen < 100 {
		t.Errorf("only %d uses were looked at", seen)
	}
}
