package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/partita-go/partita/cmd/internal/cli"
	shared "github.com/partita-go/partita/cmd/internal/console"
	"github.com/partita-go/partita/cmd/internal/human"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
)

func replayCommand() *cobra.Command {
	c := &cobra.Command{Use: "replay --db DIR", Short: "Replay a store's log; its files stay untouched"}
	dir := cli.DB(c)
	fromStart := c.Flags().Bool("from-start", false, "from the start, not from the checkpoint, and check all invariants")
	asJSON := cli.JSON(c)
	c.RunE = cli.Run(func(ctx context.Context, s cli.Streams) error {
		return (&replay{console: newConsole(s, *asJSON), dir: *dir, fromStart: *fromStart}).run(ctx)
	})
	return c
}

// replay reads a store's log, and changes nothing.
type replay struct {
	*console
	dir       string
	fromStart bool

	store     *bolt.Store
	registers []messages.Register
	result    replayResult
}

// replayResult is what a replay has found, in the words of its JSON.
type replayResult struct {
	Command     string            `json:"command"`
	OK          bool              `json:"ok"`
	Store       string            `json:"store"`
	Application string            `json:"application"`
	FromStart   bool              `json:"from_start"`
	Events      number            `json:"events"`
	Replayed    number            `json:"replayed"`
	OpenSeconds seconds           `json:"open_seconds"`
	Seconds     seconds           `json:"seconds"`
	PerSecond   float64           `json:"per_second"`
	Partitions  []replayPartition `json:"partitions"`
	// Check is there after a replay from the start only.
	Check *checkResult `json:"check,omitempty"`
	Bytes fileSizes    `json:"bytes"`
}

type replayPartition struct {
	Partition number `json:"partition"`
	Epoch     number `json:"epoch"`
	Events    number `json:"events"`
	// Checkpoint is the next offset to replay.
	Checkpoint number `json:"checkpoint"`
	Replayed   number `json:"replayed"`
	// Workspaces had an event among those replayed.
	Workspaces number  `json:"workspaces"`
	Seconds    seconds `json:"seconds"`
	PerSecond  float64 `json:"per_second"`
}

func (r *replay) run(ctx context.Context) (err error) {
	begun := time.Now()
	opening := func(p bolt.Progress) { r.Set(int64(p.Done)) }
	if r.store, err = bolt.OpenExisting(ctx, r.dir, bolt.Options{ReadOnly: true, Progress: opening}); err != nil {
		return about(r.dir, err)
	}
	defer func() {
		r.Done()
		err = errors.Join(err, closeStore(r.store))
	}()
	r.result = replayResult{
		Command: "replay", Store: r.dir, Application: r.store.Descriptor().Application, FromStart: r.fromStart,
		OpenSeconds: seconds(time.Since(begun)), Bytes: sizesOf(r.store.Stats()), OK: true,
	}
	if err := r.partitions(ctx); err != nil {
		return about(r.dir, err)
	}
	if r.fromStart {
		if r.result.Check, err = checkInvariants(ctx, r.console, r.store, uint64(r.result.Events)); err != nil {
			return about(r.dir, err)
		}
		r.result.OK = r.result.Check.OK
	}
	if err := r.console.result(r.result, r.tables); err != nil {
		return err
	}
	if !r.result.OK {
		return fmt.Errorf("%s: %w", r.dir, errVerdict)
	}
	return nil
}

// partitions replays one partition after the other.
func (r *replay) partitions(ctx context.Context) error {
	total := uint64(0)
	for id := range r.store.Descriptor().Partitions {
		register, err := r.store.Register(ctx, messages.PartitionID(id))
		if err != nil {
			return err
		}
		r.registers = append(r.registers, register)
		r.result.Events += number(register.Last)
		total += uint64(register.Last + 1 - r.from(register))
	}
	r.introduce(total)
	begun := time.Now()
	if total > 0 {
		r.Phase("   replay", int64(total))
	}
	for id, register := range r.registers {
		if err := r.partition(ctx, messages.PartitionID(id), register); err != nil {
			return err
		}
	}
	r.Done()
	took := time.Since(begun)
	r.result.Seconds, r.result.PerSecond = seconds(took), shared.PerSecond(uint64(r.result.Replayed), took)
	return nil
}

// from returns the first offset to replay.
func (r *replay) from(register messages.Register) messages.PLogOffset {
	if r.fromStart {
		return 1
	}
	return register.Checkpoint
}

// replayed is what a partition's replay has seen. Its memory grows with the
// workspaces of one partition.
type replayed struct {
	events uint64
	// workspaces are the last numbers of each.
	workspaces map[messages.WSID][]messages.SequenceNumber
}

// add does what actualization does with an event: it keeps the last numbers, those of the
// newest period.
func (s *replayed) add(n *messages.Numbering) {
	s.events++
	numbers := s.workspaces[n.Workspace]
	for _, given := range n.Numbers {
		i := slices.IndexFunc(numbers, func(s messages.SequenceNumber) bool { return s.Seq == given.Seq })
		if i < 0 {
			numbers = append(numbers, given)
			continue
		}
		if last := &numbers[i]; given.Period > last.Period || given.Period == last.Period && given.Number > last.Number {
			*last = given
		}
	}
	s.workspaces[n.Workspace] = numbers
}

func (r *replay) partition(ctx context.Context, id messages.PartitionID, register messages.Register) error {
	begun := time.Now()
	seen := replayed{workspaces: make(map[messages.WSID][]messages.SequenceNumber)}
	read := r.tail
	if r.fromStart {
		read = r.whole
	}
	if err := read(ctx, id, register, &seen); err != nil {
		return err
	}
	took := time.Since(begun)
	r.result.Replayed += number(seen.events)
	r.result.Partitions = append(r.result.Partitions, replayPartition{
		Partition: number(id), Epoch: number(register.Epoch), Events: number(register.Last), Checkpoint: number(register.Checkpoint),
		Replayed: number(seen.events), Workspaces: number(len(seen.workspaces)),
		Seconds: seconds(took), PerSecond: shared.PerSecond(seen.events, took),
	})
	return nil
}

// replayStep is how many events are read at a time, and how often progress is shown.
const replayStep = 4096

// tail reads what a recovery reads: the events from the checkpoint on.
func (r *replay) tail(ctx context.Context, id messages.PartitionID, register messages.Register, seen *replayed) error {
	for from := register.Checkpoint; from <= register.Last; {
		events, err := r.store.Tail(ctx, id, from, replayStep)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			return fmt.Errorf("partition %d: the log ends before offset %d, want %d", id, from, register.Last)
		}
		for i := range events {
			seen.add(&events[i])
		}
		from += messages.PLogOffset(len(events))
		r.Add(int64(len(events)))
	}
	return nil
}

// whole reads all of a partition's events, up to the first that is damaged: the
// check tells about that.
func (r *replay) whole(ctx context.Context, id messages.PartitionID, _ messages.Register, seen *replayed) error {
	for e, err := range r.store.PLog(ctx, id, 1) {
		switch {
		case errors.Is(err, storage.ErrDamaged):
			return nil
		case err != nil:
			return err
		}
		n := e.Numbering()
		seen.add(&n)
		if seen.events%replayStep == 0 {
			r.Add(replayStep)
		}
	}
	r.Add(int64(seen.events % replayStep))
	return nil
}

// introduce says what store it is.
func (r *replay) introduce(total uint64) {
	d := r.store.Descriptor()
	where := "from the checkpoints"
	if r.fromStart {
		where = "from the start"
	}
	r.Say("%s: application %q, %d partitions", r.dir, d.Application, d.Partitions)
	r.Say("log.db %v, state.db %v", human.Bytes(r.result.Bytes.Log), human.Bytes(r.result.Bytes.State))
	r.Tell("", "%s of %s events are to be replayed %s.", human.Count(total), human.Count(r.result.Events), where)
}
