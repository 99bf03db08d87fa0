package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/partita-go/partita/cmd/internal/cli"
	shared "github.com/partita-go/partita/cmd/internal/console"
	"github.com/partita-go/partita/cmd/internal/human"
	"github.com/partita-go/partita/storage/bolt"
)

func outboxCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "outbox", Short: "Deliver the history by subscriptions, through kills",
		Long: `Deliver the history to a file and to a copy of each log, by subscriptions, and
kill the process in the middle. With --db the store must be a new one; the file
outbox.txt is in its directory.`,
	}
	var w outboxWork
	w.flags(c.Flags())
	kills := c.Flags().Int("kills", 3, "kill it `N` times")
	asJSON := cli.JSON(c)
	c.RunE = cli.Run(func(ctx context.Context, s cli.Streams) (err error) {
		if err := errors.Join(w.check(), cli.InRange("kills", *kills, 0, 1000)); err != nil {
			return err
		}
		p, end, err := findPlace(w.dir, false)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, end()) }()
		w.dir = p.dir
		return (&outbox{outboxWork: w, place: p, console: newConsole(s, *asJSON), kills: *kills}).run(ctx)
	})
	return c
}

// outbox shows a history that is delivered by subscriptions, by processes that are killed.
type outbox struct {
	outboxWork
	place
	*console
	kills  int
	ends   []int64 // how long the file was after each process
	result outboxResult
}

// outboxResult is what it has come to, in the words of its JSON.
type outboxResult struct {
	Command string      `json:"command"`
	OK      bool        `json:"ok"`
	Store   string      `json:"store"`
	Kept    bool        `json:"kept"`
	Commits number      `json:"commits"`
	Batch   int         `json:"batch"`
	Write   *feedResult `json:"write"`
	// Processes are those that were killed, and the last one.
	Processes []processResult `json:"processes"`
	File      *fileResult     `json:"file"`
	Copies    *copiesResult   `json:"copies"`
	Check     *checkResult    `json:"check"`
}

// processResult is about one process that delivers.
type processResult struct {
	PID    int  `json:"pid"`
	Killed bool `json:"killed"`
	// Told are the deliveries that it told of, lines and copies.
	Told number `json:"told"`
	// Lines are those that it has written, Again those which were there already.
	Lines number  `json:"lines"`
	Again number  `json:"repeated"`
	Most  number  `json:"most_repeated_of_a_log"`
	Took  seconds `json:"seconds"`
}

// run shows everything. The store is closed, and nothing is left running, when it returns.
func (o *outbox) run(ctx context.Context) error {
	facts, err := readHistory(o.commits)
	if err != nil {
		return err
	}
	o.result = outboxResult{
		Command: "outbox", Store: o.work.dir, Kept: !o.temporary, Commits: number(facts.commits), Batch: o.batch,
	}
	if err := o.isNew(); err != nil {
		return err
	}
	o.Tell("", `%s commits become events of %d partitions. Two subscriptions deliver them, each log in batches of %d:
		one writes a line of a file for each event, and one appends a copy to the same store, with the deduplication id of
		the delivery. Store and file in %s`, human.Count(facts.commits), o.partitions, o.batch, o.work.dir)
	for _, step := range []func(context.Context) error{o.write, o.crash, o.finish, o.examine} {
		if err := step(ctx); err != nil {
			o.Done()
			return err
		}
	}
	if err := o.console.result(o.result, o.tables); err != nil {
		return err
	}
	if !o.result.OK {
		return fmt.Errorf("%s: %w", o.work.dir, errOutbox)
	}
	return nil
}

var errOutbox = errors.New("what was delivered is not what the subscriptions promise")

// isNew makes sure that nothing was delivered before: it could not be judged.
func (o *outbox) isNew() error {
	entries, err := os.ReadDir(o.work.dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return about(o.work.dir, err)
	case len(entries) > 0:
		return fmt.Errorf("%s: it is not empty, and the outbox wants a new store", o.work.dir)
	}
	return nil
}

// step begins a step of the show.
func (o *outbox) step(n int, text string) {
	o.Say("")
	o.Tell(fmt.Sprintf("%d. ", n), "%s", text)
}

// write writes the history to the log.
func (o *outbox) write(ctx context.Context) error {
	o.step(1, "The history is written.")
	running, err := deploy(ctx, o.work.dir, o.descriptor(), bolt.Options{Create: true})
	if err != nil {
		return err
	}
	o.Phase("   commits", int64(o.result.Commits))
	begun := time.Now()
	if err = feed(ctx, running.app, o.processors, limited(o.commits), nil, func(ack) { o.Add(1) }); err == nil {
		o.Done()
		took := time.Since(begun)
		o.result.Write = &feedResult{Commits: o.result.Commits, Seconds: seconds(took), PerSecond: shared.PerSecond(uint64(o.result.Commits), took)}
	}
	return errors.Join(err, running.stop())
}

// crash lets children deliver, and kills each of them in the middle of it.
func (o *outbox) crash(ctx context.Context) error {
	if o.kills == 0 {
		return nil
	}
	o.step(2, "Child processes deliver it, one after the other. Each gets SIGKILL in the middle, without a warning.")
	o.target = max(2*int(o.result.Commits)/(o.kills+1), 1) // each event is delivered twice
	for range o.kills {
		o.Phase("   deliveries", int64(o.target))
		died, err := killAfter(ctx, o.args(), o.target, func(done int) { o.Set(int64(min(done, o.target))) })
		finished := errors.Is(err, errEarly)
		if err != nil && !finished {
			return err
		}
		o.Done()
		if err := o.ended(processResult{PID: died.pid, Killed: !finished, Told: number(len(died.acks)), Took: seconds(died.took)}); err != nil {
			return err
		}
		if finished {
			return nil // there is nothing left to be killed in
		}
		o.Tell("   ", "Process %d is dead. It had told of %s deliveries.", died.pid, human.Count(len(died.acks)))
	}
	return nil
}

// ended notes where the file ends when a process has.
func (o *outbox) ended(p processResult) error {
	info, err := os.Stat(filepath.Join(o.work.dir, outboxFile))
	if err != nil {
		return err
	}
	o.ends = append(o.ends, info.Size())
	o.result.Processes = append(o.result.Processes, p)
	return nil
}

// finish delivers the rest.
func (o *outbox) finish(ctx context.Context) error {
	o.step(3, "This process opens the store and delivers the rest.")
	running, err := deploy(ctx, o.work.dir, o.descriptor(), bolt.Options{})
	if err != nil {
		return err
	}
	o.Phase("   deliveries", 0)
	begun, told := time.Now(), 0
	err = o.deliver(ctx, running, func(_ []byte, events int) error {
		told += events
		o.Add(int64(events))
		return nil
	})
	o.Done()
	if err := errors.Join(err, running.stop()); err != nil {
		return about(o.work.dir, err)
	}
	o.Tell("   ", "%s deliveries were left, or made again.", human.Count(told))
	return o.ended(processResult{PID: os.Getpid(), Told: number(told), Took: seconds(time.Since(begun))})
}
