package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/verify"
)

// counter is something that is counted.
type counter int

const (
	acked counter = iota
	repeats
	reads
	refused
	unknown
	busy
	deployments
	starts
	unclean
	faults
	hangs
	deaths
	timeouts
	checked
	handled
	handledAgain
	parked
	positions
	exhausted
	counters
)

var counterNames = [counters]string{
	"acked", "repeats", "reads", "refused", "unknown", "busy", "deployments", "starts", "unclean-stops", "faults", "hangs", "dead-owners", "time-outs", "checked",
	"delivered", "delivered-again", "parked", "positions", "used-up",
}

// run is a soak.
type run struct {
	plan   plan
	random *rand.Rand
	counts [counters]atomic.Int64
	// appends and transactions are the latencies since the last sample.
	appends, transactions recorder
	out                   *json.Encoder
	samples               []sample
	began                 time.Time
	// loaded is how long the load has lasted in the stores before.
	loaded time.Duration

	mu      sync.Mutex
	trouble []string
}

func (r *run) count(c counter, n int) { r.counts[c].Add(int64(n)) }

// troublef notes something that must not happen.
func (r *run) troublef(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.trouble) < 20 {
		r.trouble = append(r.trouble, fmt.Sprintf(format, args...))
	}
}

func (r *run) checkTrouble(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, trouble := range r.trouble {
		t.Error(trouble)
	}
	r.trouble = nil
}

// TestSoak puts a full load on one store after the other. SOAK_TIME is how long in all,
// SOAK_DIR where, SOAK_DISK how large the files of one may become, SOAK_OUT a file for
// the samples.
func TestSoak(t *testing.T) {
	p := planned(t)
	t.Logf("SOAK_TIME=%v SOAK_DISK=%d SOAK_SEED=%d in %s", p.time, p.disk, p.seed, p.dir)
	r := &run{plan: p, random: rand.New(rand.NewPCG(p.seed, 0)), began: time.Now()}
	if p.out != "" {
		f, err := os.Create(p.out)
		must(t, err)
		defer func() { must(t, f.Close()) }()
		r.out = json.NewEncoder(f)
	}
	warm()
	// Two at least: what the later ones leave is compared with what the first one does.
	for store := uint64(0); (r.loaded < p.time || store < 2) && !t.Failed(); store++ {
		r.oneStore(t, store)
	}
	fmt.Fprintln(os.Stdout, r.String())
	if t.Failed() {
		return
	}
	required := []counter{acked, deployments, checked, handled, positions, exhausted}
	if p.time >= judged {
		required = append(required, parked, repeats, reads, unknown, faults, hangs, deaths, timeouts)
	}
	for _, c := range required {
		if r.counts[c].Load() == 0 {
			t.Errorf("no %s", counterNames[c])
		}
	}
	for _, v := range judge(r.samples, p.time >= judged) {
		fmt.Fprintln(os.Stdout, v)
		if !v.right() {
			t.Error(v)
		}
	}
}

func (r *run) String() string {
	line := fmt.Sprintf("soak: seconds=%.0f", r.loaded.Seconds())
	for c, name := range counterNames {
		line += fmt.Sprintf(" %s=%d", name, r.counts[c].Load())
	}
	return line
}

// oneStore puts the load on a new store, until it is large or has had its share of the
// time, and checks it.
func (r *run) oneStore(t *testing.T, n uint64) {
	t.Helper()
	dir := filepath.Join(r.plan.dir, fmt.Sprintf("store-%d", n))
	must(t, os.RemoveAll(dir))
	defer func() {
		if !t.Failed() {
			must(t, os.RemoveAll(dir))
		}
	}()
	clients := make([]*client, appenders+drafters+processors+transactions+readers)
	for i := range clients {
		clients[i] = newClient(r, uint64(i), n)
	}
	l := &load{run: r, dir: dir, clients: clients, subscribers: newSubscribers(r), store: int(n), began: time.Now()}
	sampling := l.startSampling(t)
	for !l.enough() && !t.Failed() {
		l.oneDeployment(t)
	}
	sampling()
	r.loaded += time.Since(l.began)
	l.catchUp(t)
	r.check(t, dir, clients, l.subscribers)
	r.checkTrouble(t)
	clear(clients)
	l.clients, l.subscribers = nil, nil
	r.rest(t, int(n))
}

// load is the load on one store.
type load struct {
	*run
	dir         string
	clients     []*client
	subscribers *subscribers
	store       int
	began       time.Time
	process     *process
}

// enough reports whether the store is as large as it may become, or has had its share.
func (l *load) enough() bool {
	since := time.Since(l.began)
	if since >= l.plan.time/stores || l.loaded+since >= l.plan.time {
		return true
	}
	logSize, stateSize := sizes(l.dir)
	return logSize+stateSize >= l.plan.disk
}

// oneDeployment deploys the application, lets clients work and faults happen, and ends it
// somehow.
func (l *load) oneDeployment(t *testing.T) {
	t.Helper()
	if l.process == nil {
		l.process = startProcess(t, l.run, l.dir)
	}
	d := l.process.deploy(t, l.run)
	l.subscribers.subscribe(t, d)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	working := d.start(ctx, l.clients)
	suffering, healed := context.WithCancel(ctx)
	var sufferer sync.WaitGroup
	faultsRandom := rand.New(rand.NewPCG(l.random.Uint64(), 1))
	sufferer.Go(func() { l.suffer(suffering, d, faultsRandom) })
	life := between(l.random, 2*l.plan.unit, 20*l.plan.unit)
	for until := time.Now().Add(life); time.Now().Before(until) && !l.enough(); {
		wait(ctx, min(200*time.Millisecond, time.Until(until)))
	}
	healed()
	sufferer.Wait()
	d.sound(t)
	how := ending(l.random.IntN(int(endings)))
	usable := d.end(t, l.run, how)
	if how != stopping {
		cancel()
	}
	working()
	d.hanging.Release()
	if how == stopping {
		l.undeployed(t, d.undeploy())
	}
	if !usable || l.random.IntN(2) == 0 {
		l.process.end(t, l.run)
		l.process = nil
	}
	l.checkTrouble(t)
}

// check checks a store at rest: every invariant that its files show, that it has
// everything that was acknowledged and nothing that was refused, and that all of it was
// delivered.
func (r *run) check(t *testing.T, dir string, clients []*client, subscribers *subscribers) {
	t.Helper()
	var faults []error
	must(t, bounded(func(ctx context.Context) error {
		report, err := bolt.Verify(ctx, dir, verify.Options{})
		if err := errors.Join(err, report.Err()); err != nil {
			return err
		}
		store, err := bolt.OpenExisting(ctx, dir, bolt.Options{ReadOnly: true})
		if err != nil {
			return err
		}
		faults = append(compare(ctx, store, clients), subscribers.compare(ctx, store)...)
		return store.Close(ctx)
	}))
	for i, fault := range faults {
		if i == 20 {
			t.Errorf("and %d more", len(faults)-i)
			break
		}
		t.Error(fault)
	}
	for _, c := range clients {
		n, faults := c.notes.close()
		for _, fault := range faults {
			t.Error(fault)
		}
		r.count(checked, n)
	}
}

// compare hands each event of the log to the client that has asked for it, and returns
// what is wrong.
func compare(ctx context.Context, store *bolt.Store, clients []*client) (faults []error) {
	for p := range messages.PartitionID(partitions) {
		for e, err := range store.PLog(ctx, p, 1) {
			if err != nil {
				return append(faults, err)
			}
			client, event, ok := parseBody(e.Body)
			if !ok || client >= uint64(len(clients)) {
				faults = append(faults, fmt.Errorf("partition %d, offset %d: got body %x, which nobody has asked for", p, e.PLogOffset, e.Body))
				continue
			}
			got := promiseOf(&e)
			if err := clients[client].notes.found(event, got.digest()); err != nil {
				faults = append(faults, fmt.Errorf("partition %d, offset %d: %w", p, e.PLogOffset, err))
			}
		}
	}
	return faults
}
