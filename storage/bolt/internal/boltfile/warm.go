package boltfile

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// coldRead is how long it takes at least to read something that is not in memory.
	coldRead = 40 * time.Microsecond
	// warmReaders is how many read at a time: the disk is faster with many than with one after the other.
	warmReaders = 16
)

// Cold reports whether what began at a time came from the disk, by how long it took.
func Cold(begun time.Time) bool { return time.Since(begun) >= coldRead }

// Warm touches n things in different places of a file, many at a time, so that they are in memory when they are read.
// A touch must not run inside a read of the file.
func Warm(n int, touch func(i int)) {
	var next atomic.Int64
	var wait sync.WaitGroup
	for range min(n, warmReaders) {
		wait.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				touch(int(i))
			}
		})
	}
	wait.Wait()
}
