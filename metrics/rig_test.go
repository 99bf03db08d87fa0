package metrics_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/internal/quiet"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/metrics"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	shop     messages.WSKind = 1
	invoices messages.SeqID  = 16
)

func descriptor(partitions uint32) messages.Descriptor {
	return messages.Descriptor{Application: "billing", Partitions: partitions, Kinds: []messages.Kind{
		{ID: shop, Name: "shop", Sequences: []messages.Sequence{{ID: invoices, Name: "Invoice", Initial: 1}}},
	}}
}

// rig is an application over a store, which is watched.
type rig struct {
	t        testing.TB
	ctx      context.Context
	metrics  *metrics.Metrics
	registry *prometheus.Registry
	parts    *partition.AppParts
	store    *bolt.Store
	app      *partition.App
	forget   func()
}

func newRig(t testing.TB, o metrics.Options, change ...func(*partition.Application)) *rig {
	t.Helper()
	return newRigIn(t, t.TempDir(), o, change...)
}

// newRigIn is newRig over a store that may be there.
func newRigIn(t testing.TB, dir string, o metrics.Options, change ...func(*partition.Application)) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	o.Logs, o.Connections = newLogs(t), 1024
	r := &rig{t: t, ctx: ctx, metrics: metrics.New(o), registry: prometheus.NewPedanticRegistry()}
	app := partition.Application{Descriptor: descriptor(2)}
	for _, c := range change {
		c(&app)
	}
	var err error
	r.store, err = bolt.Open(ctx, dir, app.Descriptor, bolt.Options{Create: true})
	r.check(err)
	system := quiet.NewSystem()
	clock := new(movedClock)
	traces := ids.NewTraceGenerator(7, ids.TraceOptions{Clock: clock})
	clock.seconds = 1 // it gives ids at once
	r.parts = partition.NewAppParts(system, partition.Options{Observer: r.metrics, Traces: traces, Logger: zap.New(o.Logs)})
	r.app, err = r.parts.Deploy(ctx, app, r.store)
	r.check(err)
	r.check(r.app.Ready(ctx))
	r.forget = r.metrics.Watch(r.app, r.store)
	r.metrics.WatchDumps(dumped{})
	r.metrics.WatchUpkeep(lookedAfter{})
	r.metrics.WatchNode(func() metrics.Node { return metrics.Node{Leads: true} })
	r.check(r.registry.Register(r.metrics))
	t.Cleanup(func() {
		// With an end of their own.
		r.check(r.parts.Close(context.Background()))
		r.check(r.store.Close(context.Background()))
		system.Shutdown()
	})
	return r
}

func (r *rig) check(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// gathered are metrics by name.
type gathered struct {
	t   testing.TB
	all map[string]*dto.MetricFamily
}

func (r *rig) gather() gathered {
	r.t.Helper()
	families, err := r.registry.Gather()
	r.check(err)
	g := gathered{r.t, make(map[string]*dto.MetricFamily)}
	for _, f := range families {
		g.all[f.GetName()] = f
	}
	return g
}

// find returns the series of a metric which has the labels given, as name=value.
func (g gathered) find(name string, labels ...string) (found []*dto.Metric) {
	for _, m := range g.all[name].GetMetric() {
		if hasLabels(m, labels) {
			found = append(found, m)
		}
	}
	return found
}

func hasLabels(m *dto.Metric, labels []string) bool {
	for _, l := range labels {
		name, value, _ := strings.Cut(l, "=")
		has := false
		for _, p := range m.GetLabel() {
			has = has || p.GetName() == name && p.GetValue() == value
		}
		if !has {
			return false
		}
	}
	return true
}

// value returns that of the only series that has the labels; of a histogram, the number of values.
func (g gathered) value(name string, labels ...string) float64 {
	g.t.Helper()
	found := g.find(name, labels...)
	if len(found) != 1 {
		g.t.Fatalf("%s %q: got %d series, want 1: %v", name, labels, len(found), g.all[name])
	}
	m := found[0]
	switch {
	case m.Counter != nil:
		return m.Counter.GetValue()
	case m.Gauge != nil:
		return m.Gauge.GetValue()
	}
	return float64(m.Histogram.GetSampleCount())
}

func (g gathered) want(want float64, name string, labels ...string) {
	g.t.Helper()
	if got := g.value(name, labels...); got != want {
		g.t.Errorf("%s %q: got %v, want %v", name, labels, got, want)
	}
}

// movedClock shows what it is set to.
type movedClock struct{ seconds int64 }

func (c *movedClock) Now() time.Time                          { return time.Unix(c.seconds, 0) }
func (*movedClock) AfterFunc(time.Duration, func()) ids.Timer { return idleTimer{} }

type idleTimer struct{}

func (idleTimer) Stop() bool { return true }

// dumped is what a writer of dumps tells.
type dumped struct{}

// Counts implements [metrics.Dumps].
func (dumped) Counts(tell func(group string, emitted, limited, lost uint64)) (unwritten uint64) {
	tell("partition", 5, 3, 2)
	tell("lane", 1, 0, 0)
	return 4
}

// lookedAfter is what whoever looks after a store tells.
type lookedAfter struct{}

// DamageMet implements [metrics.Upkeep].
func (lookedAfter) DamageMet() uint64 { return 7 }

// Scrubbed implements [metrics.Upkeep].
func (lookedAfter) Scrubbed() metrics.Scrubbed {
	return metrics.Scrubbed{Outcomes: map[string]uint64{"sound": 2, "faulty": 1, "failed": 0}, Last: time.Unix(1000, 0), Looked: true, Faults: 5, Every: time.Hour}
}
