package demo

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/cmd/demo/internal/history"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// The application: each author is a workspace, each commit a command.
const (
	applicationName = "commits"

	kindAuthor messages.WSKind = 1
	// seqCommit numbers an author's commits.
	seqCommit messages.SeqID = 16
	// seqNight numbers those of them that were made at night.
	seqNight messages.SeqID = 17
	// seqDay numbers an author's commits of a day, and seqYear those of a year, by the
	// author's clock.
	seqDay  messages.SeqID = 18
	seqYear messages.SeqID = 19
	// rawRow is the record that a command creates.
	rawRow messages.RawID = 1
)

// perDay restarts with each local day. The history is in order of time, but an author who
// travels west can have a later commit of an earlier day. Clocks differ by less than 30 hours
// (history takes no others), so it is two days earlier at most. What lies within Ahead of the
// newest day is never closed. So no commit is refused, though only few days keep their numbers.
var perDay = messages.Restart{Rule: calendar.Rule{Every: calendar.Day}, Keep: 2, Ahead: 2}

// perYear restarts with each local year. An author has few, so all of them keep their
// numbers.
var perYear = messages.Restart{Rule: calendar.Rule{Every: calendar.Year}}

func commitsDescriptor(partitions uint32) messages.Descriptor {
	return messages.Descriptor{
		Application: applicationName,
		Partitions:  partitions,
		Kinds: []messages.Kind{{ID: kindAuthor, Name: "author", Sequences: []messages.Sequence{
			{ID: seqCommit, Name: "Commit", Initial: 1},
			{ID: seqNight, Name: "Night", Initial: 1},
			{ID: seqDay, Name: "Day", Initial: 1, Restart: perDay, Formats: []string{"{yyyy}-{mm}-{dd}/{n}"}},
			{ID: seqYear, Name: "Year", Initial: 1, Restart: perYear, Formats: []string{"{yyyy}/{n:04}"}},
		}}},
	}
}

// errRepeated is returned when a command's event is in the log already. An
// earlier try of the same command had succeeded without anybody knowing.
var errRepeated = errors.New("the commit is in the log already")

// errSkipped is returned when an author's earlier commits are not in the log.
var errSkipped = errors.New("an earlier commit is missing")

// addCommit handles a command. A command says which of its author's commits it
// is: that makes it safe to send it again.
func addCommit(ctx context.Context, c *partition.CommandContext) error {
	wanted, commit, err := decodeCommit(c.Command().Body)
	if err != nil {
		return err
	}
	switch here := c.WLogOffset(); {
	case wanted < here:
		return errRepeated
	case wanted > here:
		return fmt.Errorf("%w: commit %d of author %s comes after %d", errSkipped, wanted, commit.Author, here-1)
	}
	numbers := []messages.SeqID{seqCommit, seqDay, seqYear}
	if commit.Night() {
		numbers = append(numbers, seqNight)
	}
	for _, seq := range numbers {
		if _, err := c.Next(ctx, seq); err != nil {
			return err
		}
	}
	id, err := c.ID(rawRow)
	if err != nil {
		return err
	}
	return c.Insert(ctx, id, commitRow(commit))
}

// commandOf makes the command for an author's nth commit. Its business date is the author's
// own date: days and years are those of the commit, not of the run.
func commandOf(c history.Commit, n messages.WLogOffset) messages.Command {
	return messages.Command{
		Workspace:  messages.WSID(c.Workspace()),
		Kind:       kindAuthor,
		RawRecords: []messages.RawRecord{{ID: rawRow}},
		Body:       encodeCommit(c, n),
		Date:       c.Date(),
	}
}

// The body of a command and of its event:
//
//	+----+--------+--------+---------+------------------+--------+-----+-------+-------+---------+
//	| id | author | number | time    | zone east of UTC | length | repo| files | added | deleted |
//	| 6  | 5      |        | seconds | seconds          |        |     |       |       |         |
//	+----+--------+--------+---------+------------------+--------+-----+-------+-------+---------+
//
// All from number on are varints, time and zone signed ones, and repo is text.
const (
	idBytes     = 6
	authorBytes = 5
)

func encodeCommit(c history.Commit, n messages.WLogOffset) []byte {
	b := make([]byte, 0, 64)
	b = appendHex(b, c.ID)
	b = appendHex(b, c.Author)
	b = binary.AppendUvarint(b, uint64(n))
	b = binary.AppendVarint(b, c.At.Unix())
	_, zone := c.At.Zone()
	b = binary.AppendVarint(b, int64(zone))
	b = binary.AppendUvarint(b, uint64(len(c.Repo)))
	b = append(b, c.Repo...)
	for _, number := range []int{c.Files, c.Added, c.Deleted} {
		b = binary.AppendUvarint(b, uint64(number))
	}
	return b
}

// appendHex adds what the digits mean; they come from the history, which has
// checked them.
func appendHex(b []byte, digits string) []byte {
	b, _ = hex.AppendDecode(b, []byte(digits))
	return b
}

var errBody = errors.New("not a commit")

func decodeCommit(b []byte) (messages.WLogOffset, history.Commit, error) {
	if len(b) < idBytes+authorBytes {
		return 0, history.Commit{}, fmt.Errorf("%w: got %d bytes", errBody, len(b))
	}
	c := history.Commit{
		ID:     hex.EncodeToString(b[:idBytes]),
		Author: hex.EncodeToString(b[idBytes : idBytes+authorBytes]),
	}
	r := varints{rest: b[idBytes+authorBytes:]}
	number := r.unsigned()
	seconds := r.signed()
	zone := r.signed()
	c.Repo = string(r.bytes(r.unsigned()))
	c.Files, c.Added, c.Deleted = int(r.unsigned()), int(r.unsigned()), int(r.unsigned())
	if r.bad || len(r.rest) > 0 {
		return 0, history.Commit{}, fmt.Errorf("%w: got %x", errBody, b)
	}
	c.At = time.Unix(seconds, 0).In(time.FixedZone("", int(zone)))
	return messages.WLogOffset(number), c, nil
}

// commitRow is the commit's row: its id, the repository and the lines changed.
func commitRow(c history.Commit) []byte {
	return fmt.Appendf(nil, "%s %s +%d -%d", c.ID, c.Repo, c.Added, c.Deleted)
}

// varints reads what binary.Append wrote. After the first fault it gives zeros.
type varints struct {
	rest []byte
	bad  bool
}

func (r *varints) unsigned() uint64 {
	v, n := binary.Uvarint(r.rest)
	r.skip(n)
	return v
}

func (r *varints) signed() int64 {
	v, n := binary.Varint(r.rest)
	r.skip(n)
	return v
}

func (r *varints) skip(n int) {
	if n <= 0 || r.bad {
		r.bad, r.rest = true, nil
		return
	}
	r.rest = r.rest[n:]
}

func (r *varints) bytes(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.bad, r.rest = true, nil
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}
