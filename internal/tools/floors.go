package main

import (
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// floors are the module's directories, the lowest first. A package belongs to the longest name that it lies below,
// and imports, in its tests too, only what is on floors further down, or lies below the same name.
var floors = [][]string{
	{"calendar", "ids", "internal/backoff", "internal/bygroup", "internal/pace", "internal/quiet", "internal/tools", "storage/bolt/internal/expect", "storage/internal/watch"},
	{"internal/numfmt"},
	{"messages"},
	{"internal/sequencer", "internal/subscription", "storage"},
	{"storage/replog"},
	{
		"storage/bolt/internal/deque", "storage/bolt/internal/format", "storage/bolt/internal/meter", "storage/bolt/internal/queue",
		"storage/bolt/internal/schema", "storage/bolt/internal/verifier",
	},
	{"storage/bolt/internal/boltfile"},
	{"storage/bolt/internal/faulty"},
	{"storage/bolt/internal/idsdb", "storage/bolt/internal/statedb", "storage/bolt/internal/wal"},
	{"storage/bolt/internal/logdb"},
	{
		"storage/bolt/internal/dedup", "storage/bolt/internal/fetch", "storage/bolt/internal/intake", "storage/bolt/internal/numbers",
		"storage/bolt/internal/room", "storage/bolt/internal/subsdb",
	},
	{"storage/bolt/internal/files", "storage/bolt/internal/tail"},
	{
		"storage/bolt/internal/check", "storage/bolt/internal/copies", "storage/bolt/internal/keeper",
		"storage/bolt/internal/launches",
	},
	{"storage/bolt"},
	{"storage/replog/raftlog"}, // its tests make stores of its log
	{"actors/actorstest"},
	{"actors/base"},
	{"actors"},
	{"partition"},
	{"logs"},
	{".", "dumps", "httpapi", "metrics", "spans"},
	{"httpclient"},
	{"cluster"},
	{"cmd"},
	{"tests"},
}

// floorOf returns the floor of a package's directory and the name there, -1 if it has none.
func floorOf(dir string) (floor int, name string) {
	floor = -1
	for i, names := range floors {
		for _, n := range names {
			if (dir == n || strings.HasPrefix(dir, n+"/")) && len(n) > len(name) {
				floor, name = i, n
			}
		}
	}
	return floor, name
}

// checkFloors fails if an import of the module at dir points up, or to another room of its own floor.
func checkFloors(ctx context.Context, dir string, stdout io.Writer) error {
	packages, err := goList(ctx, dir, "./...")
	if err != nil {
		return fmt.Errorf("floors: %w", err)
	}
	found := 0
	for _, p := range packages {
		found += climbs(p, stdout)
	}
	if found > 0 {
		return fmt.Errorf("floors: %d imports to mend", found)
	}
	_, _ = fmt.Fprintf(stdout, "floors: %d packages, all imports point down\n", len(packages))
	return nil
}

// climbs tells what a package may not import, and returns how much that is.
func climbs(p *pkg, stdout io.Writer) (found int) {
	own := func(importPath string) string {
		if importPath == p.Module.Path {
			return "."
		}
		return strings.TrimPrefix(importPath, p.Module.Path+"/")
	}
	floor, name := floorOf(own(p.ImportPath))
	// A new room must be given its place among the others.
	if floor < 0 || name == "storage/bolt" && path.Dir(own(p.ImportPath)) == "storage/bolt/internal" {
		_, _ = fmt.Fprintf(stdout, "%s: has no floor, want one in internal/tools/floors.go\n", p.ImportPath)
		return 1
	}
	all := slices.Concat(p.Imports, p.TestImports, p.XTestImports)
	slices.Sort(all)
	for _, imported := range slices.Compact(all) {
		if imported != p.Module.Path && !strings.HasPrefix(imported, p.Module.Path+"/") {
			continue
		}
		if f, n := floorOf(own(imported)); n != name && f >= floor {
			found++
			_, _ = fmt.Fprintf(stdout, "%s: imports %s: imports point down\n", p.ImportPath, imported)
		}
	}
	return found
}
