package trio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"time"

	"github.com/partita-go/partita/bench/internal/load"
)

// many is how many callers there are under full load, readers how many that read, beside how many append while a node
// hands over or is killed, in each node.
const (
	many    = 256
	readers = 64
	beside  = 32
)

// Options are those of a run.
type Options struct {
	// Dir is a directory on the disk to measure.
	Dir string
	// Repeat is how often what is compared is measured, in turn.
	Repeat int
	// Warmup and Window are of each load.
	Warmup, Window time.Duration
	// Failover is that of partita and etcd. JetStream has none that could be set.
	Failover time.Duration
	// HandOvers is how many there are in each repeat.
	HandOvers int
	// Steady is for how long nobody may begin to lead, under full load.
	Steady time.Duration
	// Behind is how many events a node lacks that catches up.
	Behind uint64
	// Only chooses what is measured.
	Only *regexp.Regexp
	// Stderr is told what is under way.
	Stderr io.Writer
}

// measurement is something to be measured.
type measurement struct {
	name string
	// repeated says that it is measured in each turn.
	repeated bool
	do       func(ctx context.Context, o Options, f *Figures) error
}

// measurements are all, in their order.
var measurements = []measurement{
	{"alone", true, measureAlone},
	{"partita", true, measurePartita},
	{"log", true, measureLog},
	{"nats", true, func(ctx context.Context, o Options, f *Figures) error { return measurePeer(ctx, o, f, kindNATS) }},
	{"etcd", true, func(ctx context.Context, o Options, f *Figures) error { return measurePeer(ctx, o, f, kindEtcd) }},
	{"steady", false, measureSteady},
	{"behind", false, measureBehind},
}

// Measure measures, and returns the figures that there are, also with an error; nil if there is nothing to measure.
func Measure(ctx context.Context, o Options) (*Figures, error) {
	if !slices.ContainsFunc(measurements, func(m measurement) bool { return o.Only.MatchString(m.name) }) {
		return nil, fmt.Errorf("-only: got nothing that matches %v", o.Only)
	}
	f := new(Figures)
	for turn := range o.Repeat {
		for _, m := range measurements {
			if !o.Only.MatchString(m.name) || turn > 0 && !m.repeated {
				continue
			}
			began := time.Now()
			if err := m.do(ctx, o, f); err != nil {
				return f, fmt.Errorf("%s: %w", m.name, err)
			}
			fmt.Fprintf(o.Stderr, "turn %d: %s: %v\n", turn+1, m.name, time.Since(began).Round(time.Second))
		}
	}
	return f, nil
}

// within starts nodes, lets something be done with them, looks what is stored, and ends them.
func within(ctx context.Context, o Options, kind string, do func(*nodes) error) error {
	n, err := start(ctx, o, kind)
	if err != nil {
		return err
	}
	if err = do(n); err == nil {
		err = n.check(ctx)
	}
	return errors.Join(err, n.close())
}

// speed measures appends with many callers, and with one, at the node that leads.
func (n *nodes) speed(ctx context.Context, o Options, f *Figures, kind string) error {
	for _, callers := range []int{many, 1} {
		a, err := n.load(ctx, o, "append", callers)
		if err != nil {
			return err
		}
		n.acknowledged += a.Acknowledged
		if callers == 1 {
			f.add(kind+"/one/p50", a.Latencies.P50.Seconds()*1000)
			continue
		}
		f.add(kind+"/many/rate", a.Rate)
		f.add(kind+"/many/p50", a.Latencies.P50.Seconds()*1000)
		f.add(kind+"/many/p99", a.Latencies.P99.Seconds()*1000)
	}
	return nil
}

// load loads the node that leads.
func (n *nodes) load(ctx context.Context, o Options, do string, callers int) (answer, error) {
	r, err := n.leader(ctx)
	if err != nil {
		return answer{}, err
	}
	a, err := r.do(order{Do: do, Load: loadOrder{Callers: callers, Warmup: o.Warmup, Window: o.Window}})
	n.tellFailed(do, a)
	return a, err
}

// tellFailed says that calls have failed, as they do if another node is elected on a machine that has much other work.
func (n *nodes) tellFailed(what string, a answer) {
	if a.Failed > 0 {
		fmt.Fprintf(n.stderr, "%s: %d calls have failed, %d have not: %s\n", what, a.Failed, a.Acknowledged, a.FirstError)
	}
}

func measureAlone(ctx context.Context, o Options, f *Figures) error {
	return within(ctx, o, kindAlone, func(n *nodes) error { return n.speed(ctx, o, f, kindAlone) })
}

func measureLog(ctx context.Context, o Options, f *Figures) error {
	return within(ctx, o, kindLog, func(n *nodes) error { return n.speed(ctx, o, f, kindLog) })
}

func measurePartita(ctx context.Context, o Options, f *Figures) error {
	return within(ctx, o, kindTrio, func(n *nodes) error {
		if err := n.speed(ctx, o, f, kindTrio); err != nil {
			return err
		}
		if err := n.reads(ctx, o, f); err != nil {
			return err
		}
		if err := n.handOvers(ctx, o, f); err != nil {
			return err
		}
		return n.killed(ctx, f, kindTrio)
	})
}

func measurePeer(ctx context.Context, o Options, f *Figures, kind string) error {
	return within(ctx, o, kind, func(n *nodes) error {
		if err := n.speed(ctx, o, f, kind); err != nil {
			return err
		}
		return n.killed(ctx, f, kind)
	})
}

// reads measures verified reads of what the callers have appended.
func (n *nodes) reads(ctx context.Context, o Options, f *Figures) error {
	a, err := n.load(ctx, o, "read", readers)
	if err != nil {
		return err
	}
	f.add("read/rate", a.Rate)
	f.add("read/p50", a.Latencies.P50.Seconds()*1000)
	return nil
}

// settle is how long a load in the background runs before something happens, and afterwards.
const settle = 1500 * time.Millisecond

// beneath loads some nodes, marks the beginning, lets something happen, and returns the longest time for which a caller has
// waited since the mark.
func (n *nodes) beneath(ctx context.Context, some []*remote, after time.Duration, happens func() error) (time.Duration, error) {
	if _, err := each(some, order{Do: "mark"}); err != nil {
		return 0, err
	}
	if err := happens(); err != nil {
		return 0, err
	}
	if err := load.Pause(ctx, after); err != nil {
		return 0, err
	}
	answers, err := each(some, order{Do: "pause"})
	longest := time.Duration(0)
	for _, a := range answers {
		longest = max(longest, a.Pause)
	}
	return longest, err
}

// background starts a load in some nodes, and returns what ends it.
func (n *nodes) background(ctx context.Context, some []*remote) (end func() error, err error) {
	if _, err := each(some, order{Do: "start", Load: loadOrder{Callers: beside}}); err != nil {
		return nil, err
	}
	return func() error {
		answers, err := each(some, order{Do: "stop"})
		for _, a := range answers {
			n.acknowledged += a.Acknowledged
		}
		return err
	}, load.Pause(ctx, settle)
}

// handOvers measures for how long callers in all nodes wait while one node hands over to the next.
func (n *nodes) handOvers(ctx context.Context, o Options, f *Figures) error {
	end, err := n.background(ctx, n.all)
	if err != nil {
		return err
	}
	quiet, err := n.beneath(ctx, n.all, settle, func() error { return nil })
	if err != nil {
		return err
	}
	f.add("hand-over/none", quiet.Seconds()*1000)
	for i := range o.HandOvers {
		owner, err := n.leader(ctx)
		if err != nil {
			return err
		}
		others := n.others(owner)
		to := others[i%len(others)]
		longest, err := n.beneath(ctx, n.all, settle, func() error {
			if _, err := owner.do(order{Do: "transfer", To: to.config.Name}); err != nil {
				fmt.Fprintln(n.stderr, "hand-over:", err) // it leads on, and the pause counts
			}
			return nil
		})
		if err != nil {
			return err
		}
		f.add("hand-over/pause", longest.Seconds()*1000)
	}
	return end()
}

// killed measures for how long callers in the two other nodes wait when the one that leads is killed.
func (n *nodes) killed(ctx context.Context, f *Figures, kind string) error {
	leader, err := n.leader(ctx)
	if err != nil {
		return err
	}
	others := n.others(leader)
	end, err := n.background(ctx, others)
	if err != nil {
		return err
	}
	longest, err := n.beneath(ctx, others, settle, func() error {
		leader.kill()
		_, err := n.leader(ctx)
		return err
	})
	if err != nil {
		return err
	}
	f.add(kind+"/kill/pause", longest.Seconds()*1000)
	return end()
}

// measureSteady counts who begins to lead under full load.
func measureSteady(ctx context.Context, o Options, f *Figures) error {
	return within(ctx, o, kindTrio, func(n *nodes) error {
		before, err := n.reigns()
		if err != nil {
			return err
		}
		o.Window = o.Steady
		a, err := n.load(ctx, o, "append", many)
		if err != nil {
			return err
		}
		n.acknowledged += a.Acknowledged
		after, err := n.reigns()
		f.add("steady/elections", float64(after-before))
		f.add("steady/rate", a.Rate)
		f.add("steady/longest", a.Latencies.Max.Seconds()*1000)
		return err
	})
}

// reigns counts how often the nodes have begun to lead.
func (n *nodes) reigns() (count uint64, err error) {
	answers, err := each(n.living(), order{Do: "reigns"})
	for _, a := range answers {
		count += a.Value
	}
	return count, err
}
