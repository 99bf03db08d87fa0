package wal

import "errors"

// What is wrong with a log.wal.
var (
	// ErrNone says that there is no log.wal, or none that anybody has begun to use.
	ErrNone = errors.New("the write-ahead log is missing, or less than its first block")
	// errZeroHeader says that something stands behind a header of zeroes: it was not being made.
	errZeroHeader = errors.New("the first sector is of zeroes, and there is something behind it")
	errTooLong    = errors.New("it is longer than a write-ahead log can be")
)
