package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/spf13/cobra"

	"github.com/partita-go/partita/cmd/internal/cli"
	shared "github.com/partita-go/partita/cmd/internal/console"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt"
)

// The application of a synthetic load.
const (
	kindTenant messages.WSKind = 1
	seqInvoice messages.SeqID  = 16
)

func loadDescriptor(partitions uint32) messages.Descriptor {
	return messages.Descriptor{
		Application: "load",
		Partitions:  partitions,
		Kinds: []messages.Kind{{ID: kindTenant, Name: "tenant", Sequences: []messages.Sequence{
			{ID: seqInvoice, Name: "Invoice", Initial: 1},
		}}},
	}
}

// load is what a load is made of.
type load struct {
	*console
	events, workspaces, partitions uint64
	clients, body                  int
	dir                            string

	payload []byte
	result  loadResult
	running *deployment
	// begun counts the events that a client has taken on.
	begun         atomic.Uint64
	busy, unknown atomic.Uint64
	latencies     []sharedHistogram
}

// loadResult is what a load was like, in the words of its JSON.
type loadResult struct {
	Command string `json:"command"`
	OK      bool   `json:"ok"`
	Store   string `json:"store"`
	Kept    bool   `json:"kept"`
	// Events were acknowledged, InLog is by how many the log has grown.
	Events     number        `json:"events"`
	InLog      number        `json:"in_log"`
	Workspaces number        `json:"workspaces"`
	Partitions number        `json:"partitions"`
	Clients    int           `json:"clients"`
	Body       int           `json:"body_bytes"`
	Seconds    seconds       `json:"seconds"`
	PerSecond  float64       `json:"per_second"`
	Latency    latencyResult `json:"latency_seconds"`
	// Busy counts requests that were refused for now and sent again; Unknown those
	// of which nobody knows whether they were done.
	Busy    number       `json:"busy"`
	Unknown number       `json:"unknown"`
	Commits number       `json:"commits"`
	Bytes   fileSizes    `json:"bytes"`
	Check   *checkResult `json:"check"`
}

// consistent reports whether the log has grown by what was acknowledged.
func (r *loadResult) consistent() bool { return r.Events <= r.InLog && r.InLog <= r.Events+r.Unknown }

type latencyResult struct {
	Mean seconds `json:"mean"`
	P50  seconds `json:"p50"`
	P90  seconds `json:"p90"`
	P99  seconds `json:"p99"`
	P999 seconds `json:"p999"`
	Max  seconds `json:"max"`
}

func loadCommand() *cobra.Command {
	c := &cobra.Command{Use: "load", Short: "Write a synthetic load, measure, check"}
	var l load
	set := c.Flags()
	set.Uint64Var(&l.events, "events", 100_000, "write `N` events")
	set.Uint64Var(&l.workspaces, "workspaces", 10_000, "spread them over `N` workspaces")
	partitionsFlag(set, &l.partitions)
	set.IntVar(&l.clients, "clients", 64, "let `N` clients write at the same time")
	set.StringVar(&l.dir, "db", "", "keep the store in `DIR` (default: a temporary one)")
	set.IntVar(&l.body, "body", 200, "bytes of an event's body, `N`")
	asJSON := cli.JSON(c)
	c.RunE = cli.Run(func(ctx context.Context, s cli.Streams) (err error) {
		if err := l.bounds(); err != nil {
			return err
		}
		l.console = newConsole(s, *asJSON)
		p, end, err := findPlace(l.dir, false)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, end()) }()
		l.dir = p.dir
		l.result.Kept = !p.temporary
		return l.run(ctx)
	})
	return c
}

// bounds returns a usage error for the first flag that is out of range.
func (l *load) bounds() error {
	for _, err := range []error{
		cli.InRange("events", l.events, 1, 1<<40),
		cli.InRange("workspaces", l.workspaces, 1, 1<<40),
		checkPartitions(l.partitions),
		cli.InRange("clients", l.clients, 1, maxConcurrent),
		cli.InRange("body", l.body, 0, 1<<20),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// run writes the load and shows what it was like. The store is closed, and nothing
// is left running, when it returns.
func (l *load) run(ctx context.Context) (err error) {
	l.payload = bytes.Repeat([]byte("partita "), l.body/8+1)[:l.body]
	if l.running, err = deploy(ctx, l.dir, loadDescriptor(uint32(l.partitions)), bolt.Options{Create: true}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.running.stop()) }()
	l.introduce()
	found := l.running.store.Stats().Events
	begun := time.Now()
	l.Phase("   events", int64(l.events))
	err = l.write(ctx)
	l.Done()
	took := time.Since(begun)
	if err != nil {
		return about(l.dir, err)
	}
	l.summarize(took)
	if err := l.running.undeploy(); err != nil {
		return about(l.dir, err)
	}
	if err := l.judge(ctx, found); err != nil {
		return about(l.dir, err)
	}
	if err := l.console.result(&l.result, l.tables); err != nil {
		return err
	}
	if !l.result.OK {
		return fmt.Errorf("%s: %w", l.dir, errVerdict)
	}
	return nil
}

// judge looks at the store, which is at rest. It had so many events before.
func (l *load) judge(ctx context.Context, found messages.LSN) (err error) {
	stats := l.running.store.Stats()
	r := &l.result
	r.Bytes, r.InLog = sizesOf(stats), number(stats.Events-found)
	r.Check, err = checkInvariants(ctx, l.console, l.running.store, uint64(stats.Events))
	r.OK = err == nil && r.consistent() && r.Check.OK
	return err
}

func (l *load) summarize(took time.Duration) {
	all := newHistogram()
	for i := range l.latencies {
		all.Merge(l.latencies[i].histogram)
	}
	events := uint64(all.TotalCount())
	r := &l.result
	r.Command, r.Store = "load", l.dir
	r.Events, r.Workspaces, r.Partitions = number(events), number(l.workspaces), number(l.partitions)
	r.Clients, r.Body = l.clients, l.body
	r.Seconds, r.PerSecond = seconds(took), shared.PerSecond(events, took)
	r.Latency = latencyResult{
		Mean: seconds(all.Mean()), P50: seconds(all.ValueAtPercentile(50)), P90: seconds(all.ValueAtPercentile(90)),
		P99: seconds(all.ValueAtPercentile(99)), P999: seconds(all.ValueAtPercentile(99.9)), Max: seconds(all.Max()),
	}
	r.Busy, r.Unknown = number(l.busy.Load()), number(l.unknown.Load())
	r.Commits = number(l.running.store.Stats().Commits)
}

// sharedHistogram is a histogram that some clients share, so that memory does not
// grow with their number.
type sharedHistogram struct {
	mu        sync.Mutex
	histogram *hdrhistogram.Histogram
}

// newHistogram returns a histogram of nanoseconds that takes all that are not negative, to within a
// percent.
func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, math.MaxInt64, 2) }

func (h *sharedHistogram) record(d time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.histogram.RecordValue(int64(d))
}

const histograms = 64

// write lets the clients write all events.
func (l *load) write(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l.latencies = make([]sharedHistogram, min(l.clients, histograms))
	for i := range l.latencies {
		l.latencies[i].histogram = newHistogram()
	}
	var running sync.WaitGroup
	for i := range l.clients {
		running.Go(func() {
			if err := l.client(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	running.Wait()
	return context.Cause(ctx)
}

// client writes one event after the other until all are taken on.
func (l *load) client(ctx context.Context, id int) error {
	random := rand.New(rand.NewPCG(uint64(id), l.events))
	latencies := &l.latencies[id%len(l.latencies)]
	for l.begun.Add(1) <= l.events {
		ws := messages.WSID(1 + random.Uint64N(l.workspaces))
		began := time.Now()
		again, err := retry(ctx, refusedForNow, func() error { return l.transact(ctx, ws) })
		l.busy.Add(uint64(again))
		switch {
		case errors.Is(err, messages.ErrOutcomeUnknown) && ctx.Err() == nil:
			l.unknown.Add(1)
		case err != nil:
			return err
		default:
			if err := latencies.record(time.Since(began)); err != nil {
				return err
			}
		}
		l.Add(1)
	}
	return nil
}

// transact writes an event with one number through the typed client.
func (l *load) transact(ctx context.Context, ws messages.WSID) error {
	sequencer, err := l.running.app.SequencerOf(ws)
	if err != nil {
		return err
	}
	tx, err := sequencer.StartWaiting(ctx, kindTenant, ws)
	if err != nil {
		return err
	}
	if _, err := tx.Next(ctx, seqInvoice); err != nil {
		return errors.Join(err, tx.Cancel(ctx))
	}
	return tx.Commit(ctx, l.payload)
}
