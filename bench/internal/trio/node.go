package trio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/partita-go/partita/bench/internal/load"
)

// Command is the argument that makes this program a node; its config, as JSON, follows.
const Command = "node"

// config is what a node is started with.
type config struct {
	// Kind is what the node runs, Name its name.
	Kind, Name string
	// Peers are the addresses of all nodes for each other, by name.
	Peers map[string]string
	Dir   string
	// Failover is how long nobody is heard until another node wants to lead.
	Failover time.Duration
	// Callers is how many callers there are at most.
	Callers int
	// First is the index of the node's first caller among those of all nodes.
	First int
	// New says that the directory is to be made.
	New bool
}

// system is what a node runs.
type system interface {
	// Append appends a caller's next event, and returns when it is durable. With ids it tries again whatever
	// becomes of one try, so that the event is there once.
	Append(ctx context.Context, caller int, ids bool) error
	// Leads reports whether this node leads, and takes appends.
	Leads() bool
	// Stored counts the events that this node has.
	Stored(ctx context.Context) (uint64, error)
	Close(ctx context.Context) error
}

// partitas are what nodes of partita do besides.
type partitas interface {
	// Read reads the event that a caller has appended last.
	Read(ctx context.Context, caller int) error
	Transfer(ctx context.Context, to string) error
	// Head is how many entries the node has; Reigns counts how often it has begun to lead.
	Head() uint64
	Reigns() uint64
}

// newSystem are the kinds of nodes.
var newSystem = map[string]func(context.Context, config) (system, error){
	kindAlone: newAlone,
	kindTrio:  newMember,
	kindLog:   newLog,
	kindNATS:  newNATS,
	kindEtcd:  newEtcd,
}

// The kinds of nodes: partita alone, three nodes of it, three of its log without anything else, and three of its peers.
const (
	kindAlone = "alone"
	kindTrio  = "partita"
	kindLog   = "log"
	kindNATS  = "nats"
	kindEtcd  = "etcd"
)

// order is what a node is asked to do. It does one after the other.
type order struct {
	Do string
	// Load is for "append" and "read".
	Load loadOrder
	// Events is for "fill", To for "transfer".
	Events uint64
	To     string
}

// loadOrder is a load.
type loadOrder struct {
	Callers        int
	Warmup, Window time.Duration
}

// answer is what a node says.
type answer struct {
	Error string
	Leads bool
	// Latencies and Rate are a load's, Acknowledged is how many events it, or the load in the background, has had
	// acknowledged, Failed how many not.
	Latencies            load.Latencies
	Rate                 float64
	Acknowledged, Failed uint64
	// FirstError is why the first one failed.
	FirstError string
	// Pause is the longest time for which a caller has waited.
	Pause time.Duration
	// Value is a count.
	Value uint64
	Heap  Peaks
}

// orderLimit is how long an order may take, beside the time that it says itself.
const orderLimit = 10 * time.Minute

// Run is a node. It does what it reads, until there is no more to read.
func Run(ctx context.Context, arg string, stdin io.Reader, stdout io.Writer) error {
	var c config
	if err := json.Unmarshal([]byte(arg), &c); err != nil {
		return fmt.Errorf("%s: %w", Command, err)
	}
	start, ok := newSystem[c.Kind]
	if !ok {
		return fmt.Errorf("%s: got kind %q", Command, c.Kind)
	}
	s, err := start(ctx, c)
	if err != nil {
		return err
	}
	n := &node{config: c, system: s}
	n.heap = watchHeap(ctx)
	err = n.serve(ctx, stdin, stdout)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), orderLimit)
	defer cancel()
	return errors.Join(err, s.Close(closing))
}

// node does what it is told.
type node struct {
	config config
	system system
	heap   *heap
	// steady is the load in the background.
	steady *steady
}

func (n *node) serve(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	in, out := json.NewDecoder(stdin), json.NewEncoder(stdout)
	if err := out.Encode(answer{}); err != nil {
		return err
	}
	for {
		var o order
		if err := in.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		limited, cancel := context.WithTimeout(ctx, orderLimit+o.Load.Warmup+o.Load.Window)
		a, err := n.do(limited, o)
		cancel()
		if err != nil {
			a.Error = err.Error()
		}
		if err := out.Encode(a); err != nil {
			return err
		}
	}
}

// do does what every node can do.
func (n *node) do(ctx context.Context, o order) (a answer, err error) {
	switch o.Do {
	case "leads":
		a.Leads = n.system.Leads()
	case "append":
		return n.load(ctx, o.Load, func(ctx context.Context, caller int) error { return n.system.Append(ctx, caller, false) })
	case "fill":
		return n.fill(ctx, o.Load.Callers, o.Events)
	case "start":
		n.steady = startSteady(n.system, o.Load.Callers)
	case "mark":
		n.steady.mark()
	case "pause":
		a.Pause = n.steady.longest()
	case "stop":
		a.Acknowledged, err = n.steady.stop()
	case "stored":
		a.Value, err = n.system.Stored(ctx)
	case "peak":
		a.Heap = n.heap.peaks()
	default:
		p, ok := n.system.(partitas)
		if !ok {
			return a, fmt.Errorf("got order %q", o.Do)
		}
		return n.doPartita(ctx, o, p)
	}
	return a, err
}

// doPartita does what nodes of partita can do.
func (n *node) doPartita(ctx context.Context, o order, p partitas) (a answer, err error) {
	switch o.Do {
	case "read":
		return n.load(ctx, o.Load, p.Read)
	case "transfer":
		err = p.Transfer(ctx, o.To)
	case "head":
		a.Value = p.Head()
	case "reigns":
		a.Value = p.Reigns()
	default:
		err = fmt.Errorf("got order %q", o.Do)
	}
	return a, err
}

// grace is how long calls may take that are under way when a load ends.
const grace = 30 * time.Second

func (n *node) load(ctx context.Context, o loadOrder, do func(context.Context, int) error) (answer, error) {
	got, err := load.Load{Callers: o.Callers, Warmup: o.Warmup, Window: o.Window, Grace: grace}.Run(ctx, do)
	a := answer{Latencies: got.Latencies, Rate: got.Rate(), Acknowledged: got.Acknowledged, Failed: got.Failed}
	if got.FirstError != nil {
		a.FirstError = got.FirstError.Error()
	}
	return a, err
}
