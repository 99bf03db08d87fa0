package demo

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/partita-go/partita/cmd/demo/internal/history"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt"
)

// author is where an author's sequences stand.
type author struct {
	ws      messages.WSID
	commits messages.WLogOffset
	commit  messages.Number
	nights  messages.Number
	row     messages.Number
}

// scan is what reading the whole log has found.
type scan struct {
	events  uint64
	authors map[messages.WSID]*author
	took    time.Duration
}

// scanAuthors does what a program without projections does when it starts: it
// reads the whole log to know the last numbers.
func scanAuthors(ctx context.Context, store *bolt.Store) (scan, error) {
	started := time.Now()
	s := scan{authors: make(map[messages.WSID]*author)}
	for e, err := range store.Log(ctx, 1) {
		if err != nil {
			return s, err
		}
		s.events++
		s.add(&e)
	}
	s.took = time.Since(started)
	return s, nil
}

func (s *scan) add(e *messages.Event) {
	a := s.authors[e.Workspace]
	if a == nil {
		a = &author{ws: e.Workspace}
		s.authors[e.Workspace] = a
	}
	a.commits = max(a.commits, e.WLogOffset)
	for _, n := range e.Numbers {
		switch n.Seq {
		case seqCommit:
			a.commit = max(a.commit, n.Number)
		case seqNight:
			a.nights = max(a.nights, n.Number)
		case messages.SeqCRecordID:
			a.row = max(a.row, n.Number)
		default:
		}
	}
}

// last returns how many commits of each author are in the log.
func (s *scan) last() map[messages.WSID]messages.WLogOffset {
	last := make(map[messages.WSID]messages.WLogOffset, len(s.authors))
	for ws, a := range s.authors {
		last[ws] = a.commits
	}
	return last
}

// lost counts the acknowledged commits that are not in the log where their
// acknowledgement says.
func lost(ctx context.Context, store *bolt.Store, acks []ack) (int, error) {
	byPartition := make(map[messages.PartitionID]map[messages.PLogOffset]string)
	for _, a := range acks {
		if byPartition[a.partition] == nil {
			byPartition[a.partition] = make(map[messages.PLogOffset]string)
		}
		byPartition[a.partition][a.offset] = a.commit
	}
	missing := len(acks)
	for id, expected := range byPartition {
		for e, err := range store.PLog(ctx, id, 1) {
			if err != nil {
				return missing, err
			}
			commit, ok := expected[e.PLogOffset]
			if !ok {
				continue
			}
			if _, c, err := decodeCommit(e.Body); err == nil && c.ID == commit {
				missing--
			}
		}
	}
	return missing, nil
}

// comparison is how the log compares with the history that it was made of.
type comparison struct {
	// equal counts the events that are the history's, in each author's order, with
	// the numbers that they must have.
	equal uint64
	// wrong counts the others, and first says what is wrong with the first.
	wrong uint64
	first string
}

// compare reads the log against the history.
func compare(ctx context.Context, store *bolt.Store, commits iter.Seq2[history.Commit, error]) (comparison, error) {
	expected := make(map[messages.WSID][]history.Commit)
	for c, err := range commits {
		if err != nil {
			return comparison{}, err
		}
		ws := messages.WSID(c.Workspace())
		expected[ws] = append(expected[ws], c)
	}
	var result comparison
	nights := make(map[messages.WSID]messages.Number)
	for e, err := range store.Log(ctx, 1) {
		if err != nil {
			return result, err
		}
		if err := compareEvent(&e, expected[e.Workspace], nights); err != nil {
			result.wrong++
			if result.first == "" {
				result.first = fmt.Sprintf("partition %d, offset %d: %v", e.Partition, e.PLogOffset, err)
			}
			continue
		}
		result.equal++
	}
	return result, nil
}

// compareEvent returns what is wrong with an event of an author who made these
// commits.
func compareEvent(e *messages.Event, made []history.Commit, nights map[messages.WSID]messages.Number) error {
	if e.WLogOffset == 0 || uint64(e.WLogOffset) > uint64(len(made)) {
		return fmt.Errorf("author %010x has %d commits, got number %d", uint64(e.Workspace), len(made), e.WLogOffset)
	}
	want := made[e.WLogOffset-1]
	if string(e.Body) != string(encodeCommit(want, e.WLogOffset)) {
		return fmt.Errorf("commit %d of author %s is not %s", e.WLogOffset, want.Author, want.ID)
	}
	row := messages.InitialCRecordID + messages.Number(e.WLogOffset) - 1
	numbers := []messages.SequenceNumber{{Seq: messages.SeqCRecordID, Number: row}, {Seq: seqCommit, Number: messages.Number(e.WLogOffset)}}
	if want.Night() {
		nights[e.Workspace]++
		numbers = append(numbers, messages.SequenceNumber{Seq: seqNight, Number: nights[e.Workspace]})
	}
	if !slices.Equal(e.Numbers, numbers) {
		return fmt.Errorf("commit %s: got numbers %v, want %v", want.ID, e.Numbers, numbers)
	}
	return nil
}
