package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// say prints a line of what happens, for who has asked for it by make.
func say(format string, args ...any) {
	if os.Getenv("CLUSTER_SAY") != "" {
		_, _ = fmt.Fprintf(os.Stdout, "cluster: "+time.Now().Format("05.000 ")+format+"\n", args...)
	}
}

// number returns a number of the environment, or the default.
func number(name string, unset int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return unset
}

// handOver lets another node lead, as an operator does: again, if that has not kept up yet.
func (c *cluster) handOver(l *load, more int) {
	c.Helper()
	l.await(more)
	owner := c.owner()
	next := names[(slices.Index(names, owner)+1)%len(names)]
	c.operate("node "+next+" leads", "cluster", "transfer", "--to", next, "--shard", "0", "--url", c.nodes[owner].url)
	pause := l.await(more)
	out := c.operate(" leads, has ", "cluster", "status", "--url", c.nodes[owner].url)
	if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != c.shards*len(names) {
		c.Errorf("status: got %q", out)
	}
	say("handed over from %s to %s: the client that has waited longest had its next answer after %v", owner, next, round(pause))
}

// operate runs a command of the program until it has said something.
func (c *cluster) operate(want string, args ...string) string {
	c.Helper()
	for end := time.Now().Add(patience); ; <-time.After(100 * time.Millisecond) {
		out, err := exec.Command(program, args...).CombinedOutput()
		if err == nil && strings.Contains(string(out), want) {
			return string(out)
		}
		if time.Now().After(end) {
			c.Fatalf("partita %s: got %q, %v, want %q", strings.Join(args, " "), out, err, want)
		}
	}
}

// TestCluster starts three processes, loads them at all nodes, kills the owner, and brings it back. make cluster is this, with
// the program's own failover, and more load. The nodes know each other by certificates.
func TestCluster(t *testing.T) {
	t.Parallel()
	testCluster(t, number("CLUSTER_SHARDS", 1))
}

// TestClusterOfShards does the same with several owners.
func TestClusterOfShards(t *testing.T) {
	t.Parallel()
	testCluster(t, 3)
}

func testCluster(t *testing.T, shards int) {
	writers, more, kills := number("CLUSTER_WRITERS", 6), number("CLUSTER_APPENDS", 10), number("CLUSTER_KILLS", 2)
	c := newClusterOf(t, shards, time.Duration(number("CLUSTER_FAILOVER_MS", 1000))*time.Millisecond, true)
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
	c.handOver(l, more)
	c.lookAfter()
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
