package dumps

import "errors"

// Errors of writing and reading dumps.
var (
	// ErrClosed is returned when a writer is asked for something after it was closed.
	//
	// From: Writer.Reopen.
	// Do: open another one.
	ErrClosed = errors.New("the dump is closed")
	// ErrFile is returned for a file that no dump is written to: it is a directory or a pipe, or another writer has it. It
	// says which file, and why.
	//
	// From: Open, Writer.Reopen.
	// Do: name another file.
	ErrFile = errors.New("not a file for a dump")
	// ErrLine is returned for a line of a file that is not one of a dump: it was cut off when the disk was full or the
	// process ended, or the file is another one. It says which line.
	//
	// From: Read, ParseLine.
	// Do: go on with the next line.
	ErrLine = errors.New("not a line of a dump")
)
