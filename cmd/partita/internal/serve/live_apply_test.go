package serve

import (
	"context"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/partita-go/partita/cmd/partita/internal/config"
	"github.com/partita-go/partita/internal/quiet"
	"github.com/partita-go/partita/logs"
	"github.com/partita-go/partita/metrics"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

// newLive returns the configuration of an application that runs until end is called, and the lines that it logs.
func newLive(t *testing.T) (l *live, lines *observer.ObservedLogs, end func()) {
	t.Helper()
	core, lines := observer.New(zap.WarnLevel)
	kept, err := logs.New(core, map[string]logs.Group{logs.AllGroups: {Level: zap.WarnLevel}})
	check(t, err)
	store, err := bolt.OpenExisting(limit(t), newStore(t), bolt.Options{})
	check(t, err)
	system := quiet.NewSystem()
	parts := partition.NewAppParts(system, partition.Options{})
	app, err := parts.Deploy(limit(t), partition.Application{Descriptor: store.Descriptor()}, store)
	check(t, err)
	check(t, app.Ready(limit(t)))
	l = &live{
		source: config.NewSource("", func(string) string { return "" }, nil), configure: app.Configure, setTraces: parts.SetTraces, dumps: &dumping{logger: zap.New(kept)}, logs: kept, metrics: metrics.New(metrics.Options{Logs: kept}),
		logger: zap.New(kept), now: loadDocument(t, nil), own: loadDocument(t, nil),
	}
	ended := false
	end = func() {
		if !ended {
			check(t, parts.Close(context.Background()))
			system.Shutdown()
			check(t, store.Close(context.Background()))
			ended = true
		}
	}
	t.Cleanup(end)
	return l, lines, end
}

// TestConfigIsShownAsItWas: what was shown does not change with the configuration that comes after it.
func TestConfigIsShownAsItWas(t *testing.T) {
	l, _, _ := newLive(t)
	check(t, l.replace(limit(t), []byte(`{"log_rate": 7}`)))
	first := l.show()
	was := *first.Changed
	check(t, l.replace(limit(t), []byte(`{"log_rate": 8}`)))
	if second := l.show(); !first.Changed.Equal(was) || !second.Changed.After(was) {
		t.Errorf("got %v and %v, the first was %v", first.Changed, second.Changed, was)
	}
}

// TestConfigNotEverywhere: a configuration that some partition has not taken over is told as such, by the log and by whoever
// asks; the rest of it is in force.
func TestConfigNotEverywhere(t *testing.T) {
	l, lines, end := newLive(t)
	end()
	const what = "not in force everywhere"
	if err := l.replace(limit(t), []byte(`{"log_rate": 7}`)); err == nil || !strings.Contains(err.Error(), what) {
		t.Errorf("got %v", err)
	}
	if shown := l.show(); !strings.Contains(shown.Refused, what) || shown.Changed == nil || l.now.Config.LogRate != 7 {
		t.Errorf("got %+v", shown)
	}
	if told := lines.FilterLevelExact(zap.ErrorLevel).All(); len(told) != 1 || !strings.Contains(told[0].Message, what) {
		t.Errorf("got %v", lines.All())
	}
}
