// Package usage tells what processes and directories take, as the kernel's /proc
// says it. Where there is none, it says so.
package usage

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// Written returns how many bytes a process and its descendants have given to write
// calls (wchar of /proc/PID/io), to sockets too. Descendants that ended and were
// waited for count as their parent's. The same file's write_bytes will not do:
// where the page cache has large folios it counts a whole folio, which can be
// 2 MiB, for each page that is written and synced.
func Written(pid int) (int64, error) {
	written := int64(0)
	err := eachOf(pid, func(p procfs.Proc) error {
		io, err := p.IO()
		written += int64(io.WChar)
		return err
	})
	return written, err
}

// Processor returns how long a process and its descendants have used processors, those too that have ended and were
// waited for. The system counts in ticks of 10 ms.
func Processor(pid int) (time.Duration, error) {
	ticks := int64(0)
	err := eachOf(pid, func(p procfs.Proc) error {
		stat, err := p.Stat()
		ticks += int64(stat.UTime+stat.STime) + int64(stat.CUTime+stat.CSTime)
		return err
	})
	return time.Duration(ticks) * tick, err
}

// tick is what /proc counts in on Linux, whatever its kernel counts in.
const tick = 10 * time.Millisecond

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
	file, shared := uint64(0), uint64(0)
	err := eachOf(pid, func(p procfs.Proc) error {
		status, err := p.NewStatus()
		m.Anonymous += int64(status.RssAnon)
		file, shared = max(file, status.RssFile), max(shared, status.RssShmem)
		return err
	})
	m.Resident = m.Anonymous + int64(file+shared)
	return m, err
}

// eachOf calls do for a process and its descendants. Those that end meanwhile are
// left out, but not the process itself.
func eachOf(root int, do func(procfs.Proc) error) error {
	children, err := childrenOfAll()
	if err != nil {
		return err
	}
	for pids := []int{root}; len(pids) > 0; pids = pids[1:] {
		p, err := procfs.NewProc(pids[0])
		if err == nil {
			err = do(p)
		}
		if err != nil && (pids[0] == root || !gone(err)) {
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
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, err
	}
	children := make(map[int][]int)
	for _, p := range all {
		stat, err := p.Stat()
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("process %d: %w", p.PID, err)
		}
		children[stat.PPID] = append(children[stat.PPID], p.PID)
	}
	return children, nil
}
