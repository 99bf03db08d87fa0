package trio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/partita-go/partita/bench/internal/load"
	"github.com/partita-go/partita/bench/internal/process"
)

// names are those of three nodes.
var names = []string{"n1", "n2", "n3"}

// remote is a node's process.
type remote struct {
	config  config
	command *exec.Cmd
	stdin   io.WriteCloser
	in      *json.Encoder
	out     *json.Decoder
	// dead says that it was killed.
	dead bool
}

// startNode starts a node, and waits until it is there if wait is set; else the first order waits.
func startNode(c config, stderr io.Writer) (*remote, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	arg, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	r := &remote{config: c, command: exec.Command(self, Command, string(arg))} //nolint:gosec // it is this program
	r.command.Stderr = stderr
	process.EndWithParent(r.command)
	if r.stdin, err = r.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := r.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.in, r.out = json.NewEncoder(r.stdin), json.NewDecoder(out)
	return r, r.command.Start()
}

// read reads what the node says.
func (r *remote) read() (a answer, err error) {
	if err := r.out.Decode(&a); err != nil {
		return a, fmt.Errorf("node %s: %w", r.config.Name, err)
	}
	if a.Error != "" {
		return a, fmt.Errorf("node %s: %s", r.config.Name, a.Error)
	}
	return a, nil
}

// do lets the node do something.
func (r *remote) do(o order) (answer, error) {
	if err := r.in.Encode(o); err != nil {
		return answer{}, fmt.Errorf("node %s: %w", r.config.Name, err)
	}
	return r.read()
}

// kill ends the node at once.
func (r *remote) kill() {
	r.dead = true
	_ = r.command.Process.Kill()
	_ = r.command.Wait()
}

// stop lets the node end.
func (r *remote) stop() error {
	if r.dead {
		return nil
	}
	r.dead = true
	_ = r.stdin.Close()
	kill := time.AfterFunc(time.Minute, func() { _ = r.command.Process.Kill() })
	defer kill.Stop()
	if err := r.command.Wait(); err != nil {
		return fmt.Errorf("node %s: %w", r.config.Name, err)
	}
	return nil
}

// nodes are one or three nodes that have their events together.
type nodes struct {
	dir    string
	all    []*remote
	stderr io.Writer
	// acknowledged counts events.
	acknowledged uint64
}

// start starts nodes of a kind, with callers in each of them.
func start(ctx context.Context, o Options, kind string) (n *nodes, err error) {
	n = &nodes{stderr: o.Stderr}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	if n.dir, err = os.MkdirTemp(o.Dir, "bench-"+kind+"-"); err != nil {
		return nil, err
	}
	own := names
	if kind == kindAlone {
		own = names[:1]
	}
	peers, err := freeAddresses(own)
	if err != nil {
		return nil, err
	}
	for i, name := range own {
		r, err := startNode(config{
			Kind: kind, Name: name, Peers: peers, Dir: filepath.Join(n.dir, name), Failover: o.Failover, Callers: many, First: i * many, New: true,
		}, o.Stderr)
		if err != nil {
			return nil, err
		}
		n.all = append(n.all, r)
	}
	for _, r := range n.all {
		if _, err := r.read(); err != nil {
			return nil, err
		}
	}
	_, err = n.leader(ctx)
	return n, err
}

// freeAddresses returns addresses that nobody listens at.
func freeAddresses(of []string) (map[string]string, error) {
	addresses := make(map[string]string)
	for _, name := range of {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() //nolint:gocritic // all are held until the last one is there
		addresses[name] = l.Addr().String()
	}
	return addresses, nil
}

// leadLimit is how long it may take until a node leads.
const leadLimit = time.Minute

// leader waits until a node leads, and returns it.
func (n *nodes) leader(ctx context.Context) (*remote, error) {
	ctx, cancel := context.WithTimeout(ctx, leadLimit)
	defer cancel()
	for {
		for _, r := range n.living() {
			a, err := r.do(order{Do: "leads"})
			if err != nil {
				return nil, err
			}
			if a.Leads {
				return r, nil
			}
		}
		if err := load.Pause(ctx, 10*time.Millisecond); err != nil {
			return nil, fmt.Errorf("no node leads: %w", err)
		}
	}
}

func (n *nodes) living() []*remote {
	return slices.DeleteFunc(slices.Clone(n.all), func(r *remote) bool { return r.dead })
}

// others returns the living nodes but one.
func (n *nodes) others(than *remote) []*remote {
	return slices.DeleteFunc(n.living(), func(r *remote) bool { return r == than })
}

// each lets some nodes do the same.
func each(some []*remote, o order) (answers []answer, err error) {
	for _, r := range some {
		a, err := r.do(o)
		if err != nil {
			return answers, err
		}
		answers = append(answers, a)
	}
	return answers, nil
}

// check looks whether all that was acknowledged is stored. What was not may be there, too.
func (n *nodes) check(ctx context.Context) error {
	r, err := n.leader(ctx)
	if err != nil {
		return err
	}
	a, err := r.do(order{Do: "stored"})
	if err == nil && a.Value < n.acknowledged {
		err = fmt.Errorf("got %d events stored, %d were acknowledged", a.Value, n.acknowledged)
	}
	return err
}

// close ends all nodes, and removes what they have.
func (n *nodes) close() (err error) {
	for _, r := range n.all {
		err = errors.Join(err, r.stop())
	}
	return errors.Join(err, os.RemoveAll(n.dir))
}
