package main

import (
	"path"
	"path/filepath"
	"strings"
	"testing"
)

func TestFloors(t *testing.T) {
	var out strings.Builder
	if err := checkFloors(t.Context(), filepath.Join("..", ".."), &out); err != nil {
		t.Fatal(err, out.String())
	}
}

func TestClimbs(t *testing.T) {
	for _, tt := range []struct {
		from, to string
		want     bool
	}{
		{"messages", "actors", true},
		{"actors", "messages", false},
		{"storage", "internal/sequencer", true},
		{"storage/bolt", "storage/bolt/internal/wal", false},
		{"storage/bolt", "actors", true},
		{"storage/bolt/internal/wal", "storage/bolt", true},
		{"storage/bolt/internal/wal", "storage/bolt/internal/boltfile", false},
		{"storage/bolt/internal/wal", "storage/bolt/internal/dedup", true},
		{"storage/bolt/internal/boltfile", "storage/bolt/internal/wal", true},
		{"storage/bolt/internal/closet", "messages", true},
		{"attic", "messages", true},
		{"partition", "httpapi", true},
		{"cmd/demo", "cmd/internal/cli", false},
		{"cmd/demo", "tests/sim", true},
		{"cmd/demo", ".", false},
		{"partition", ".", true},
		{".", "cmd/demo", true},
	} {
		for _, kind := range []string{"code", "tests", "outer tests"} {
			p := listed(path.Join("m", tt.from))
			switch imports := []string{"fmt", path.Join("m", tt.to)}; kind {
			case "code":
				p.Imports = imports
			case "tests":
				p.TestImports = imports
			default:
				p.XTestImports = imports
			}
			var out strings.Builder
			if got := climbs(p, &out) == 1; got != tt.want || got != (out.Len() > 0) {
				t.Errorf("%s of %s imports %s: got %t (%s), want %t", kind, tt.from, tt.to, got, out.String(), tt.want)
			}
		}
	}
}

// listed returns a package of module m.
func listed(path string) *pkg {
	p := &pkg{ImportPath: path}
	p.Module.Path = "m"
	return p
}
