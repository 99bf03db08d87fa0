// Package soak lets the whole runtime, over real bbolt files, work at full load for a
// long time, through undeployments, restarts and faults, and judges what must not grow:
// memory, goroutines, open files. Nothing that was acknowledged may be missing, and the
// stores must pass every check.
package soak
