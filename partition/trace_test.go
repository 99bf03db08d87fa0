package partition_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

// secondsClock shows what it is set to.
type secondsClock struct{ now atomic.Int64 }

func (c *secondsClock) Now() time.Time { return time.Unix(c.now.Load(), 0) }

// AfterFunc implements [ids.Clock]. Nobody waits for the next second.
func (*secondsClock) AfterFunc(time.Duration, func()) ids.Timer { return idleTimer{} }

type idleTimer struct{}

func (idleTimer) Stop() bool { return true }

// newTraces returns a generator that gives ids at once.
func newTraces() *ids.TraceGenerator {
	c := new(secondsClock)
	g := ids.NewTraceGenerator(7, ids.TraceOptions{Clock: c})
	c.now.Store(1)
	return g
}

// given is the trace that a caller brings along.
const given ids.TraceID = 0x0123456789abcdef

// tracedHouse returns a house whose requests have traces, and its application over a store on disk.
func tracedHouse(t *testing.T, dir string) (*house, *partition.App) {
	t.Helper()
	s, err := bolt.Open(t.Context(), dir, descriptor, bolt.Options{Create: true, MmapSize: 1 << 20})
	noError(t, err)
	t.Cleanup(func() { noError(t, s.Close(context.Background())) })
	h := newHouse(t, partition.Options{Traces: newTraces()})
	return h, h.deploy(partition.Application{Descriptor: descriptor}, s)
}

// tracesOf returns those of a workspace's events.
func tracesOf(t *testing.T, a *partition.App, ws messages.WSID) (all []ids.TraceID) {
	t.Helper()
	for e, err := range a.Reader().WLog(t.Context(), ws, 1) {
		noError(t, err)
		all = append(all, e.Trace)
	}
	return all
}

// TestTraceOfRequests: what is written has the trace of its context, however it is written, and a new one without it. What
// handlers write has the command's.
func TestTraceOfRequests(t *testing.T) {
	h, app := tracedHouse(t, filepath.Join(t.TempDir(), "store"))
	s, err := app.SequencerOf(1)
	h.check(err)
	var seen []ids.TraceID
	handled, err := app.SpawnCommandProcessor(func(ctx context.Context, c *partition.CommandContext) error {
		seen = append(seen, ids.TraceOf(ctx), c.Command().Trace)
		return nil
	})
	h.check(err)
	drafted, err := app.SpawnAppendProcessor(func(ctx context.Context, d *partition.DraftContext) error {
		seen = append(seen, ids.TraceOf(ctx), d.Command().Trace)
		return nil
	})
	h.check(err)
	write := func(ctx context.Context) {
		_, err := s.Append(ctx, partition.AppendTo{Workspace: 1, Kind: shop}, partition.Draft{})
		h.check(err)
		_, err = s.AppendAll(ctx, partition.AppendTo{Workspace: 1, Kind: shop}, []partition.Draft{{}, {}})
		h.check(err)
		tx, err := s.Start(ctx, shop, 1)
		h.check(err)
		h.check(tx.Commit(ctx, nil))
		for _, p := range []*partition.CommandProcessor{handled, drafted} {
			_, err = p.Execute(ctx, messages.Command{Workspace: 1, Kind: shop})
			h.check(err)
		}
	}
	write(ids.ContextWithTrace(h.ctx, given))
	if got, want := tracesOf(t, app, 1), slices.Repeat([]ids.TraceID{given}, 6); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if want := slices.Repeat([]ids.TraceID{given}, 4); !slices.Equal(seen, want) {
		t.Errorf("handlers: got %v, want %v", seen, want)
	}
	write(h.ctx)
	made := tracesOf(t, app, 1)[6:]
	if made[1] != made[2] || made[1] == 0 {
		t.Errorf("got %v and %v for events that were appended together", made[1], made[2])
	}
	slices.Sort(made)
	if made = slices.Compact(made); len(made) != 5 || slices.ContainsFunc(made, func(id ids.TraceID) bool { return id.Node() != 7 }) {
		t.Errorf("got %v, want 5 ids of node 7", made)
	}
}

// TestTraceThatIsNone: what is no trace id does not get into the log.
func TestTraceThatIsNone(t *testing.T) {
	h, app := tracedHouse(t, filepath.Join(t.TempDir(), "store"))
	s, err := app.SequencerOf(1)
	h.check(err)
	ctx := ids.ContextWithTrace(h.ctx, 1<<63|1)
	if _, err := s.Append(ctx, partition.AppendTo{Workspace: 1, Kind: shop}, partition.Draft{}); !errors.Is(err, ids.ErrID) {
		t.Errorf("append: got %v", err)
	}
	if _, err := s.Start(ctx, shop, 1); !errors.Is(err, ids.ErrID) {
		t.Errorf("start: got %v", err)
	}
	if got := tracesOf(t, app, 1); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

// TestNoTraces: without a generator only what brings a trace along has one, until there is a generator.
func TestNoTraces(t *testing.T) {
	h := newHouse(t, partition.Options{})
	app := h.deploy(partition.Application{Descriptor: descriptor}, h.newStore(descriptor))
	s, err := app.SequencerOf(1)
	h.check(err)
	write := func(ctx context.Context) {
		_, err := s.Append(ctx, partition.AppendTo{Workspace: 1, Kind: shop}, partition.Draft{})
		h.check(err)
	}
	write(h.ctx)
	write(ids.ContextWithTrace(h.ctx, given))
	h.parts.SetTraces(newTraces())
	write(h.ctx)
	h.parts.SetTraces(nil)
	write(h.ctx)
	if got := tracesOf(t, app, 1); len(got) != 4 || got[0] != 0 || got[1] != given || got[2].Node() != 7 || got[3] != 0 {
		t.Errorf("got %v, want one event of the trace that was given, and one of a new one", got)
	}
}

// TestTraceOfDeliveries: a handler goes on with the trace of its events, also in a later process; events of several traces
// have none in common.
func TestTraceOfDeliveries(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	t.Run("write", func(t *testing.T) {
		h, app := tracedHouse(t, dir)
		s, err := app.SequencerOf(1)
		h.check(err)
		for _, id := range []ids.TraceID{given, given, given + 1} {
			_, err = s.Append(ids.ContextWithTrace(h.ctx, id), partition.AppendTo{Workspace: 1, Kind: shop}, partition.Draft{})
			h.check(err)
		}
	})
	for _, tt := range []struct {
		name  string
		batch int
		want  []ids.TraceID
	}{{"one", 1, []ids.TraceID{given, given, given + 1}}, {"two", 2, []ids.TraceID{given, given + 1}}, {"all", 3, []ids.TraceID{0}}} {
		t.Run(tt.name, func(t *testing.T) {
			h, app := tracedHouse(t, dir)
			seen := make(chan ids.TraceID, 3)
			_, err := app.Subscribe(h.ctx, partition.SubscriptionConfig{
				Name: tt.name, Workspace: new(messages.WSID(1)), Batch: tt.batch,
				Handler: func(ctx context.Context, _ partition.Delivery) error {
					seen <- ids.TraceOf(ctx)
					return nil
				},
			})
			h.check(err)
			for i, want := range tt.want {
				select {
				case got := <-seen:
					if got != want {
						t.Errorf("call %d: got trace %v, want %v", i, got, want)
					}
				case <-h.ctx.Done():
					t.Fatal("not delivered")
				}
			}
		})
	}
}
