//go:build unix

package tests

import (
	"syscall"
	"time"
)

// cpuTime returns how much CPU time the process has used, 0 if nobody knows.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
