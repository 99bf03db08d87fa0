package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/partita-go/partita/cmd/demo/internal/history"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt"
)

// fileResult is about the lines that were delivered.
type fileResult struct {
	Lines    number `json:"lines"`
	Missing  number `json:"missing"`
	Repeated number `json:"repeated"`
	// OutOfOrder overtook one that was not delivered, Wrong are not the commit that is there
	// in the log.
	OutOfOrder number `json:"out_of_order"`
	Wrong      number `json:"wrong"`
	// TooOften is how many were repeated beyond a batch of their log for a kill.
	TooOften number `json:"too_often"`
}

func (r *fileResult) right() bool {
	return r.Missing+r.OutOfOrder+r.Wrong+r.TooOften == 0
}

// copiesResult is about the appends of the handler that makes copies.
type copiesResult struct {
	Events   number `json:"events"`
	Missing  number `json:"missing"`
	Repeated number `json:"repeated"`
	Wrong    number `json:"wrong"`
}

func (r *copiesResult) right() bool { return r.Missing+r.Repeated+r.Wrong == 0 }

// examine reads file and store, which are at rest, and compares them with the history.
func (o *outbox) examine(ctx context.Context) (err error) {
	o.step(4, "Everything is checked: file, copies, store.")
	store, err := openStore(ctx, o.work.dir, o.descriptor(), bolt.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore(store)) }()
	if err := o.examineFile(ctx, store); err != nil {
		return about(o.work.dir, err)
	}
	if o.result.Copies, err = compareCopies(ctx, store, limited(o.commits)); err != nil {
		return about(o.work.dir, err)
	}
	if o.result.Check, err = checkInvariants(ctx, o.console, store, uint64(store.Stats().Events)); err != nil {
		return about(o.work.dir, err)
	}
	o.result.OK = o.result.File.right() && o.result.Copies.right() && o.result.Check.OK
	return nil
}

// authored are the commits of the log, by partition and offset.
type authored map[messages.PartitionID]map[messages.PLogOffset]string

func readAuthored(ctx context.Context, store *bolt.Store) (authored, error) {
	all := make(authored)
	for e, err := range store.Log(ctx, 1) {
		if err != nil {
			return nil, err
		}
		if e.WorkspaceKind != kindAuthor {
			continue
		}
		_, commit, err := decodeCommit(e.Body)
		if err != nil {
			return nil, fmt.Errorf("partition %d, offset %d: %w", e.Partition, e.PLogOffset, err)
		}
		if all[e.Partition] == nil {
			all[e.Partition] = make(map[messages.PLogOffset]string)
		}
		all[e.Partition][e.PLogOffset] = commit.ID
	}
	return all, nil
}

// examineFile compares the lines of the file with the log, process by process.
func (o *outbox) examineFile(ctx context.Context, store *bolt.Store) (err error) {
	want, err := readAuthored(ctx, store)
	if err != nil {
		return err
	}
	f, err := os.Open(filepath.Join(o.work.dir, outboxFile))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	lines := newLineCheck(want)
	at, in := int64(0), bufio.NewReader(f)
	for i, end := range o.ends {
		lines.begin()
		for at < end {
			line, err := in.ReadString('\n')
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			at += int64(len(line))
			lines.add(line)
		}
		p := &o.result.Processes[i]
		p.Lines, p.Again, p.Most = number(lines.lines), number(lines.again), number(lines.most())
		lines.end(o.allowed(i))
	}
	o.result.File = lines.result()
	return nil
}

// allowed is how often events of one log may be repeated by the nth process: a batch after
// a kill, none else.
func (o *outbox) allowed(n int) uint64 {
	if n > 0 && o.result.Processes[n-1].Killed {
		return uint64(o.batch)
	}
	return 0
}

// lineCheck compares lines with a log.
type lineCheck struct {
	want authored
	// last is the last offset of each partition that was delivered. All commits are there
	// before the first copy, so that their offsets follow one another.
	last  map[messages.PartitionID]messages.PLogOffset
	found fileResult
	// lines, again and repeated are those of one process; repeated by partition.
	lines, again uint64
	repeated     map[messages.PartitionID]uint64
}

func newLineCheck(want authored) *lineCheck {
	return &lineCheck{want: want, last: make(map[messages.PartitionID]messages.PLogOffset)}
}

func (c *lineCheck) begin() {
	c.lines, c.again, c.repeated = 0, 0, make(map[messages.PartitionID]uint64)
}

// add takes a line.
func (c *lineCheck) add(line string) {
	c.lines++
	a, err := parseAck(line)
	if err != nil || c.want[a.partition][a.offset] != a.commit || line != a.line() {
		c.found.Wrong++
		return
	}
	switch next := c.last[a.partition] + 1; {
	case a.offset == next:
		c.last[a.partition] = next
	case a.offset < next:
		c.again++
		c.repeated[a.partition]++
	default:
		c.found.OutOfOrder++
		c.found.Missing += number(a.offset - next)
		c.last[a.partition] = a.offset
	}
}

// most is the largest number of repetitions of one log.
func (c *lineCheck) most() (most uint64) {
	for _, n := range c.repeated {
		most = max(most, n)
	}
	return most
}

// end ends a process, which may have repeated so many events of each log.
func (c *lineCheck) end(allowed uint64) {
	c.found.Lines += number(c.lines)
	c.found.Repeated += number(c.again)
	for _, n := range c.repeated {
		c.found.TooOften += number(n - min(n, allowed))
	}
}

func (c *lineCheck) result() *fileResult {
	for p, commits := range c.want {
		for offset := range commits {
			if offset > c.last[p] {
				c.found.Missing++
			}
		}
	}
	return &c.found
}

// compareCopies compares the copies with the history: each author has one of each commit, in
// their order, numbered without a gap.
func compareCopies(ctx context.Context, store *bolt.Store, commits iter.Seq2[history.Commit, error]) (*copiesResult, error) {
	made := make(map[messages.WSID][]history.Commit)
	r := &copiesResult{}
	for c, err := range commits {
		if err != nil {
			return nil, err
		}
		ws := messages.WSID(c.Workspace()) | copyBit
		made[ws] = append(made[ws], c)
		r.Missing++
	}
	seen := make(map[messages.WSID]map[string]bool)
	for e, err := range store.Log(ctx, 1) {
		if err != nil {
			return nil, err
		}
		if e.WorkspaceKind != kindCopy {
			continue
		}
		r.Events++
		if seen[e.Workspace] == nil {
			seen[e.Workspace] = make(map[string]bool)
		}
		switch {
		case seen[e.Workspace][string(e.Body)]:
			r.Repeated++
		case !isCopy(&e, made[e.Workspace]):
			r.Wrong++
		default:
			r.Missing--
		}
		seen[e.Workspace][string(e.Body)] = true
	}
	return r, nil
}

// isCopy reports whether an event is the copy that belongs at its place.
func isCopy(e *messages.Event, made []history.Commit) bool {
	n := e.WLogOffset
	return n > 0 && uint64(n) <= uint64(len(made)) && string(e.Body) == string(encodeCommit(made[n-1], n)) &&
		len(e.Numbers) == 1 && e.Numbers[0] == messages.SequenceNumber{Seq: seqCommit, Number: messages.Number(n)}
}
