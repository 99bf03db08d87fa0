package rows

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/bench/internal/event"
	"github.com/partita-go/partita/bench/internal/ledger"
	"github.com/partita-go/partita/bench/internal/load"
	"github.com/partita-go/partita/bench/internal/measure"
	"github.com/partita-go/partita/bench/internal/usage"
	"github.com/partita-go/partita/internal/quiet"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/verify"
)

const (
	kindTenant messages.WSKind = 1
	seqOrder   messages.SeqID  = 16
	// moreSequences follow seqOrder: events that a store has before it is measured take a number of each.
	moreSequences = 3
)

// shape is what distinguishes one row of partita from another.
type shape struct {
	partitions uint32
	// workspaces is how many there are; 0 means as many as for every row.
	workspaces int
	// zipf chooses the workspaces by a Zipf distribution with s=1.01, v=1, else
	// each is as likely as any other.
	zipf bool
	// dedup gives each event a deduplication id.
	dedup bool
	// daily makes the sequence restart each day, by a clock on which days pass fast. Events have one number and
	// no records.
	daily bool
	// filled is how many events the store has before it is measured, as many of each workspace.
	filled int
}

// partita appends through the client and the actors: PLog, WLog, two new records,
// three numbers (two of the application, one record id) and their SeqData.
type partita struct {
	shape   shape
	memory  int64
	callers []partitaCaller
	ledger  *ledger.Ledger
	dir     string
	store   *bolt.Store
	parts   *partition.AppParts
	system  *actor.ActorSystem
	app     *partition.App
}

// partitaCaller makes one caller's drafts.
type partitaCaller struct {
	source  *event.Source
	random  *rand.Rand
	zipf    *rand.Zipf
	draft   messages.Draft
	records [event.Records]messages.DraftRecord
}

func newPartita(sh shape, s measure.Settings) *partita {
	if sh.workspaces == 0 {
		sh.workspaces = s.Workspaces
	}
	p := &partita{shape: sh, memory: s.Memory, ledger: ledger.New(sh.workspaces), callers: make([]partitaCaller, s.Callers)}
	for i := range p.callers {
		p.callers[i].init(i, sh)
	}
	return p
}

func (c *partitaCaller) init(i int, sh shape) {
	c.source = event.NewSource(i, sh.workspaces)
	c.random = rand.New(rand.NewPCG(uint64(i), 1))
	if sh.zipf {
		c.zipf = rand.NewZipf(c.random, 1.01, 1, uint64(sh.workspaces-1))
	}
	for r := range c.records {
		c.records[r] = messages.DraftRecord{Number: r, New: true}
	}
	c.draft = messages.Draft{
		Wanted:  []messages.Wanted{{Seq: messages.SeqCRecordID, Count: event.Records}, {Seq: seqOrder}},
		Records: c.records[:],
	}
	if sh.daily {
		c.draft = messages.Draft{Wanted: c.draft.Wanted[1:]}
	}
}

// next makes the next draft and returns its workspace.
func (c *partitaCaller) next() int {
	ws := c.source.Next()
	if c.zipf != nil {
		ws = int(c.zipf.Uint64())
	}
	c.draft.Body = c.source.Body()
	for r := range c.records {
		c.records[r].Data = c.source.Record(r)
	}
	return ws
}

func (p *partita) descriptor() messages.Descriptor {
	order := messages.Sequence{ID: seqOrder, Name: "order", Initial: 1}
	if p.shape.daily {
		order.Restart = dailySequence
	}
	sequences := []messages.Sequence{order}
	for i := range moreSequences {
		sequences = append(sequences, messages.Sequence{ID: seqOrder + 1 + messages.SeqID(i), Name: fmt.Sprintf("more%d", i), Initial: 1})
	}
	return messages.Descriptor{
		Application: "bench", Partitions: p.shape.partitions,
		Kinds: []messages.Kind{{ID: kindTenant, Name: "tenant", Sequences: sequences}},
	}
}

func (p *partita) Setup(ctx context.Context, dir string) error {
	p.dir = dir
	store, err := bolt.Open(ctx, dir, p.descriptor(), bolt.Options{Create: true, Memory: p.memory})
	if err != nil {
		return err
	}
	p.store = store
	p.system = quiet.NewSystem()
	var options partition.Options
	var settings partition.Settings
	if p.shape.daily {
		if options, settings, err = dailyOptions(); err != nil {
			return err
		}
	}
	p.parts = partition.NewAppParts(p.system, options)
	if p.app, err = p.parts.Deploy(ctx, partition.Application{WorkspaceZero: true, Descriptor: p.descriptor(), Settings: settings}, store); err != nil {
		return err
	}
	return errors.Join(p.app.Ready(ctx), p.fill(ctx))
}

// fill appends what the store has before it is measured. Its events are noted too.
func (p *partita) fill(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var made atomic.Int64
	var running sync.WaitGroup
	for i := range p.callers {
		c := &p.callers[i]
		running.Go(func() {
			usual := c.draft.Wanted
			for seq := range messages.SeqID(moreSequences) {
				c.draft.Wanted = append(c.draft.Wanted, messages.Wanted{Seq: seqOrder + 1 + seq})
			}
			for n := made.Add(1); n <= int64(p.shape.filled) && ctx.Err() == nil; n = made.Add(1) {
				c.next()
				if err := p.append(ctx, c, int(n%int64(p.shape.workspaces))); err != nil {
					fail(err)
				}
			}
			c.draft.Wanted = usual
		})
	}
	running.Wait()
	return context.Cause(ctx)
}

// Do appends one event, waiting for a place if the partition is busy, as a caller
// would that has nothing else to do.
func (p *partita) Do(ctx context.Context, caller int) error {
	c := &p.callers[caller]
	return p.append(ctx, c, c.next())
}

// append appends the draft that a caller has made.
func (p *partita) append(ctx context.Context, c *partitaCaller, ws int) error {
	to := partition.AppendTo{Workspace: messages.WSID(ws), Kind: kindTenant, Wait: true}
	if p.shape.dedup {
		binary.BigEndian.PutUint64(to.DedupID[:], c.random.Uint64())
		binary.BigEndian.PutUint64(to.DedupID[8:], c.random.Uint64())
	}
	sequencer, err := p.app.SequencerOf(to.Workspace)
	if err != nil {
		return err
	}
	var done *partition.Appended
	err = whileBusy(ctx, func() error {
		done, err = sequencer.Append(ctx, to, c.draft)
		return err
	})
	if err != nil {
		return err
	}
	return p.ledger.Acknowledge(ws, uint64(done.WLogOffset))
}

// whileBusy asks a partition again, as often as it is busy.
func whileBusy(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		busy, ok := errors.AsType[*partition.BusyError](err)
		if !ok {
			return err
		}
		if err := load.Pause(ctx, busy.RetryAfter); err != nil {
			return err
		}
	}
}

// Rounds counts the flushes.
func (p *partita) Rounds() uint64 { return p.store.Stats().Flushes }

// Settle waits until everything is in the projections: a clean stop.
func (p *partita) Settle(ctx context.Context) error {
	err := p.parts.Close(ctx)
	p.parts = nil
	return err
}

// Check compares what the workspaces' logs say with what was acknowledged, and
// checks every invariant of the store.
func (p *partita) Check(ctx context.Context, failed uint64) (string, error) {
	report, err := verify.Run(ctx, p.store, verify.Options{SampleEvery: 97})
	if err != nil {
		return "", err
	}
	if err := report.Err(); err != nil {
		return "", err
	}
	stored := make([]uint64, p.shape.workspaces)
	for ws := range stored {
		n, err := p.store.Numbers(ctx, messages.WSID(ws))
		if err != nil {
			return "", err
		}
		stored[ws] = lastOffset(n)
	}
	if err := p.ledger.Check(stored, failed); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d events in %d workspaces verified, each offset acknowledged once",
		p.ledger.Count(), p.shape.workspaces), nil
}

func lastOffset(n storage.WorkspaceNumbers) uint64 {
	for _, s := range n.Numbers {
		if s.Seq == messages.SeqWLogOffset {
			return uint64(s.Number)
		}
	}
	return 0
}

func (p *partita) Sizes() ([]usage.Size, error) {
	var sizes []usage.Size
	for _, name := range []string{"log.db", "state.db"} {
		size, err := usage.SizeOf(filepath.Join(p.dir, name))
		if err != nil {
			return nil, err
		}
		sizes = append(sizes, size)
	}
	return sizes, nil
}

func (p *partita) Note() string {
	spread := "uniform"
	if p.shape.zipf {
		spread = "Zipf s=1.01 v=1"
	}
	settings := "default settings"
	if p.memory > 0 {
		settings = fmt.Sprintf("Memory of %d MiB", p.memory>>20)
	}
	return fmt.Sprintf("partita, %s, %d partitions, %d workspaces (%s), deduplication ids: %v, over a store of %d events",
		settings, p.shape.partitions, p.shape.workspaces, spread, p.shape.dedup, p.shape.filled)
}

func (p *partita) Close(ctx context.Context) error {
	var errs []error
	if p.parts != nil {
		errs = append(errs, p.parts.Close(ctx))
	}
	if p.store != nil {
		errs = append(errs, p.store.Close(ctx))
	}
	if p.system != nil {
		p.system.Shutdown()
	}
	return errors.Join(errs...)
}
