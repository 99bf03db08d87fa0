// Package storage says what a partition needs of a store: the log, which is the
// truth, and the projections derived from it, each valid up to a checkpoint.
//
// Package bolt implements it; package storagetest holds the conformance suite
// that every implementation must pass, and a wrapper that injects faults. Package
// replog is the seam to a log that the stores of several nodes keep together.
package storage
