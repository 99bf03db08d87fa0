package cluster

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/httpclient"
)

// TestJoin adds a fourth process to three, as an operator does, and takes one of the first away, under load.
func TestJoin(t *testing.T) {
	t.Parallel()
	const added = "n4"
	c := newCluster(t, time.Second, true)
	c.ready()
	// The clients read c.nodes: it has all of them before they begin.
	p := &process{name: added, url: "http://" + freeAddress(t), peer: freeAddress(t)}
	var err error
	p.client, err = httpclient.New(p.url, httpclient.Options{})
	check(t, err)
	c.nodes[added], c.keys[added] = p, c.newKeys(added)
	t.Cleanup(func() {
		c.kill(added)
		p.client.Close()
		if t.Failed() {
			t.Logf("node %s:\n%s", added, tail(p.text()))
		}
	})
	l := c.load(4)
	l.await(3)
	c.joined = "," + added + "=" + p.peer
	for _, name := range names {
		c.stop(name)
		c.start(name)
		c.owner()
		l.await(1)
	}
	say("three nodes know of %s", added)
	c.start(added, "--join")
	asked := c.nodes[names[0]].url
	c.operate("node n4 takes part", "cluster", "add", "--node", added, "--url", asked)
	l.await(3)
	say("%s takes part", added)
	c.operate("4 nodes have the same", "cluster", "compare", "--url", p.url)
	say("4 nodes have the same")
	lost := names[0]
	if c.owner() == lost {
		c.lead(names[1])
	}
	c.operate("node n1 takes no part any more", "cluster", "remove", "--node", lost, "--url", p.url)
	l.await(3)
	say("%s takes no part any more", lost)
	if out := c.operate("n4", "cluster", "status", "--url", p.url); strings.Count(out, "without a vote") != 1 {
		t.Errorf("status: got %q, want n1 alone without a vote", out)
	}
	l.ended.Store(true)
	l.all.Wait()
	response, err := http.Get(p.url + "/v1/workspaces/1/log?limit=1&at_least=1")
	check(t, err)
	check(t, response.Body.Close())
	if response.StatusCode != http.StatusOK {
		t.Errorf("node %s answers %s", added, response.Status)
	}
	for name := range c.nodes {
		c.stop(name)
	}
	c.verify()
}
