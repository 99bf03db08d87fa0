package metrics

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
)

// descs are the metrics that are looked up.
var descs []*prometheus.Desc

func describe(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc(name, help, labels, nil)
	descs = append(descs, d)
	return d
}

// What the actors tell.
var (
	sentMessages = describe("partita_sent_messages_total", "Messages that were sent to actors.", messageLabels...)
	busyTime     = describe("partita_busy_time_seconds_total",
		"How long actors have handled messages, together: what the timed ones took, times how many they stand for.", messageLabels[:2]...)
	activeActors     = describe("partita_active_actors", "Actors that there are.", "actor_group", "status")
	restartingActors = describe("partita_restarting_actors", "Actors that have failed and wait to be restarted.", "actor_group")
)

// What the application and its partitions tell.
var (
	application   = []string{"application"}
	statusChanges = describe("partita_actor_status_changes_total", "Changes of actors' statuses, by the new one.",
		"application", "actor_group", "status")
	appends       = describe("partita_appends_total", "Appends in one message that were written.", application...)
	transactions  = describe("partita_transactions_total", "Interactive transactions that were committed.", application...)
	refusals      = describe("partita_refusals_total", "Requests that a partition or a mailbox has refused.", "application", "reason")
	busyLimits    = describe("partita_busy_refusals_total", "Refusals since a bound was met, by the setting that is the bound.", "application", "limit")
	repeats       = describe("partita_repeated_appends_total", "Appends answered with what an earlier one of the same deduplication id has written.", application...)
	cacheMisses   = describe("partita_cache_misses_total", "Workspaces whose numbers were read from the store.", application...)
	openNow       = describe("partita_open_transactions", "Interactive transactions that are open.", application...)
	openOldest    = describe("partita_open_transaction_oldest_seconds", "How long the oldest open transaction is open.", application...)
	laneRequests  = describe("partita_lane_requests", "Requests that wait in lanes.", laneLabels...)
	laneBytes     = describe("partita_lane_bytes", "What requests that wait in lanes take of memory.", laneLabels...)
	laneLimit     = describe("partita_lane_limit_requests", "How many requests one lane takes.", "application", "actor_group")
	laneByteLimit = describe("partita_lane_limit_bytes", "How much memory the requests of one lane take at most.", "application", "actor_group")
	laneFullest   = describe("partita_lane_fullest_ratio", "How full the fullest lane is, by requests or bytes.", "application", "actor_group")
	replayed      = describe("partita_recovery_events", "Events that the last start of each partition has replayed, together.", application...)
	recovery      = describe("partita_recovery_seconds", "How long the slowest partition took from its last start until it took transactions.", application...)
	actualized    = describe("partita_actualizations_total", "How often partitions have replayed the tails of their logs.", application...)
	restarts      = describe("partita_partition_restarts_total", "Restarts of partitions after panics.", application...)
	flushFailures = describe("partita_flush_failures", "Failures in a row of the flush that has failed most often and is tried again.", application...)
	nearlyUsed    = describe("partita_nearly_used_sequences", "Sequences of which more than 90 % is used, as far as partitions list them.", application...)
	displaced     = describe("partita_store_displaced", "1 if the directory of the store is not under its name any more.", application...)

	laneLabels = []string{"application", "actor_group", "actor_key"}
)

// What the store tells.
var (
	events          = describe("partita_events_total", "Events that the log has.", application...)
	unflushed       = describe("partita_unflushed_events", "Events that the projections have not yet.", application...)
	unflushedBytes  = describe("partita_unflushed_bytes", "What they take of memory, as estimated.", application...)
	unflushedOldest = describe("partita_unflushed_oldest_seconds", "How long ago the oldest of them was registered.", application...)
	commitTime      = describe("partita_commit_duration_seconds", "How long commits of the log took, with the sync of the disk.", application...)
	commitEvents    = describe("partita_commit_events", "Events in a commit of the log.", application...)
	commitBytes     = describe("partita_commit_bytes", "Bytes of the events in a commit of the log.", application...)
	flushTime       = describe("partita_flush_duration_seconds", "How long flushes of projections took.", application...)
	flushEvents     = describe("partita_flush_events", "Events whose projections a flush has written.", application...)
	fileBytes       = describe("partita_file_bytes", "Size of a file of the store.", "application", "file")
	filePages       = describe("partita_file_pages", "Pages of a file of the store.", "application", "file")
	freePages       = describe("partita_file_free_pages", "Pages of a file of the store that are free to be written again.", "application", "file")
)

// What subscriptions tell.
var (
	subscriptionLabels = []string{"application", "subscription"}
	subscriptionLag    = describe("partita_subscription_lag_events", "Events that a subscription has not handled yet.", subscriptionLabels...)
	subscriptionBehind = describe("partita_subscription_lag_seconds", "How long ago the oldest of them was registered.", subscriptionLabels...)
	parked             = describe("partita_subscription_parked_events", "Events that a subscription has parked.", subscriptionLabels...)
	delivered          = describe("partita_subscription_delivered_total", "Events that a subscription has handled since it was started.", subscriptionLabels...)
	tries              = describe("partita_subscription_failed_tries", "Failures in a row of the handler, of the lane that has most.", subscriptionLabels...)
	subscriptionState  = describe("partita_subscription_status", "1 for the status that a subscription has.", "application", "subscription", "status")
)

// normal is the status of actors that are there.
const normal = "normal"

// tellsItself reports whether a group's actors have more statuses, which they tell themselves.
func tellsItself(group string) bool {
	return group == partitionGroup || group == "command-processor" || group == "lane" || partition.ActorKey{Group: group}.IsMember()
}

// collectGroups tells what actors have counted.
func collectGroups(to chan<- prometheus.Metric, groups []*group) {
	alive, restarting := make(map[string]int64), make(map[string]int64)
	for _, g := range groups {
		for _, c := range *g.cells.Load() {
			to <- prometheus.MustNewConstMetric(sentMessages, prometheus.CounterValue, float64(c.total()), g.key.Group, g.key.ID, c.message, c.protocol)
		}
		to <- prometheus.MustNewConstMetric(busyTime, prometheus.CounterValue, seconds(g.busy.Load()), g.key.Group, g.key.ID)
		alive[g.key.Group] += g.alive.Load()
		restarting[g.key.Group] += g.restarting.Load()
	}
	for name, n := range restarting {
		to <- prometheus.MustNewConstMetric(restartingActors, prometheus.GaugeValue, float64(n), name)
	}
	for name, n := range alive {
		if tellsItself(name) {
			continue
		}
		to <- prometheus.MustNewConstMetric(activeActors, prometheus.GaugeValue, float64(n), name, normal)
	}
}

// lookLimit is how long it may take to look up where subscriptions stand, and how large files are.
const lookLimit = 5 * time.Second

// collection looks up what one application has to tell.
type collection struct {
	*source
	to     chan<- prometheus.Metric
	keys   []string
	failed func()
	// states counts the actors of all applications by their groups and states.
	states map[string]*states
}

type states [messages.StateFailed + 1]int

func (c *collection) tell(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
	c.to <- prometheus.MustNewConstMetric(d, kind, value, c.labels(labels...)...)
}

// labels returns those given behind the application's name, as Prometheus takes them.
func (c *collection) labels(labels ...string) []string {
	all := append([]string{c.app.Name()}, labels...)
	for i := range all {
		all[i] = strings.ToValidUTF8(all[i], "\uFFFD")
	}
	return all
}

func (c *collection) gauge(d *prometheus.Desc, value float64, labels ...string) {
	c.tell(d, prometheus.GaugeValue, value, labels...)
}

func (c *collection) counter(d *prometheus.Desc, value uint64, labels ...string) {
	c.tell(d, prometheus.CounterValue, float64(value), labels...)
}

func (c *collection) spread(d *prometheus.Desc, s storage.Spread) {
	buckets := make(map[float64]uint64, len(s.Bounds))
	for i, bound := range s.Bounds {
		buckets[bound] = s.AtMost[i]
	}
	c.to <- prometheus.MustNewConstHistogram(d, s.Count, s.Sum, buckets, c.labels()...)
}

func (c *collection) collect() {
	ctx, cancel := context.WithTimeout(context.Background(), lookLimit)
	defer cancel()
	figures := c.app.Figures()
	c.statuses()
	c.counts(&figures.Counts)
	c.partitions(&figures)
	c.lanes(&figures)
	c.store(ctx, figures.At)
	c.subscriptions(ctx)
}

func (c *collection) statuses() {
	var events, actualizations, restarted uint64
	failures, used, isDisplaced := 0, 0, 0
	for _, s := range c.app.Status() {
		events += s.Replayed
		actualizations += s.Actualizations
		restarted += s.Restarts
		failures = max(failures, s.FlushFailures)
		used += len(s.NearlyUsed)
		if s.Displaced != nil {
			isDisplaced = 1
		}
	}
	for _, s := range c.app.Actors() {
		if c.states[s.Group] == nil {
			c.states[s.Group] = new(states)
		}
		c.states[s.Group][s.State]++
	}
	c.gauge(replayed, float64(events))
	c.counter(actualized, actualizations)
	c.counter(restarts, restarted)
	c.gauge(flushFailures, float64(failures))
	c.gauge(nearlyUsed, float64(used))
	c.gauge(displaced, float64(isDisplaced))
}

func (c *collection) counts(counts *partition.Counts) {
	for reason, n := range counts.Refusals {
		c.counter(refusals, n, reason)
	}
	for s, n := range counts.Changes {
		c.counter(statusChanges, n, partitionGroup, s.String())
	}
	for group, states := range counts.Moves {
		for s, n := range states {
			c.counter(statusChanges, n, group, s.String())
		}
	}
	for limit, n := range counts.Busy {
		c.counter(busyLimits, n, limit)
	}
	c.counter(repeats, counts.Repeats)
	c.counter(cacheMisses, counts.Reads)
}

func (c *collection) partitions(f *partition.AppFigures) {
	var appended, committed uint64
	var slowest, oldest time.Duration
	open := 0
	for i := range f.Partitions {
		p := &f.Partitions[i]
		appended += p.Appends
		committed += p.Transactions
		slowest = max(slowest, p.Recovery)
		if p.OpenSince != 0 {
			open++
			oldest = max(oldest, f.At.Sub(p.OpenSince.Time()))
		}
	}
	c.counter(appends, appended)
	c.counter(transactions, committed)
	c.gauge(recovery, slowest.Seconds())
	c.gauge(openNow, float64(open))
	c.gauge(openOldest, oldest.Seconds())
}

// lanes tells what waits at partitions and at command processors.
func (c *collection) lanes(f *partition.AppFigures) {
	of := make([]partition.LaneFigures, len(f.Partitions))
	for i := range f.Partitions {
		of[i] = f.Partitions[i].Requests
	}
	c.lanesOf(partitionGroup, of)
	c.lanesOf("command-processor", f.Processors)
	for _, g := range f.Groups {
		c.lanesOf(actors.MemberKey(g.Name).Group, g.Members)
	}
}

func (c *collection) lanesOf(group string, lanes []partition.LaneFigures) {
	if len(lanes) == 0 {
		return
	}
	var all partition.LaneFigures
	fullest, keyed := 0.0, slices.Contains(c.keys, group)
	for _, l := range lanes {
		all.Requests += l.Requests
		all.Bytes += l.Bytes
		fullest = max(fullest, float64(l.Requests)/float64(l.MostRequests), float64(l.Bytes)/float64(l.MostBytes))
		if keyed {
			c.gauge(laneRequests, float64(l.Requests), group, l.Key.ID)
			c.gauge(laneBytes, float64(l.Bytes), group, l.Key.ID)
		}
	}
	if !keyed {
		c.gauge(laneRequests, float64(all.Requests), group, "")
		c.gauge(laneBytes, float64(all.Bytes), group, "")
	}
	c.gauge(laneLimit, float64(lanes[0].MostRequests), group)
	c.gauge(laneByteLimit, float64(lanes[0].MostBytes), group)
	c.gauge(laneFullest, fullest, group)
}

func (c *collection) store(ctx context.Context, at time.Time) {
	if c.source.store == nil {
		return
	}
	f, err := c.source.store.Figures(ctx)
	if err != nil {
		c.failed()
	}
	c.counter(events, uint64(f.Events))
	c.gauge(unflushed, float64(f.UnflushedEvents))
	c.gauge(unflushedBytes, float64(f.UnflushedBytes))
	age := 0.0
	if f.Oldest != 0 {
		age = max(0, at.Sub(f.Oldest.Time()).Seconds())
	}
	c.gauge(unflushedOldest, age)
	c.spread(commitTime, f.CommitTime)
	c.spread(commitEvents, f.CommitEvents)
	c.spread(commitBytes, f.CommitBytes)
	c.spread(flushTime, f.FlushTime)
	c.spread(flushEvents, f.FlushEvents)
	for _, file := range f.Files {
		c.gauge(fileBytes, float64(file.Size), file.Name)
		if file.Pages > 0 {
			c.gauge(filePages, float64(file.Pages), file.Name)
			c.gauge(freePages, float64(file.FreePages), file.Name)
		}
	}
}

func (c *collection) subscriptions(ctx context.Context) {
	for s, err := range c.app.SubscriptionAdmin().List(ctx, "") {
		if errors.Is(err, partition.ErrKeepsNone) {
			return
		}
		if err != nil {
			c.failed()
			return
		}
		most := uint32(0)
		for _, l := range s.Lanes {
			most = max(most, l.Tries)
		}
		c.gauge(subscriptionLag, float64(s.Lag), s.Name)
		c.gauge(subscriptionBehind, s.Behind.Seconds(), s.Name)
		c.gauge(parked, float64(s.Parked), s.Name)
		c.counter(delivered, s.Delivered, s.Name)
		c.gauge(tries, float64(most), s.Name)
		c.gauge(subscriptionState, 1, s.Name, s.State.String())
	}
}
