package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/partita-go/partita/httpclient"
	"github.com/partita-go/partita/storage/replog/raftlog/keys"
)

// program is what the processes run.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "cluster")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = filepath.Join(dir, "partita")
	out, err := exec.Command("go", "build", "-o", program, "github.com/partita-go/partita/cmd/partita").CombinedOutput()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		os.Exit(1)
	}
	status := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

const descriptor = `application = "shops"
partitions = 4
[[kinds]]
kind = 1
name = "shop"
[[kinds.sequences]]
sequence = 16
name = "invoice"
initial = 1
`

// patience is how long anything may take on a machine that does something else.
const patience = 90 * time.Second

// names are those of the nodes.
var names = []string{"n1", "n2", "n3"}

// cluster is three processes.
type cluster struct {
	testing.TB
	dir      string
	shards   int
	failover time.Duration
	wires    *wires
	nodes    map[string]*process
	// joined is a node that was not there at first, as an item of --peers.
	joined string
	// keys are what each node is started with so that the others know it.
	keys    map[string][]string
	newKeys func(name string) []string
	// web has a connection for each client and node.
	web http.Client
}

// process is one of them. It keeps its ports when it is started again.
type process struct {
	name, url, peer string
	client          *httpclient.Client

	mu      sync.Mutex
	cmd     *exec.Cmd
	ended   chan struct{}
	log     bytes.Buffer
	stopped bool
}

// newCluster starts new nodes, of as many shards as the environment says. They know each other by certificates if they are
// secure. before is called before they start.
func newCluster(t testing.TB, failover time.Duration, secure bool, before ...func(*cluster)) *cluster {
	return newClusterOf(t, number("CLUSTER_SHARDS", 1), failover, secure, before...)
}

// newClusterOf starts new nodes of some shards.
func newClusterOf(t testing.TB, shards int, failover time.Duration, secure bool, before ...func(*cluster)) *cluster {
	c := &cluster{TB: t, dir: t.TempDir(), shards: shards, failover: failover, nodes: make(map[string]*process), keys: make(map[string][]string)}
	authority := keys.NewAuthority(t)
	c.newKeys = func(name string) []string {
		cert, key, ca := authority.Files(t, c.dir, name)
		return []string{"--peer-cert", cert, "--peer-key", key, "--peer-ca", ca}
	}
	c.web.Transport = &http.Transport{MaxIdleConnsPerHost: 512}
	check(t, os.WriteFile(c.path("application.toml"), []byte(descriptor), 0o600))
	for _, name := range names {
		p := &process{name: name, url: "http://" + freeAddress(t), peer: freeAddress(t)}
		var err error
		p.client, err = httpclient.New(p.url, httpclient.Options{MinDelay: 5 * time.Millisecond, MaxDelay: 50 * time.Millisecond})
		check(t, err)
		c.nodes[name] = p
		if secure {
			c.keys[name] = c.newKeys(name)
		}
	}
	c.wires = newWires(t, c.nodes)
	for _, do := range before {
		do(c)
	}
	t.Cleanup(func() {
		for _, name := range names {
			c.kill(name)
			c.nodes[name].client.Close()
			if t.Failed() {
				t.Logf("node %s:\n%s", name, tail(c.nodes[name].text()))
			}
			if dir := os.Getenv("CLUSTER_LOGS"); dir != "" {
				check(t, os.WriteFile(filepath.Join(dir, name+".log"), []byte(c.nodes[name].text()), 0o600))
			}
		}
	})
	for _, name := range names {
		c.start(name, "--create")
	}
	return c
}

// tail is the end of a log.
func tail(text string) string { return text[max(0, len(text)-4000):] }

func (c *cluster) path(name string) string { return filepath.Join(c.dir, name) }

// start starts a node. It may be called again when the node has ended.
func (c *cluster) start(name string, more ...string) {
	c.Helper()
	p := c.nodes[name]
	args := append([]string{
		"serve", "--node", name, "--peers", c.wires.peersOf(name) + c.joined, "--db", c.path(name), "--descriptor", c.path("application.toml"),
		"--listen", strings.TrimPrefix(p.url, "http://"), "--failover", c.failover.String(), "--log-level", "info",
		"--shards", strconv.Itoa(c.shards),
	}, more...)
	cmd := exec.Command(program, append(args, c.keys[name]...)...)
	cmd.Stdout, cmd.Stderr = p, p
	check(c, cmd.Start())
	ended := make(chan struct{})
	p.mu.Lock()
	p.cmd, p.ended, p.stopped = cmd, ended, false
	p.mu.Unlock()
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
}

// Write takes what the process says, and notes when: its own lines have whole seconds.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log.WriteString(time.Now().Format("05.000 "))
	return p.log.Write(b)
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// signal sends a signal to the process, if it runs, and returns what is closed when it has ended.
func (p *process) signal(s syscall.Signal) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(s)
		p.stopped = s == syscall.SIGSTOP
	}
	return p.ended
}

// kill ends a node at once.
func (c *cluster) kill(name string) {
	if ended := c.nodes[name].signal(syscall.SIGKILL); ended != nil {
		<-ended
	}
}

// stop ends a node as an operator does.
func (c *cluster) stop(name string) {
	c.Helper()
	select {
	case <-c.nodes[name].signal(syscall.SIGTERM):
	case <-time.After(patience):
		c.Errorf("node %s does not end", name)
		c.kill(name)
	}
}

// status is what a node answers about all: where it stands in the first shard, and all nodes in each.
type status struct {
	standing
	Members []standing `json:"members"`
}

// standing is where a node stands in a shard.
type standing struct {
	Shard   int    `json:"shard"`
	Node    string `json:"node"`
	Leader  string `json:"leader"`
	Serves  bool   `json:"serves"`
	Head    uint64 `json:"head,string"`
	Stopped string `json:"stopped"`
}

// of returns where a node stands in each shard.
func (s *status) of(name string) (all []standing) {
	for _, m := range s.Members {
		if m.Node == name {
			all = append(all, m)
		}
	}
	return all
}

// status asks one node where it stands.
func (c *cluster) status(name string) (s status, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	return s, getJSON(ctx, c.nodes[name].url+"/v1/cluster", &s)
}

// owner waits until a node serves as the owner, of the first shard, and returns its name.
func (c *cluster) owner() string {
	c.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		for _, name := range names {
			if c.isStopped(name) {
				continue
			}
			if s, err := c.status(name); err == nil && s.Serves && s.Leader == name {
				return name
			}
		}
	}
	c.Fatal("no node leads")
	return ""
}

func (c *cluster) isStopped(name string) bool {
	p := c.nodes[name]
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped
}

// ready waits until all nodes are ready, and returns how long that took.
func (c *cluster) ready() time.Duration {
	c.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, name := range names {
		if err := c.nodes[name].client.Ready(ctx); err != nil {
			c.Fatalf("node %s: %v", name, err)
		}
	}
	return time.Since(began)
}

func check(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
