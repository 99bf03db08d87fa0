//go:build !unix

package tests

import "time"

// cpuTime returns how much CPU time the process has used, 0 if nobody knows.
func cpuTime() time.Duration { return 0 }
