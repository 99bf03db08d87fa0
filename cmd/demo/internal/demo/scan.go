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

// scan is what reading the whole log has found.
type scan struct {
	events uint64
	// last is how many commits of each author are in the log.
	last map[messages.WSID]messages.WLogOffset
	took time.Duration
}

// scanAuthors does what a program without projections does when it starts: it
// reads the whole log to know the last numbers.
func scanAuthors(ctx context.Context, store *bolt.Store) (scan, error) {
	started := time.Now()
	s := scan{last: make(map[messages.WSID]messages.WLogOffset)}
	for e, err := range store.Log(ctx, 1) {
		if err != nil {
			return s, err
		}
		s.events++
		s.last[e.Workspace] = max(s.last[e.Workspace], e.WLogOffset)
	}
	s.took = time.Since(started)
	return s, nil
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
	// periods are the days and years of each author, and how many of the events they have.
	periods periods
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
	result := comparison{periods: make(periods)}
	nights := make(map[messages.WSID]messages.Number)
	for e, err := range store.Log(ctx, 1) {
		if err != nil {
			return result, err
		}
		if err := compareEvent(&e, expected[e.Workspace], nights, result.periods); err != nil {
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
// commits. It counts what is right.
func compareEvent(e *messages.Event, made []history.Commit, nights map[messages.WSID]messages.Number, counted periods) error {
	if e.WLogOffset == 0 || uint64(e.WLogOffset) > uint64(len(made)) {
		return fmt.Errorf("author %010x has %d commits, got number %d", uint64(e.Workspace), len(made), e.WLogOffset)
	}
	want := made[e.WLogOffset-1]
	if string(e.Body) != string(encodeCommit(want, e.WLogOffset)) {
		return fmt.Errorf("commit %d of author %s is not %s", e.WLogOffset, want.Author, want.ID)
	}
	row := messages.InitialCRecordID + messages.Number(e.WLogOffset) - 1
	date := want.Date()
	numbers := []messages.SequenceNumber{
		{Seq: messages.SeqCRecordID, Number: row}, {Seq: seqCommit, Number: messages.Number(e.WLogOffset)},
		counted.next(e.Workspace, seqDay, date), counted.next(e.Workspace, seqYear, firstOfYear(date)),
	}
	if want.Night() {
		nights[e.Workspace]++
		numbers = append(numbers, messages.SequenceNumber{Seq: seqNight, Number: nights[e.Workspace]})
	}
	if e.Date != date {
		return fmt.Errorf("commit %s: got business date %v, want %v", want.ID, e.Date, date)
	}
	if !slices.Equal(e.Numbers, numbers) {
		return fmt.Errorf("commit %s: got numbers %v, want %v", want.ID, e.Numbers, numbers)
	}
	return nil
}
