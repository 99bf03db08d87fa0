package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// lookAfter asks a node for what an operator wants to know of each shard.
func (c *cluster) lookAfter() {
	c.Helper()
	url := c.nodes["n1"].url
	c.operate("have the same", "cluster", "compare", "--url", url)
	metrics := c.text("n1", "/metrics", http.StatusOK)
	for shard := range c.shards {
		if want := fmt.Sprintf("partita_node_log_head{shard=\"%d\"}", shard); !strings.Contains(metrics, want) {
			c.Errorf("metrics: want %s", want)
		}
		c.operate("shops", "inspect", "--db", fmt.Sprintf("%s/shard-%d", c.path("n1"), shard))
	}
	c.text("n1", "/v1/store/server", http.StatusOK)
	if c.shards == 1 {
		c.text("n1", "/v1/store/inspect", http.StatusOK)
		return
	}
	c.text("n1", fmt.Sprintf("/v1/store/inspect?shard=%d", c.shards-1), http.StatusOK)
	for _, query := range []string{"", "?shard=x", fmt.Sprintf("?shard=%d", c.shards)} {
		if got := c.text("n1", "/v1/store/inspect"+query, http.StatusBadRequest); !strings.Contains(got, fmt.Sprintf("one of the %d stores", c.shards)) {
			c.Errorf("inspect%s: got %s, want it to say what to ask for", query, got)
		}
	}
	c.named()
}

// named waits until the metrics of all nodes name the application of each shard, where that runs.
func (c *cluster) named() {
	c.Helper()
	for end := time.Now().Add(patience); ; <-time.After(50 * time.Millisecond) {
		all, missing := "", 0
		for _, name := range names {
			all += c.text(name, "/metrics", http.StatusOK)
		}
		for shard := range c.shards {
			if !strings.Contains(all, fmt.Sprintf("partita_appends_total{application=\"shops/shard-%d\"}", shard)) {
				missing++
			}
		}
		if missing == 0 {
			return
		}
		if time.Now().After(end) {
			c.Fatalf("the metrics of %d shards are missing", missing)
		}
	}
}

// text asks a node, which must answer with a status.
func (c *cluster) text(name, path string, want int) string {
	c.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.nodes[name].url+path, nil)
	check(c, err)
	response, err := c.web.Do(request)
	check(c, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	check(c, err)
	if response.StatusCode != want {
		c.Errorf("node %s: %s: got %d, %s, want %d", name, path, response.StatusCode, content, want)
	}
	return string(content)
}
