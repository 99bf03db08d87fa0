package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// plant is a fault to be planted: what is changed, and who is to notice.
type plant struct {
	name    string
	tests   []target
	changed []change
}

// change is a file as the fault makes it.
type change struct{ path, text string }

// readPlants reads lists of faults. A list is text like this, in which each line
// counts as it stands; what begins with # between faults is a comment:
//
//	== name-of-the-fault
//	What is wrong, in a line or more.
//	test ./package TestName
//	file path/to/file.go
//	<<<
//	these lines, which must stand in the file exactly once
//	===
//	become these
//	>>>
//
// A fault may name several tests, which must all fail, and change several places.
// It is an error if a place is not found, so that a list does not age unnoticed.
func readPlants(dir string, lists []string) ([]plant, error) {
	var all []plant
	names := make(map[string]bool)
	for _, path := range lists {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		blocks := strings.Split("\n"+string(text), "\n== ")
		for _, block := range blocks[1:] {
			p, err := readPlant(dir, block)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", path, p.name, err)
			}
			if names[p.name] {
				return nil, fmt.Errorf("%s: %s: there are two of that name", path, p.name)
			}
			names[p.name] = true
			all = append(all, p)
		}
	}
	return all, nil
}

func readPlant(dir, block string) (p plant, err error) {
	lines := strings.Split(block, "\n")
	p.name = strings.TrimSpace(lines[0])
	file := ""
	for i := 1; i < len(lines); i++ {
		word, rest, _ := strings.Cut(lines[i], " ")
		switch word {
		case "test":
			path, name, ok := strings.Cut(rest, " ")
			if !ok {
				return p, fmt.Errorf("got %q, want a package and a test", lines[i])
			}
			p.tests = append(p.tests, target{path, name})
		case "file":
			file = rest
		case "<<<":
			middle, end := index(lines, i, "==="), index(lines, i, ">>>")
			if file == "" || middle < 0 || end < middle {
				return p, fmt.Errorf("want file, <<<, === and >>> in this order")
			}
			old, now := strings.Join(lines[i+1:middle], "\n"), strings.Join(lines[middle+1:end], "\n")
			if err := p.change(dir, file, old, now); err != nil {
				return p, err
			}
			i = end
		}
	}
	if len(p.tests) == 0 || len(p.changed) == 0 {
		return p, fmt.Errorf("got %d tests and %d changes, want at least one each", len(p.tests), len(p.changed))
	}
	return p, nil
}

// index returns the first line after one that is as wanted, -1 if there is none.
func index(lines []string, after int, want string) int {
	for i := after + 1; i < len(lines); i++ {
		if lines[i] == want {
			return i
		}
	}
	return -1
}

// change replaces lines of a file, which may have been changed already.
func (p *plant) change(dir, path, old, now string) error {
	at := -1
	for i := range p.changed {
		if p.changed[i].path == path {
			at = i
		}
	}
	if at < 0 {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(path)))
		if err != nil {
			return err
		}
		at = len(p.changed)
		p.changed = append(p.changed, change{path, string(text)})
	}
	old, text := "\n"+old+"\n", p.changed[at].text
	if n := strings.Count(text, old); n != 1 {
		return fmt.Errorf("%s: the lines are there %d times, want once:%s", path, n, old)
	}
	if now != "" {
		now += "\n"
	}
	p.changed[at].text = strings.Replace(text, old, "\n"+now, 1)
	return nil
}
