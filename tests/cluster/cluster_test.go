package cluster

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// say prints a line of what happens, for who has asked for it by make.
func say(format string, args ...any) {
	if os.Getenv("CLUSTER_SAY") != "" {
		fmt.Printf("cluster: "+format+"\n", args...)
	}
}

// number returns a number of the environment, or the default.
func number(name string, unset int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return unset
}

// TestCluster starts three processes, loads them at all nodes, kills the owner, and brings it back. make cluster is this, with
// the program's own failover, and more load. The nodes know each other by certificates.
func TestCluster(t *testing.T) {
	t.Parallel()
	writers, more, kills := number("CLUSTER_WRITERS", 6), number("CLUSTER_APPENDS", 10), number("CLUSTER_KILLS", 2)
	c := newCluster(t, time.Duration(number("CLUSTER_FAILOVER_MS", 1000))*time.Millisecond, true)
	took := c.ready()
	say("3 processes are ready after %v", took.Round(10*time.Millisecond))
	if os.Getenv("CLUSTER_SAY") != "" && took > 5*time.Second {
		t.Errorf("ready after %v, want at most 5 s", took)
	}
	l := c.load(writers)
	began := time.Now()
	l.await(more)
	say("%d clients append with keys at all nodes: %.0f a second", writers, float64(l.acknowledged())/time.Since(began).Seconds())
	for range kills {
		owner := c.owner()
		before := l.acknowledged()
		c.kill(owner)
		pause := l.await(more)
		say("killed %s with SIGKILL, which led, after %d appends; the client that has waited longest had its next answer after %v; %s leads",
			owner, before, pause.Round(10*time.Millisecond), c.owner())
		c.start(owner)
		l.await(more)
	}
	v := l.end()
	say("%v", v)
	if v.wrong() {
		t.Errorf("got %v", v)
	}
	for _, name := range names {
		c.stop(name)
	}
	c.verify()
	if !t.Failed() {
		say("every node has all that was acknowledged, once, without gaps, and the same; partita verify finds no fault")
	}
}
