package tests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
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
}

// entry is one line of the journal.
type entry struct {
	// Phase says how far the child is.
	Phase string `json:",omitempty"`
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
}

// acked is what an acknowledgement promised.
type acked struct {
	Partition  messages.PartitionID
	PLogOffset messages.PLogOffset
	Workspace  messages.WSID
	WLogOffset messages.WLogOffset
	At         messages.Timestamp
	Numbers    []messages.SequenceNumber
	Body       string
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

func (c *child) phase(p string) { c.journal.write(entry{Phase: p}) }

// runChild is the main function of a child process. It returns the exit code.
func runChild(config string) int {
	var c childConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	child := &child{childConfig: c, journal: pipe{os.NewFile(journalFD, "journal")}}
	if err := child.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

type child struct {
	childConfig
	journal journal
	app     *partition.App
	acks    atomic.Int64
	stop    context.CancelFunc
	// tolerates says which errors more than the usual ones may happen. Nil means none.
	tolerates func(error) bool
}

func (c *child) run(ctx context.Context) error {
	descriptor := shop(c.Partitions)
	c.phase("opening")
	store, err := bolt.Open(ctx, c.Dir, descriptor, bolt.Options{
		TailEvents: c.TailEvents,
		Progress:   func(p bolt.Progress) { c.phase(p.Phase.String()) },
	})
	if err != nil {
		return err
	}
	c.phase("opened")
	parts := partition.NewAppParts(system, partition.Options{})
	c.app, err = parts.Deploy(ctx, partition.Application{Descriptor: descriptor, Settings: c.Settings}, store)
	if err != nil {
		return err
	}
	if err := c.app.Ready(ctx); err != nil {
		return err
	}
	c.phase("ready")
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

// load runs all clients until enough is acknowledged.
func (c *child) load(ctx context.Context) error {
	ctx, c.stop = context.WithCancel(ctx)
	defer c.stop()
	if err := c.work(ctx); err != nil || c.StopAfter == 0 {
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
	all.Wait()
	return nil
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

// client is one goroutine's share of the load.
type client struct {
	*child
	id     uint64
	count  int
	random *rand.Rand
	// named is the last append that had a deduplication id and was answered, doubtful
	// are those of which nobody knows.
	named    *begun
	doubtful []*begun
}

func (b *client) workspace() messages.WSID { return messages.WSID(b.random.Uint64N(b.Workspaces)) }

// body is unique.
func (b *client) body() string { return fmt.Sprintf("%x-%d-%d", b.Seed, b.id, b.count) }

// limited gives some requests a deadline that passes at a random moment.
func (b *client) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if b.random.IntN(20) > 0 {
		return context.WithTimeout(ctx, time.Minute)
	}
	return context.WithTimeout(ctx, time.Duration(b.random.Int64N(int64(3*time.Millisecond))))
}

func (b *client) command(ctx context.Context, p *partition.CommandProcessor) {
	ctx, cancel := b.limited(ctx)
	defer cancel()
	c := messages.Command{Workspace: b.workspace(), Kind: kindShop, Body: []byte(b.body())}
	for i := range b.random.IntN(3) {
		c.RawRecords = append(c.RawRecords, messages.RawRecord{ID: messages.RawID(i + 1)})
	}
	done, err := p.Execute(ctx, c)
	if err != nil {
		b.failed(ctx, err)
		return
	}
	a := &acked{
		Partition: done.Partition, PLogOffset: done.PLogOffset, Workspace: c.Workspace, WLogOffset: done.WLogOffset,
		At: done.RegisteredAt, Numbers: done.Numbers, Body: string(c.Body),
	}
	for _, raw := range c.RawRecords {
		a.Records = append(a.Records, done.IDs[raw.ID])
	}
	b.acked(a)
}

func (b *client) transaction(ctx context.Context) {
	ctx, cancel := b.limited(ctx)
	defer cancel()
	ws := b.workspace()
	sequencer, err := b.app.SequencerOf(ws)
	if err != nil {
		b.failed(ctx, err)
		return
	}
	tx, err := sequencer.StartWaiting(ctx, kindShop, ws)
	if err != nil {
		b.failed(ctx, err)
		return
	}
	for range b.random.IntN(3) {
		if _, err := tx.Next(ctx, []messages.SeqID{seqInvoice, seqDelivery}[b.random.IntN(2)]); err != nil {
			_ = tx.Cancel(ctx)
			b.failed(ctx, err)
			return
		}
	}
	b.end(ctx, tx, ws)
}

// end ends a transaction in one of the ways there are.
func (b *client) end(ctx context.Context, tx *partition.Transaction, ws messages.WSID) {
	var err error
	switch n := b.random.IntN(1000); {
	case n < 30:
		err = tx.Cancel(ctx)
	case n < 33:
		err = tx.Actualize(ctx)
	default:
		if err = tx.Commit(ctx, []byte(b.body())); err == nil {
			b.acked(&acked{
				Partition: tx.Token().Partition, PLogOffset: tx.PLogOffset(), Workspace: ws, WLogOffset: tx.WLogOffset(),
				At: tx.RegisteredAt(), Numbers: tx.Numbers(), Body: b.body(),
			})
		}
	}
	if err != nil {
		b.failed(ctx, err)
	}
}

func (b *client) acked(a *acked) {
	b.journal.write(entry{Acked: a})
	b.counted()
}

// counted counts an acknowledgement.
func (c *child) counted() {
	if n := c.acks.Add(1); n == c.StopAfter {
		c.stop()
	}
}

// failed journals what an error promises: that nothing is left, unless the outcome
// is unknown.
func (b *client) failed(ctx context.Context, err error) {
	if errors.Is(err, messages.ErrOutcomeUnknown) {
		return
	}
	b.journal.write(entry{Refused: []string{b.body()}})
	b.explain(ctx, err)
}

// explain journals an error that must not happen, and waits where that is of use.
func (c *child) explain(ctx context.Context, err error) {
	for _, expected := range []error{
		context.DeadlineExceeded, context.Canceled, messages.ErrDeadlineExceeded, messages.ErrFenced, messages.ErrNoTransaction,
		storage.ErrTailFull, messages.ErrExpectedOffset,
	} {
		if errors.Is(err, expected) {
			return
		}
	}
	switch {
	case errors.Is(err, messages.ErrBusy):
		_ = c.app.Ready(ctx) // it replays its tail after an Actualize
	case c.tolerates == nil || !c.tolerates(err):
		c.journal.write(entry{Trouble: err.Error()})
	}
}
