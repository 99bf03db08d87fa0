package sim

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

var (
	flagSeeds = flag.Int("sim.seeds", 60, "how many seeds to run")
	flagSeed  = flag.Uint64("sim.seed", 0, "run this seed only, and print its history")
	flagFirst = flag.Uint64("sim.first", 1, "the first seed")
	flagTime  = flag.Duration("sim.time", 0, "run for so long instead of a number of seeds")
	flagFull  = flag.Bool("sim.matrix", false, "print the matrix; from 10,000 seeds on, fail if a cell is empty that can be hit")
)

// enough is how many seeds hit every cell of the matrix that can be hit.
const enough = 10_000

// simulate runs one seed, with whatever is to be changed before.
func simulate(t *testing.T, system *actor.ActorSystem, seed uint64, changes ...func(*sim)) (s *sim) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var err error
		if s, err = newSim(system, seed); err != nil {
			t.Fatal(err)
		}
		for _, change := range changes {
			change(s)
		}
		s.run()
	})
	return s
}

func TestSimulation(t *testing.T) {
	if *flagSeed != 0 {
		s := simulate(t, newSystem(), *flagSeed)
		fmt.Fprint(os.Stdout, s.history.String())
		if s.failure != "" {
			t.Fatalf("seed %d: %s", *flagSeed, s.failure)
		}
		return
	}
	var total figures
	system := newSystem()
	begun := time.Now()
	for i := 0; total.more(i, time.Since(begun)); i++ {
		if i%100 == 99 {
			system = newSystem() // it never forgets a supervisor, nor what that knows
		}
		seed := *flagFirst + uint64(i)
		s := simulate(t, system, seed)
		total.add(s)
		if s.failure != "" {
			fmt.Fprint(os.Stdout, s.history.String())
			t.Fatalf("seed %d: %s", seed, s.failure)
		}
	}
	fmt.Fprintln(os.Stdout, total.String())
	if !*flagFull {
		return
	}
	empty := total.matrix.report(os.Stdout, partitionView())
	empty = append(empty, total.lanes.report(os.Stdout, laneView())...)
	empty = append(empty, total.met.report(os.Stdout)...)
	for _, cell := range empty {
		if total.seeds >= enough {
			t.Errorf("never hit: %s", cell)
		}
	}
}

// figures are the sums over all seeds.
type figures struct {
	seeds, transactions, acknowledged, faults, deployments, steps int
	events                                                        uint64
	matrix, lanes                                                 matrix
	met                                                           situations
	// delivered, repeated and paged are the events that subscriptions have handled, those
	// that they were given again, and those that readers of the feed have seen.
	delivered, repeated, paged int
	// history is a hash of all histories.
	history [sha256.Size]byte
}

func (f *figures) more(i int, spent time.Duration) bool {
	if *flagTime > 0 {
		return spent < *flagTime
	}
	if testing.Short() {
		return i < max(1, *flagSeeds/5)
	}
	return i < *flagSeeds
}

func (f *figures) add(s *sim) {
	f.seeds++
	f.transactions += s.transactions
	f.acknowledged += s.ledger.acks
	f.faults += s.faults
	f.deployments += s.nodes
	f.steps += s.steps
	f.events += s.events
	f.matrix.add(&s.matrix)
	f.lanes.add(&s.lanes)
	f.met.add(&s.met)
	f.delivered += s.delivered
	f.repeated += s.repeated
	f.paged += s.paged
	one := s.hash()
	f.history = sha256.Sum256(append(f.history[:], one[:]...))
}

func (f *figures) String() string {
	return fmt.Sprintf("simulation: %d seeds, %d transactions, %d acknowledged, %d events in the logs, %d delivered, %d repeated, %d read by cursor, %d faults, %d deployments, %d steps, histories %x",
		f.seeds, f.transactions, f.acknowledged, f.events, f.delivered, f.repeated, f.paged, f.faults, f.deployments, f.steps, f.history[:6])
}
