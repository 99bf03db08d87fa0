package tests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/tests/internal/delivered"
)

// childEnv holds a childConfig. If it is set, the test binary is a child process.
const childEnv = "PARTITA_TEST_CHILD"

// journalFD is the pipe to the parent, the first of exec.Cmd.ExtraFiles.
const journalFD = 3

// childConfig says what a child process does.
type childConfig struct {
	Dir        string
	Partitions uint32
	Workspaces uint64
	// Seed makes what the clients do reproducible, but not in which order.
	Seed                uint64
	Clients, Processors int
	// Appenders and Drafters are the clients that append, and the command processors
	// that do.
	Appenders, Drafters int
	// StopAfter is after how many acknowledgements the child stops cleanly. Zero
	// means never.
	StopAfter  int64
	Settings   partition.Settings
	TailEvents int
	// Memory is that of the store, 0 for the default.
	Memory int64
	// Suffers says that the store's files fail: the child ends when nothing more is to be
	// had of it.
	Suffers bool
	// Subscribes says that subscriptions deliver what is written.
	Subscribes bool
	// Generators is how many numbers of generators of ids the child takes.
	Generators int
	// Keeps says that the child only keeps a subscription: it deploys nothing.
	Keeps bool
	// Pause is a phase behind which the child waits for its standard input to end, and then changes its
	// working directory to Chdir, if that is set.
	Pause, Chdir string
}

// entry is one line of the journal.
type entry struct {
	// Phase says how far the child is.
	Phase string `json:",omitempty"`
	// Each of these is 1 when something begins, and -1 when it has ended: a flush; a batch in
	// the handler's hands, and the storing of its position, in one lane; a pause.
	Flushing, Delivering, Storing, Holding int `json:",omitempty"`
	// Acked is an event that was acknowledged.
	Acked *acked `json:",omitempty"`
	// Refused are the bodies of events of which nothing may be left.
	Refused []string `json:",omitempty"`
	// Begun is an append that is under way: unless it is answered, it is wholly there
	// or not at all.
	Begun *begun `json:",omitempty"`
	// Appended is what the answer to an append promised, for each of its events.
	Appended []*acked `json:",omitempty"`
	// Trouble is an error that must not happen.
	Trouble string `json:",omitempty"`
	// Subscribed is a subscription that is durable, Called a call of its handler that has
	// returned, Changed a change of where it stands.
	Subscribed string            `json:",omitempty"`
	Called     *delivered.Call   `json:",omitempty"`
	Changed    *delivered.Change `json:",omitempty"`
	// Generator is the number of a generator of ids.
	Generator uint32 `json:",omitempty"`
}

// underWay reports whether an entry says that something begins or has ended.
func (e *entry) underWay() bool {
	return e.Flushing != 0 || e.Delivering != 0 || e.Storing != 0 || e.Holding != 0
}

// acked is what an acknowledgement promised.
type acked struct {
	Partition  messages.PartitionID
	PLogOffset messages.PLogOffset
	Workspace  messages.WSID
	WLogOffset messages.WLogOffset
	At         messages.Timestamp
	Numbers    []messages.SequenceNumber
	// Brought and Moves are what it has taken over.
	Brought uint32
	Moves   []messages.SequenceNumber
	Body    string
	// Records are the ids of the records created, each with the body as its data.
	Records []messages.RecordID
}

// journal is where clients note what they were promised.
type journal interface{ write(e entry) }

// pipe writes lines to the parent. One write is one line, which a pipe takes whole
// or not at all.
type pipe struct{ pipe *os.File }

func (j pipe) write(e entry) {
	line, err := json.Marshal(e)
	if err == nil {
		_, err = j.pipe.Write(append(line, '\n'))
	}
	if err != nil {
		panic(err)
	}
}

// flushes journals when flushes begin and end.
type flushes struct{ journal journal }

func (flushes) Posted(actors.Key, any) {}

func (f flushes) Taken(_ actors.Key, message any) { f.tell(message, 1) }

func (f flushes) Handled(_ actors.Key, message any) { f.tell(message, -1) }

func (f flushes) tell(message any, change int) {
	if _, ok := message.(*messages.WriteProjections); ok {
		f.journal.write(entry{Flushing: change})
	}
}

// watchers are two observers.
type watchers struct {
	flushes
	deliveries
}

func (watchers) Posted(actors.Key, any) {}

func (w watchers) Taken(key actors.Key, message any) {
	w.flushes.Taken(key, message)
	w.deliveries.Taken(key, message)
}

func (w watchers) Handled(key actors.Key, message any) {
	w.flushes.Handled(key, message)
	w.deliveries.Handled(key, message)
}

// kept is the phase in which positions are durable of a store that is only read.
const kept = "kept"

func (c *child) phase(p string) {
	c.journal.write(entry{Phase: p})
	if p != c.Pause {
		return
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	if err == nil && c.Chdir != "" {
		err = os.Chdir(c.Chdir)
	}
	if err != nil {
		panic(err)
	}
}

// runChild is the main function of a child process. It returns the exit code.
func runChild(config string) int {
	var c childConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	child := &child{childConfig: c, journal: pipe{os.NewFile(journalFD, "journal")}}
	if c.Suffers {
		child.tolerates = tolerated
	}
	switch err := child.run(context.Background()); {
	case err == nil:
		return 0
	case c.Suffers && endures(err):
		child.phase("has suffered")
		return 0
	default:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
}

// endures reports whether an error is what a failing file may end a child with.
func endures(err error) bool {
	for _, expected := range []error{messages.ErrOutcomeUnknown, partition.ErrNotClean, syscall.EIO, syscall.ENOSPC} {
		if errors.Is(err, expected) {
			return true
		}
	}
	return tolerated(err)
}

type child struct {
	childConfig
	journal journal
	app     *partition.App
	readers *readers
	store   storage.Store
	acks    atomic.Int64
	// pains counts what faults of the files have done to the clients.
	pains atomic.Int64
	stop  context.CancelFunc
	// tolerates says which errors more than the usual ones may happen. Nil means none.
	tolerates func(error) bool
}

func (c *child) run(ctx context.Context) error {
	c.phase("opening")
	if c.Keeps {
		return c.keep(ctx)
	}
	descriptor := shop(c.Partitions)
	store, err := bolt.Open(ctx, c.Dir, descriptor, bolt.Options{
		Create:     true,
		TailEvents: c.TailEvents,
		Memory:     c.Memory,
		Progress:   func(p bolt.Progress) { c.phase(p.Phase.String()) },
	})
	if err != nil {
		return err
	}
	c.phase("opened")
	parts := partition.NewAppParts(system, partition.Options{Observer: watchers{flushes{c.journal}, deliveries{c.journal}}})
	c.app, err = parts.Deploy(ctx, partition.Application{WorkspaceZero: true, Descriptor: descriptor, Settings: c.Settings}, store)
	if err != nil {
		return err
	}
	err = c.app.Ready(ctx)
	c.readers = &readers{app: c.app, journal: c.journal}
	if err == nil && c.Subscribes {
		err = c.readers.subscribe(ctx)
	}
	if err != nil {
		return errors.Join(err, parts.Close(ctx), store.Close(ctx))
	}
	c.phase("ready")
	c.store = store
	if err := c.load(ctx); err != nil {
		return err
	}
	c.phase("stopping")
	if err := errors.Join(parts.Close(ctx), store.Close(ctx)); err != nil {
		return err
	}
	c.phase("stopped")
	return nil
}

// keep changes a subscription, and says so.
func (c *child) keep(ctx context.Context) error {
	store, err := bolt.OpenExisting(ctx, c.Dir, bolt.Options{})
	if err != nil {
		return err
	}
	if err := store.PutSubscription(ctx, storage.Subscription{Name: "kept"}); err != nil {
		return err
	}
	c.phase(kept)
	return store.Close(ctx)
}

// load runs all clients until enough is acknowledged.
func (c *child) load(ctx context.Context) error {
	ctx, c.stop = context.WithCancel(ctx)
	defer c.stop()
	if c.Suffers {
		go c.stopWithStore(ctx)
	}
	if err := c.work(ctx); err != nil || c.StopAfter == 0 || c.Suffers {
		return err
	}
	return c.settle()
}

// work runs all clients until ctx ends.
func (c *child) work(ctx context.Context) error {
	var all sync.WaitGroup
	for i := range c.Processors {
		p, err := c.app.SpawnCommandProcessor(recordBody)
		if err != nil {
			return err
		}
		all.Go(func() { c.repeat(ctx, uint64(i), func(b *client) { b.command(ctx, p) }) })
	}
	for i := range c.Clients {
		all.Go(func() { c.repeat(ctx, uint64(1000+i), func(b *client) { b.transaction(ctx) }) })
	}
	for i := range c.Appenders {
		all.Go(func() { c.repeat(ctx, uint64(2000+i), func(b *client) { b.append(ctx) }) })
	}
	for i := range c.Drafters {
		p, err := c.app.SpawnAppendProcessor(draftBody)
		if err != nil {
			return err
		}
		all.Go(func() { c.repeat(ctx, uint64(3000+i), func(b *client) { b.draft(ctx, p) }) })
	}
	if c.Subscribes && !c.Suffers { // a batch that could not be stored is delivered again after a pause
		all.Go(func() { c.readers.operate(ctx, rand.New(rand.NewPCG(c.Seed, 4000))) })
	}
	all.Go(func() { c.takeGenerators(ctx) })
	all.Wait()
	return nil
}

// generatorLaunch is the launch of all generators.
const generatorLaunch = 7

// takeGenerators takes the numbers of generators.
func (c *child) takeGenerators(ctx context.Context) {
	for range c.Generators {
		n, err := c.store.(ids.GeneratorCounter).NextGenerator(ctx, generatorLaunch)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			c.journal.write(entry{Trouble: "generator: " + err.Error()})
			return
		}
		c.journal.write(entry{Generator: n})
	}
}

// settle waits until every partition has handled what the clients left behind when
// they were stopped: a partition that replays its tail does not stop cleanly.
func (c *child) settle() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for p := range messages.PartitionID(c.Partitions) {
		sequencer, err := c.app.Sequencer(p)
		if err != nil {
			return err
		}
		tx, err := sequencer.Start(ctx, kindShop, messages.WSID(p))
		for errors.Is(err, messages.ErrBusy) {
			if err := c.app.Ready(ctx); err != nil {
				return err
			}
			tx, err = sequencer.Start(ctx, kindShop, messages.WSID(p))
		}
		if err != nil {
			return err
		}
		if err := tx.Cancel(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (c *child) repeat(ctx context.Context, id uint64, once func(*client)) {
	b := &client{child: c, id: id, random: rand.New(rand.NewPCG(c.Seed, id))}
	for ctx.Err() == nil {
		b.count++
		once(b)
	}
}

// recordBody is the handler of the command processors: it gives one number and
// stores the body under each of the command's raw ids.
func recordBody(ctx context.Context, c *partition.CommandContext) error {
	if _, err := c.Next(ctx, seqReceipt); err != nil {
		return err
	}
	for _, raw := range c.Command().RawRecords {
		id, err := c.ID(raw.ID)
		if err != nil {
			return err
		}
		if err := c.Insert(ctx, id, c.Command().Body); err != nil {
			return err
		}
	}
	return nil
}
