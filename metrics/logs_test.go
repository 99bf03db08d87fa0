package metrics_test

import (
	"errors"
	"io"
	"runtime"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/partita-go/partita/logs"
	"github.com/partita-go/partita/metrics"
)

// sink is where log lines go; it fails while it has an error.
type sink struct{ err error }

func (s *sink) Write(b []byte) (int, error) { return len(b), s.err }
func (*sink) Sync() error                   { return nil }

func newLogs(t testing.TB) *logs.Logs { return logsTo(t, zapcore.AddSync(io.Discard), nil) }

func logsTo(t testing.TB, w zapcore.WriteSyncer, rules map[string]logs.Group) *logs.Logs {
	t.Helper()
	l, err := logs.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), w, zap.DebugLevel), rules)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestLogLines: those that were written, left out and lost are counted by group and level.
func TestLogLines(t *testing.T) {
	r := newRig(t, metrics.Options{})
	r.awaitNormalLines()

	var to sink
	l := logsTo(t, &to, map[string]logs.Group{"lane": {Rate: 1}})
	logger := zap.New(l, zap.ErrorOutput(zapcore.AddSync(io.Discard))).Named("shops")
	for range 100 {
		logger.Named("lane").Warn("parked")
	}
	logger.Named("lane").Error("panicked")
	to.err = errors.New("full")
	logger.Named("store").Error("displaced")
	r.registry.Unregister(r.metrics)
	r.check(r.registry.Register(metrics.New(metrics.Options{Logs: l})))
	g := r.gather()
	all := l.Stats()
	if len(all) != 3 || all[0].Limited == 0 || all[1].Emitted != 1 || all[2].Lost != 1 {
		t.Fatalf("got %+v", all)
	}
	for _, s := range all {
		labels := []string{"actor_group=" + s.Group, "level=" + s.Level.String()}
		g.want(float64(s.Emitted), "partita_emitted_events_total", labels...)
		g.want(float64(s.Limited), "partita_limited_events_total", labels...)
		g.want(float64(s.Lost), "partita_lost_events_total", labels...)
	}
	r.check(l.Sync())
}

// awaitNormalLines awaits the line of each partition that it is normal: it is seen so before its line is written.
func (r *rig) awaitNormalLines() {
	r.t.Helper()
	for {
		var lines float64
		for _, m := range r.gather().find("partita_emitted_events_total", "actor_group=partition", "level=info") {
			lines += m.GetCounter().GetValue()
		}
		if lines == 2 {
			return
		}
		runtime.Gosched()
		r.check(r.ctx.Err())
	}
}
