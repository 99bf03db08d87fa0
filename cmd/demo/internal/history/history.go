// Package history holds real data to replay: the commits of 20 public projects,
// in order of time. DATA.md describes it.
package history

import (
	"bufio"
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"iter"
	"strconv"
	"time"

	"github.com/partita-go/partita/calendar"
)

//go:embed commits.ndjson.gz
var data []byte

// Count is the number of commits.
const Count = 73990

// Commit is one commit of one of the projects.
type Commit struct {
	// At is when it was made, in its author's time zone.
	At   time.Time
	Repo string
	// Author is the author's hashed name, 10 hexadecimal digits.
	Author string
	// ID is the start of the commit's hash, 12 hexadecimal digits.
	ID string
	// Files, Added and Deleted count the files changed, and lines.
	Files, Added, Deleted int
}

// Workspace returns the author as a number: each author is a tenant.
func (c Commit) Workspace() uint64 {
	n, err := strconv.ParseUint(c.Author, 16, 64)
	if err != nil {
		return 0 // no commit of Commits has such an author
	}
	return n
}

// Date is the day on which it was made, by its author's clock.
func (c Commit) Date() calendar.Date { return calendar.DateOf(c.At) }

// Night reports whether it was made between 22:00 and 05:59, by its author's
// clock.
func (c Commit) Night() bool {
	hour := c.At.Hour()
	return hour >= 22 || hour < 6
}

// Commits returns all commits, oldest first. They are decoded as they are asked
// for. The sequence ends after the first error, which names the line.
func Commits() iter.Seq2[Commit, error] {
	return func(yield func(Commit, error) bool) {
		Decode(bytes.NewReader(data))(yield)
	}
}

// Decode reads commits in the form of the embedded data from r, gzipped, one
// JSON object a line. It can be ranged over once.
func Decode(r io.Reader) iter.Seq2[Commit, error] {
	return func(yield func(Commit, error) bool) {
		unzipped, err := gzip.NewReader(r)
		if err != nil {
			yield(Commit{}, fmt.Errorf("history: not gzipped: %w", err))
			return
		}
		lines := bufio.NewScanner(unzipped)
		known := newInterned()
		number := 0
		for lines.Scan() {
			number++
			commit, err := known.parse(lines.Bytes())
			if err != nil {
				yield(Commit{}, fmt.Errorf("history: line %d: %w", number, err))
				return
			}
			if !yield(commit, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(Commit{}, fmt.Errorf("history: line %d: %w", number+1, err))
		}
	}
}
