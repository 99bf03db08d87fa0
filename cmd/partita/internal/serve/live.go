package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/partita-go/partita/cmd/partita/internal/config"
	"github.com/partita-go/partita/dumps"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/logs"
	"github.com/partita-go/partita/metrics"
	"github.com/partita-go/partita/partition"
)

// applyLimit is how long partitions may take to change their settings.
const applyLimit = 30 * time.Second

// live is the configuration of a server that runs, and what changes it.
type live struct {
	source *config.Source
	// configure and setTraces change what is served.
	configure func(context.Context, partition.Config) error
	setTraces func(*ids.TraceGenerator)
	logs      *logs.Logs
	metrics   *metrics.Metrics
	dumps     *dumping
	// scrubs is nil if nobody scrubs.
	scrubs *scrubber
	logger *zap.Logger

	mu  sync.Mutex
	now *config.Loaded
	// own is what the file, the environment and the flags said when they were read last.
	own *config.Loaded
	// changed is when it was changed last, zero if it was not.
	changed time.Time
	// refused is why the last try has failed, wholly or in part, nil if it has not.
	refused error
}

// live returns what changes the configuration, nil if it cannot change.
func (s *server) live(own *served) *live {
	if s.config.source == nil {
		return nil
	}
	return &live{
		source: s.config.source, configure: own.configure, setTraces: own.setTraces, logs: s.logs, metrics: s.metrics, dumps: s.dumps, scrubs: s.scrubs.Load(), logger: s.logger.Named("serve"), now: s.config.loaded, own: s.config.loaded,
	}
}

// reload reads the file again, if there is one, and takes the flags and the environment as they are.
func (l *live) reload(ctx context.Context) {
	var own *config.Loaded
	_ = l.change(ctx, func() (_ *config.Loaded, err error) {
		own, err = l.source.Load()
		return own, err
	}, func() { l.own = own })
}

// replace takes a document in place of the file. It comes from whoever may ask the API, who may not write to any file of the
// server's user: the dump is the one that the server's own configuration names, or none.
func (l *live) replace(ctx context.Context, document []byte) error {
	return l.change(ctx, func() (*config.Loaded, error) {
		next, err := l.source.LoadDocument(document)
		if err != nil {
			return nil, err
		}
		return next, next.CheckDump(l.own)
	}, func() {})
}

// change takes another configuration, or nothing of it, and tells. It calls taken, with the lock, if it is not refused.
func (l *live) change(ctx context.Context, load func() (*config.Loaded, error), taken func()) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	next, err := load()
	if err != nil {
		return l.refuse(err)
	}
	changes, err := l.now.Changes(next)
	if err != nil {
		return l.refuse(err)
	}
	changeDump, forget, err := l.dumps.prepare(next.Config)
	if err != nil {
		return l.refuse(err)
	}
	traces, err := l.traces(ctx, next.Config)
	if err != nil {
		forget()
		return l.refuse(err)
	}
	err = errors.Join(changeDump(), l.apply(ctx, next.Config))
	if traces != nil {
		l.setTraces(traces)
	}
	l.now, l.refused, l.changed = next, err, time.Now()
	taken()
	for _, c := range changes {
		l.logger.Warn("setting has changed", zap.String("setting", c.Key), zap.Any("from", c.From), zap.Any("to", c.To))
	}
	if err != nil {
		l.logger.Error("configuration was taken over, but is not in force everywhere", zap.Error(err))
		return err
	}
	l.logger.Warn("configuration was taken over", zap.Int("changes", len(changes)))
	return nil
}

func (l *live) refuse(err error) error {
	l.refused = err
	l.logger.Error("configuration is refused, nothing has changed", zap.Error(err))
	return err
}

// traces returns what gives trace ids from now on, nil if that stays as it is. It is ready: requests need not wait for the
// end of the second in which it was made.
func (l *live) traces(ctx context.Context, c *config.Config) (*ids.TraceGenerator, error) {
	if c.TraceNode == nil || l.now.Config.TraceNode != nil {
		return nil, nil //nolint:nilnil // nothing changes
	}
	ctx, cancel := context.WithTimeout(ctx, applyLimit)
	defer cancel()
	g := ids.NewTraceGenerator(*c.TraceNode, ids.TraceOptions{})
	if _, err := g.Next(ctx); err != nil {
		return nil, fmt.Errorf("trace_node: %w", err)
	}
	return g, nil
}

// apply changes all else that can change. The configuration is valid: only a partition that has ended does not follow.
func (l *live) apply(ctx context.Context, c *config.Config) error {
	ctx, cancel := context.WithTimeout(ctx, applyLimit)
	defer cancel()
	err := l.logs.SetGroups(logGroups(c))
	l.metrics.SetKeys(metricKeys(c))
	if l.scrubs != nil {
		l.scrubs.configure(scrubbing(c))
	}
	err = errors.Join(err, l.configure(ctx, partition.Config{
		Settings: c.Settings, RequestLane: c.Application.RequestLane, RequestLaneBytes: c.Application.RequestLaneBytes,
	}))
	if err != nil {
		return fmt.Errorf("not in force everywhere: %w", err)
	}
	return nil
}

// ConfigOf returns what a server needs of a configuration.
func ConfigOf(l *config.Loaded, source *config.Source) Config {
	c := l.Config
	return Config{
		Dir: c.DB, Descriptor: c.Descriptor, Listen: c.Listen, CertFile: c.TLSCert, KeyFile: c.TLSKey, Token: c.Token, TokenFile: c.TokenFile, Connections: c.Connections, TraceNode: c.TraceNode, Origins: c.AllowOrigin,
		Logs: logGroups(c), LogJSON: c.LogFormat == "json",
		Dump: c.Dump, Dumps: dumpOptions(c),
		AlarmAfter: c.AlarmAfter, RestartDelay: c.RestartDelay, Restarts: restarts(c),
		Node: Node{
			Name: c.Node, Peers: c.Peers, Listen: c.PeerListen, CertFile: c.PeerCert, KeyFile: c.PeerKey, CAFile: c.PeerCA, Failover: c.Failover,
			Shards: c.Shards,
		},
		Scrub: scrubbing(c), Keys: metricKeys(c), Settings: c.Settings, Application: c.Application, Store: c.Store,
		loaded: l, source: source,
	}
}

func scrubbing(c *config.Config) Scrubbing { return Scrubbing{Every: c.Scrub, Share: c.ScrubShare} }

func restarts(c *config.Config) map[string]partition.RestartPolicy {
	modes := make(map[string]partition.RestartMode)
	for _, m := range []partition.RestartMode{partition.RestartOnFailure, partition.RestartAlways, partition.RestartNever} {
		modes[m.String()] = m
	}
	all := make(map[string]partition.RestartPolicy)
	for _, name := range config.RestartGroups {
		r := c.Groups[name].Restart
		all[name] = partition.RestartPolicy{Mode: modes[r.Mode], MinDelay: r.MinDelay, MaxDelay: r.MaxDelay, MostFailures: r.MostFailures}
	}
	return all
}

func logGroups(c *config.Config) map[string]logs.Group {
	groups := map[string]logs.Group{logs.AllGroups: {Level: c.LogLevel, Rate: c.LogRate}}
	for _, name := range config.LogGroups {
		g := c.Groups[name].Logging
		groups[name] = logs.Group{Level: g.Level, Rate: g.Rate}
	}
	return groups
}

func dumpOptions(c *config.Config) dumps.Options {
	o := dumps.Options{Groups: dumpGroups(c), Memory: c.DumpMemory << 20}
	if c.TraceNode != nil {
		o.Node = *c.TraceNode
	}
	return o
}

// dumpGroups returns those that are dumped: all, with what is said of single ones, or those that are named.
func dumpGroups(c *config.Config) map[string]dumps.Group {
	groups := make(map[string]dumps.Group)
	for _, name := range c.DumpGroups {
		groups[name] = dumps.Group{Messages: c.DumpMessages, Rate: c.DumpRate, Longest: c.DumpLongest, Bodies: c.DumpBodies}
	}
	_, all := groups[dumps.AllGroups]
	for _, name := range config.ActorGroups {
		if _, named := groups[name]; named || all {
			g := c.Groups[name].Dumping
			groups[name] = dumps.Group{Messages: g.Messages, Rate: g.Rate, Longest: g.Longest, Bodies: g.Bodies}
		}
	}
	return groups
}

func metricKeys(c *config.Config) (keys []string) {
	keys = slices.Clone(c.MetricsKeys)
	for _, name := range config.ActorGroups {
		if c.Groups[name].Telemetry.Keys && !slices.Contains(keys, name) {
			keys = append(keys, name)
		}
	}
	return keys
}
