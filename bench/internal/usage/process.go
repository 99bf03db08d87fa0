// Package usage tells what processes and directories take, as the kernel's /proc
// says it. Where there is none, it says so.
package usage

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

const proc = "/proc"

// Written returns how many bytes a process and its descendants have given to write
// calls (wchar of /proc/PID/io), to sockets too. Descendants that ended and were
// waited for count as their parent's. The same file's write_bytes will not do:
// where the page cache has large folios it counts a whole folio, which can be
// 2 MiB, for each page that is written and synced.
func Written(pid int) (int64, error) {
	written := int64(0)
	err := eachOf(pid, func(pid int) error {
		values, err := readFields(filepath.Join(proc, strconv.Itoa(pid), "io"), "wchar")
		written += values["wchar"]
		return err
	})
	return written, err
}

// Memory is what a process and its descendants have in memory, in bytes.
type Memory struct {
	// Resident counts anonymous memory of every process and what is shared (files,
	// shared memory) once: as much as the process has that has most of it.
	Resident int64
	// Anonymous is Resident without what is shared.
	Anonymous int64
}

// ReadMemory returns what a process and its descendants have in memory now.
func ReadMemory(pid int) (Memory, error) {
	var m Memory
	file, shared := int64(0), int64(0)
	err := eachOf(pid, func(pid int) error {
		values, err := readFields(filepath.Join(proc, strconv.Itoa(pid), "status"), "RssAnon", "RssFile", "RssShmem")
		m.Anonymous += values["RssAnon"]
		file, shared = max(file, values["RssFile"]), max(shared, values["RssShmem"])
		return err
	})
	m.Resident = m.Anonymous + file + shared
	return m, err
}

// eachOf calls do for a process and its descendants. Those that end meanwhile are
// left out, but not the process itself.
func eachOf(root int, do func(pid int) error) error {
	children, err := childrenOfAll()
	if err != nil {
		return err
	}
	for pids := []int{root}; len(pids) > 0; pids = pids[1:] {
		if err := do(pids[0]); err != nil && (pids[0] == root || !gone(err)) {
			return fmt.Errorf("process %d: %w", pids[0], err)
		}
		pids = append(pids, children[pids[0]]...)
	}
	return nil
}

func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}

// childrenOfAll returns the children of every process.
func childrenOfAll() (map[int][]int, error) {
	names, err := filepath.Glob(filepath.Join(proc, "[0-9]*", "stat"))
	if err != nil {
		return nil, err
	}
	children := make(map[int][]int)
	for _, name := range names {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		pid, parent, err := parseStat(stat)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		children[parent] = append(children[parent], pid)
	}
	return children, nil
}

// parseStat returns the process and its parent: "PID (command) state parent …",
// where the command may contain anything.
func parseStat(stat []byte) (pid, parent int, err error) {
	first, _, _ := bytes.Cut(stat, []byte(" "))
	rest := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(rest) < 2 {
		return 0, 0, fmt.Errorf("got %q, want a process, its command, its state and its parent", stat)
	}
	pid, err = strconv.Atoi(string(first))
	if err != nil {
		return 0, 0, err
	}
	parent, err = strconv.Atoi(string(rest[1]))
	return pid, parent, err
}

// readFields reads lines like "name: 12 kB" and returns the values of some, in
// bytes. It fails if one is missing.
func readFields(name string, wanted ...string) (map[string]int64, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	values := make(map[string]int64, len(wanted))
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		field, rest, _ := strings.Cut(lines.Text(), ":")
		if !slices.Contains(wanted, field) {
			continue
		}
		number, unit, _ := strings.Cut(strings.TrimSpace(rest), " ")
		value, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", name, field, err)
		}
		if unit == "kB" {
			value <<= 10
		}
		values[field] = value
	}
	// A process that is ending has no memory any more, and says none.
	if len(values) < len(wanted) && len(text) > 0 && !bytes.Contains(text, []byte("State:\tZ")) {
		return nil, fmt.Errorf("%s: got %v, want %v", name, slices.Sorted(maps.Keys(values)), wanted)
	}
	return values, nil
}
