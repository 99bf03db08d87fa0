package demo

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/partita-go/partita/cmd/demo/internal/history"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// ack says that a commit is durable, and where.
type ack struct {
	partition messages.PartitionID
	offset    messages.PLogOffset
	// commit is the commit's id.
	commit string
}

// feedQueue is how many commits may wait for one command processor.
const feedQueue = 512

// job is an author's nth commit.
type job struct {
	commit history.Commit
	n      messages.WLogOffset
}

// feed runs commits as commands, except the first ones of each author that are
// done already, and returns when all are durable, or one cannot be. Each author
// has a fixed command processor, so that an author's commits stay in order.
// acked is called by many goroutines, once for each commit.
func feed(ctx context.Context, app *partition.App, processors int, commits iter.Seq2[history.Commit, error],
	done map[messages.WSID]messages.WLogOffset, acked func(ack)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queues := make([]chan job, processors)
	var running sync.WaitGroup
	for i := range queues {
		processor, err := app.SpawnCommandProcessor(addCommit)
		if err != nil {
			cancel(err)
			break
		}
		queue := make(chan job, feedQueue)
		queues[i] = queue
		running.Go(func() {
			for j := range queue {
				if err := runJob(ctx, processor, j, acked); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	if ctx.Err() == nil {
		if err := distribute(ctx, commits, done, queues); err != nil {
			cancel(err)
		}
	}
	for _, queue := range queues {
		if queue != nil {
			close(queue)
		}
	}
	running.Wait()
	return context.Cause(ctx)
}

// distribute hands each commit to its author's command processor.
func distribute(ctx context.Context, commits iter.Seq2[history.Commit, error],
	done map[messages.WSID]messages.WLogOffset, queues []chan job) error {
	seen := make(map[messages.WSID]messages.WLogOffset)
	for commit, err := range commits {
		if err != nil {
			return err
		}
		author := messages.WSID(commit.Workspace())
		seen[author]++
		if seen[author] <= done[author] {
			continue
		}
		select {
		case queues[processorOf(author, len(queues))] <- job{commit, seen[author]}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// processorOf spreads the authors of each partition over the processors.
func processorOf(author messages.WSID, processors int) int {
	return int(uint64(author) * 0x9e3779b97f4a7c15 >> 32 % uint64(processors))
}

// runJob runs one command. It is sent again until it is known to be durable: the
// handler refuses it then if an earlier try did it.
func runJob(ctx context.Context, p *partition.CommandProcessor, j job, acked func(ack)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	command := commandOf(j.commit, j.n)
	got := ack{commit: j.commit.ID}
	_, err := retry(ctx, refusedOrUnknown, func() error {
		done, err := p.Execute(ctx, command)
		if err == nil {
			got.partition, got.offset = done.Partition, done.PLogOffset
		}
		return err
	})
	if err != nil && !errors.Is(err, errRepeated) {
		return fmt.Errorf("commit %s, number %d of author %s: %w", j.commit.ID, j.n, j.commit.Author, err)
	}
	acked(got)
	return nil
}

// limited returns the first n commits, all if n is 0.
func limited(n int) iter.Seq2[history.Commit, error] {
	if n == 0 {
		return history.Commits()
	}
	return func(yield func(history.Commit, error) bool) {
		left := n
		for c, err := range history.Commits() {
			if left == 0 || !yield(c, err) {
				return
			}
			left--
		}
	}
}
