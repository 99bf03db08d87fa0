package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// excuses are the names of changes that make no difference.
type excuses map[string]bool

// readExcuses reads them. It is an error if a file has no such change any more: the excuse would be taken
// by another one that gets its name later.
func readExcuses(dir, path string) (excuses, error) {
	reasons, err := readReasons(path)
	if err != nil {
		return nil, err
	}
	all := make(excuses)
	for name := range reasons {
		all[name] = true
	}
	if err := all.check(dir); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

// readReasons reads a list of names: a name ends at a tab, behind which stands why it is there. A list without
// a path is empty.
func readReasons(path string) (map[string]string, error) {
	reasons := make(map[string]string)
	if path == "" {
		return reasons, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		name, why, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if strings.TrimSpace(why) == "" {
			return nil, fmt.Errorf("%s: %q: got no reason", path, name)
		}
		reasons[name] = why
	}
	return reasons, nil
}

// check makes sure that each excuse is for a change of the file that it names.
func (e excuses) check(dir string) error {
	changes := make(map[string]map[string]bool) // by file
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(e)) {
		file, _, _ := strings.Cut(name, " ")
		if changes[file] == nil {
			names, err := changesOf(dir, file)
			if err != nil {
				return err
			}
			changes[file] = names
		}
		if !changes[file][name] {
			errs = append(errs, fmt.Errorf("got an excuse for %q, want one for a change that can be made there", name))
		}
	}
	return errors.Join(errs...)
}

// changesOf returns the names of the changes that can be made in a file.
func changesOf(dir, path string) (map[string]bool, error) {
	s, err := readSource(dir, path)
	if err != nil {
		return nil, err
	}
	names := make(map[string]bool)
	for _, f := range s.functions {
		for _, m := range f.changes {
			names[m.name] = true
		}
	}
	return names, nil
}
