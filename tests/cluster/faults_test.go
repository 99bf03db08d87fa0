package cluster

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fault is what happens to the nodes: it ends before hurt returns.
type fault struct {
	name string
	hurt func(c *cluster, l *load, owner, other string)
}

// pauseTime is how long a node is paused, cutTime for how long links are cut, in failovers.
const (
	pauseTime = 5 * time.Second
	cutTime   = 3
)

var faults = []fault{
	{"kill the owner", func(c *cluster, l *load, owner, _ string) {
		c.kill(owner)
		l.await(3)
		c.start(owner)
	}},
	{"kill a follower", func(c *cluster, l *load, _, other string) {
		c.kill(other)
		l.await(3)
		c.start(other)
	}},
	{"pause the owner", func(c *cluster, l *load, owner, _ string) { c.pause(l, owner) }},
	{"pause a follower", func(c *cluster, l *load, _, other string) { c.pause(l, other) }},
	{"restart the owner", func(c *cluster, l *load, owner, _ string) {
		c.stop(owner)
		l.await(3)
		c.start(owner)
	}},
	{"kill all", func(c *cluster, _ *load, _, _ string) {
		for _, name := range names {
			c.nodes[name].signal(syscall.SIGKILL)
		}
		for _, name := range names {
			c.kill(name)
			c.start(name)
		}
	}},
	{"cut the owner off", func(c *cluster, _ *load, owner, _ string) { c.cut(append(to(owner), from(owner)...)...) }},
	{"nobody hears the owner", func(c *cluster, _ *load, owner, _ string) { c.cut(from(owner)...) }},
	{"the owner hears nobody", func(c *cluster, _ *load, owner, _ string) { c.cut(to(owner)...) }},
	{"fill the owner's disk", func(c *cluster, l *load, _, _ string) { c.fillOwner(l) }},
	{"fill a follower's disk", func(c *cluster, l *load, _, _ string) { c.fillFollower(l) }},
	{"cut a follower off one way", func(c *cluster, _ *load, owner, other string) { c.cut(direction{owner, other}) }},
}

// from are the directions away from a node, to are those to it.
func from(node string) (all []direction) {
	for _, name := range names {
		if name != node {
			all = append(all, direction{node, name})
		}
	}
	return all
}

func to(node string) (all []direction) {
	for _, d := range from(node) {
		all = append(all, direction{d.to, d.from})
	}
	return all
}

// pause pauses a node. The others go on without it.
func (c *cluster) pause(l *load, name string) {
	c.nodes[name].signal(syscall.SIGSTOP)
	defer c.nodes[name].signal(syscall.SIGCONT)
	<-time.After(pauseTime)
	l.await(1)
}

// cut holds what goes in some directions for a while.
func (c *cluster) cut(all ...direction) {
	for _, d := range all {
		c.wires.hold(d)
		defer c.wires.heal(d)
	}
	<-time.After(cutTime * c.failover)
}

// TestClusterFaults hurts a cluster under load, again and again, and looks then at what is there. FAULTS=n says how often; all
// kinds come in turn. It hurts no more after CLUSTER_MINUTES.
func TestClusterFaults(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("each fault takes some seconds")
	}
	count, limit := number("FAULTS", 2), time.Duration(number("CLUSTER_MINUTES", 1000))*time.Minute
	first := rand.IntN(len(faults))
	if os.Getenv("FAULTS") != "" {
		first = 0
	}
	faults := faults
	c := newCluster(t, time.Duration(number("CLUSTER_FAILOVER_MS", 1000))*time.Millisecond, false, func(c *cluster) {
		if err := c.mount(); err != nil {
			say("no disk is filled: %v", err)
			faults = slices.DeleteFunc(slices.Clone(faults), func(f fault) bool { return strings.HasPrefix(f.name, "fill") })
		}
	})
	c.ready()
	l := c.load(number("CLUSTER_WRITERS", 6))
	a := c.audit(number("CLUSTER_AUDITS", 2))
	l.await(3)
	began := time.Now()
	pauses := make(map[string][]time.Duration)
	hurt := 0
	for i := range count {
		if time.Since(began) > limit {
			break
		}
		hurt++
		f := faults[(first+i)%len(faults)]
		owner := c.owner()
		other := names[(slices.Index(names, owner)+1+rand.IntN(2))%len(names)]
		l.await(3)
		f.hurt(c, l, owner, other)
		pause := max(l.await(3), l.worst())
		pauses[f.name] = append(pauses[f.name], pause)
		say("%d: %s: owner %s, other %s: longest pause of a client %v, %d acknowledged", i+1, f.name, owner, other, round(pause),
			l.acknowledged())
		if t.Failed() {
			break
		}
	}
	for _, f := range faults {
		if all := pauses[f.name]; len(all) > 0 {
			slices.Sort(all)
			say("%s, %d times: longest pause of a client median %v, most %v", f.name, len(all), round(all[len(all)/2]), round(all[len(all)-1]))
		}
	}
	if a.end(); !t.Failed() {
		say("the histories of %d operations of auditors are those of one node", len(a.ops))
	}
	c.operate("the same", "cluster", "compare", "--url", c.nodes[c.owner()].url)
	v := l.end()
	say("faults=%d in %v: %v", hurt, time.Since(began).Round(time.Second), v)
	if v.wrong() {
		t.Errorf("got %v", v)
	}
	for _, name := range names {
		c.stop(name)
	}
	c.verify()
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
