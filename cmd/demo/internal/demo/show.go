package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/partita-go/partita/cmd/internal/cli"
	shared "github.com/partita-go/partita/cmd/internal/console"
	"github.com/partita-go/partita/cmd/internal/human"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt"
)

func showCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "demo [COMMAND]", Short: "Show what partita does, with real data and a real crash",
		Long: `Demo shows what partita does, with real data and a real crash: it runs the
history of 20 projects as commands, kills the process in the middle, recovers,
finishes, and checks. A store of --db that is unfinished is continued.`,
	}
	var w work
	w.flags(c.Flags())
	keep := c.Flags().Bool("keep", false, "keep the temporary store")
	asJSON := cli.JSON(c)
	c.RunE = cli.Run(func(ctx context.Context, s cli.Streams) (err error) {
		if err := w.check(); err != nil {
			return err
		}
		p, end, err := findPlace(w.dir, *keep)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, end()) }()
		w.dir = p.dir
		return (&show{work: w, place: p, console: newConsole(s, *asJSON)}).run(ctx)
	})
	return c
}

// show is the main show.
type show struct {
	work
	place
	*console
	result showResult
}

// run shows everything. The store is closed, and nothing is left running, when it
// returns.
func (s *show) run(ctx context.Context) error {
	facts, err := readHistory(s.commits)
	if err != nil {
		return err
	}
	s.result = showResult{
		Command: "demo", Store: s.work.dir, Kept: !s.temporary, Processors: s.processors,
		Commits: number(facts.commits), Authors: number(len(facts.authors)), Nights: number(facts.nights),
	}
	found, err := s.look(ctx)
	if err != nil {
		return err
	}
	s.introduce(facts, found)
	if left := facts.commits - int(min(found, uint64(facts.commits))); left > 0 {
		err = s.crashAndFinish(ctx, found, left)
	} else {
		s.Say("")
		s.Tell("", "It has them all, so there is nothing to run.")
	}
	if err == nil {
		err = s.finale(ctx)
	}
	if err != nil {
		s.Done()
		return err
	}
	if err := s.console.result(s.result, s.tables); err != nil {
		return err
	}
	return s.verdict()
}

// verdict returns an error unless everything is as it must be.
func (s *show) verdict() error {
	switch {
	case s.result.Crash != nil && s.result.Crash.Lost > 0:
		return fmt.Errorf("%s: %d acknowledged commits are lost", s.work.dir, s.result.Crash.Lost)
	case !s.result.OK:
		return fmt.Errorf("%s: %w", s.work.dir, errVerdict)
	}
	return nil
}

// introduce says what it is all about.
func (s *show) introduce(facts historyFacts, found uint64) {
	s.Tell("", `%s commits of %d public projects, by %s authors. Each commit runs as a command. Its author is a workspace
		with five sequences: the author's commit number, one that restarts each day and one each year by the author's
		clock, the number of commits made at night (22:00 to 05:59), and a record id. %d partitions, %d command processors, store in %s`,
		human.Count(facts.commits), len(facts.repositories), human.Count(len(facts.authors)), s.partitions, s.processors, s.work.dir)
	if found > 0 {
		s.Tell("", "The store has %s of the commits already.", human.Count(found))
	}
}

// step begins a step of the show.
func (s *show) step(number int, text string) {
	s.Say("")
	s.Tell(fmt.Sprintf("%d. ", number), "%s", text)
}

// look makes the store, or opens the one that is there, and returns how many
// events it has.
func (s *show) look(ctx context.Context) (uint64, error) {
	store, err := openStore(ctx, s.work.dir, s.descriptor(), bolt.Options{Create: true})
	if err != nil {
		return 0, err
	}
	events := uint64(store.Stats().Events)
	return events, closeStore(store)
}

func (s *show) crashAndFinish(ctx context.Context, found uint64, left int) error {
	target := max(left/2, 1)
	s.step(1, "A child process begins. At half of the work it gets SIGKILL, without a warning.")
	s.Phase("   commits", int64(left))
	crash, err := killAfter(ctx, s.args(), target, func(done int) { s.Set(int64(done)) })
	if err != nil {
		return err
	}
	s.Done()
	s.Tell("   ", "Process %d is dead. It had acknowledged %s commits.", crash.pid, human.Count(len(crash.acks)))
	s.step(2, "Another process opens the store again.")
	running, err := deploy(ctx, s.work.dir, s.descriptor(), bolt.Options{})
	if err != nil {
		return err
	}
	scanned, err := s.recovered(ctx, running, crash, found)
	if err == nil {
		err = s.finish(ctx, running, scanned, left-int(scanned.events-found))
	}
	return errors.Join(err, running.stop())
}

// recovered tells what a start after the crash was like, and what is in the log.
func (s *show) recovered(ctx context.Context, running *deployment, crash crash, found uint64) (scan, error) {
	for _, status := range running.app.Status() {
		s.result.Partitions = append(s.result.Partitions, partitionResult{
			Partition: number(status.Partition), AtCrash: number(status.Last), Replayed: number(status.Replayed),
			Checkpoint: number(uint64(status.Last) - status.Replayed + 1),
		})
	}
	scanned, err := scanAuthors(ctx, running.store)
	if err != nil {
		return scanned, err
	}
	missing, err := lost(ctx, running.store, crash.acks)
	if err != nil {
		return scanned, err
	}
	inLog := scanned.events - found
	r := &crashResult{
		PID: crash.pid, Acknowledged: number(len(crash.acks)), InLog: number(inLog), Lost: number(missing),
		Seconds: seconds(crash.took), Recovery: started(running),
	}
	r.Recovery.Events, r.Recovery.ScanSeconds = number(scanned.events), seconds(scanned.took)
	if extra := int64(inLog) - int64(len(crash.acks)); extra > 0 {
		r.NotTold = number(extra)
	}
	s.result.Crash = r
	s.Tell("   ", `Ready after %s: %s of the log's %s events were replayed, those since the last checkpoints.
		Of the acknowledged commits, %s are missing.`, human.Duration(r.Recovery.total()), human.Count(r.Recovery.Replayed),
		human.Count(r.Recovery.Events), human.Count(missing))
	if r.NotTold > 0 {
		s.Tell("   ", "%s more are durable: the process died before it could say so.", human.Count(r.NotTold))
	}
	return scanned, nil
}

// started returns what the start of an application was like.
func started(running *deployment) startResult {
	return startResult{
		Replayed: number(running.replayed()), OpenSeconds: seconds(running.opened), ReadySeconds: seconds(running.ready),
	}
}

// finish runs what is not in the log yet.
func (s *show) finish(ctx context.Context, running *deployment, scanned scan, left int) error {
	s.step(3, "It runs the rest: exactly the commits that the log lacks.")
	begun := time.Now()
	if left > 0 {
		s.Phase("   commits", int64(left))
	}
	err := feed(ctx, running.app, s.processors, limited(s.commits), scanned.last, func(ack) { s.Add(1) })
	if err != nil {
		return about(s.work.dir, err)
	}
	s.Done()
	took := time.Since(begun)
	s.result.Finish = &feedResult{Commits: number(left), Seconds: seconds(took), PerSecond: shared.PerSecond(uint64(left), took)}
	return running.stop()
}

// finale opens the store once more, after a clean stop, and checks everything.
func (s *show) finale(ctx context.Context) error {
	s.step(4, "After a clean stop it is opened once more, and everything is checked.")
	running, err := deploy(ctx, s.work.dir, s.descriptor(), bolt.Options{})
	if err != nil {
		return err
	}
	clean := started(running)
	s.Tell("   ", "Ready after %s: %s events were replayed.", human.Duration(clean.total()), human.Count(clean.Replayed))
	err = running.undeploy()
	if err == nil {
		err = s.examine(ctx, running, clean)
	}
	return errors.Join(err, running.stop())
}

// examine reads the store, which is at rest, from the start.
func (s *show) examine(ctx context.Context, running *deployment, clean startResult) error {
	scanned, err := scanAuthors(ctx, running.store)
	if err != nil {
		return about(s.work.dir, err)
	}
	clean.Events, clean.ScanSeconds = number(scanned.events), seconds(scanned.took)
	s.result.CleanStart = &clean
	same, err := compare(ctx, running.store, limited(s.commits))
	if err != nil {
		return about(s.work.dir, err)
	}
	s.result.History = historyResult{Equal: number(same.equal), Wrong: number(same.wrong), First: same.first}
	s.result.Busiest, s.result.All = same.periods.busiest(s.descriptor())
	if s.result.Check, err = checkInvariants(ctx, s.console, running.store, scanned.events); err != nil {
		return about(s.work.dir, err)
	}
	s.result.Bytes = sizesOf(running.store.Stats())
	s.result.OK = s.result.Check.OK && s.result.complete()
	return s.countPartitions(ctx, running, scanned)
}

// countPartitions adds to each partition's facts what the log holds now.
func (s *show) countPartitions(ctx context.Context, running *deployment, scanned scan) error {
	if len(s.result.Partitions) == 0 {
		s.result.Partitions = make([]partitionResult, s.partitions)
	}
	for i := range s.result.Partitions {
		p := &s.result.Partitions[i]
		p.Partition = number(i)
		register, err := running.store.Register(ctx, messages.PartitionID(i))
		if err != nil {
			return about(s.work.dir, err)
		}
		p.Events = number(register.Last)
	}
	for ws := range scanned.last {
		s.result.Partitions[messages.PartitionOf(ws, uint32(s.partitions))].Authors++
	}
	return nil
}
