package tests

import (
	"crypto/sha256"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An exchange lets the name that a child has opened its store by mean another one's directory.
type exchange struct {
	name string
	// prepare returns the name to open ours by, and where the child works then; chdir is where it goes to.
	prepare func(t *testing.T, ours, theirs *crash) (name, workDir, chdir string)
	// let exchanges them, unless the child does it itself.
	let func(t *testing.T, name string, ours, theirs *crash)
}

var exchanges = []exchange{
	{
		name: "link",
		prepare: func(t *testing.T, ours, _ *crash) (string, string, string) {
			link := filepath.Join(t.TempDir(), "current")
			check(t, os.Symlink(ours.dir, link))
			return link, "", ""
		},
		let: func(t *testing.T, link string, _, theirs *crash) {
			check(t, os.Symlink(theirs.dir, link+".new"))
			check(t, os.Rename(link+".new", link))
		},
	},
	{
		name: "moved",
		prepare: func(_ *testing.T, ours, _ *crash) (string, string, string) {
			return ours.dir, "", ""
		},
		let: func(t *testing.T, name string, ours, theirs *crash) {
			check(t, os.Rename(name, name+".away"))
			check(t, os.Rename(theirs.dir, name))
			ours.site, theirs.site = ours.at(name+".away"), theirs.at(name)
		},
	},
	{
		name: "working directory",
		prepare: func(_ *testing.T, ours, theirs *crash) (string, string, string) {
			return filepath.Base(ours.dir), filepath.Dir(ours.dir), filepath.Dir(theirs.dir)
		},
		let: func(*testing.T, string, *crash, *crash) {},
	},
}

// TestCrashExchanged lets a child open its store, and then lets the name that it was opened by mean another store, which
// was killed: there a second child goes on, or nobody. The first one works on, and is stopped or killed. No file of
// the other store has been touched by it, and both stores have all that was acknowledged.
func TestCrashExchanged(t *testing.T) {
	rounds := max(2*len(exchanges), setting("CRASH_KILLS", unlessShort(18))/3)
	seed := uint64(setting("CRASH_SEED", int(time.Now().UnixNano()%1_000_000)))
	t.Logf("CRASH_SEED=%d, %d rounds", seed, rounds)
	random := rand.New(rand.NewPCG(seed, 1))
	kills := 0
	for n := range rounds {
		e := exchanges[n%len(exchanges)]
		r := exchanged{exchange: e, lives: n/len(exchanges)%2 == 1, stops: random.IntN(2) == 0, pause: []string{"opened", "ready"}[random.IntN(2)]}
		t.Run(r.String(), func(t *testing.T) { kills += r.run(t, random) })
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("exchanged: stores=%d kills=%d touched=0 lost=0", rounds, kills)
}

// exchanged is a round.
type exchanged struct {
	exchange
	// lives says that the other store has a process of its own while the first one goes on.
	lives bool
	// stops says that the first process stops orderly.
	stops bool
	// pause is the phase behind which the name is exchanged.
	pause string
}

func (r *exchanged) String() string {
	what := r.name + ", " + r.pause
	if r.lives {
		what += ", the other lives"
	}
	if r.stops {
		what += ", stops"
	}
	return what
}

// run returns how many processes were killed.
func (r *exchanged) run(t *testing.T, random *rand.Rand) (kills int) {
	t.Helper()
	ours, theirs := newNeighbour(t), newNeighbour(t)
	if !theirs.strike(t, blow{name: "the other", phase: "ready", acks: 50 + random.IntN(300)}, random.Uint64()) {
		t.Fatal("the other store was not killed")
	}
	name, workDir, chdir := r.prepare(t, ours, theirs)
	config := ours.load(random.Uint64())
	config.Dir, config.Pause, config.Chdir = name, r.pause, chdir
	b := blow{name: r.String(), phase: "ready", acks: 1 + random.IntN(300), after: time.Duration(random.IntN(20)) * time.Millisecond}
	if r.stops {
		b.phase, config.StopAfter = "never", 100
	}
	cmd := ours.command(t, config)
	cmd.Dir = workDir
	stdin := must(cmd.StdinPipe())(t)
	var before map[string][sha256.Size]byte
	end := func() {}
	b.pause = r.pause
	b.paused = func() {
		r.let(t, name, ours, theirs)
		if before = sums(t, theirs.dir); r.lives {
			end = theirs.live(t, random.Uint64())
		}
		check(t, stdin.Close())
	}
	killed := ours.watch(t, cmd, b)
	end()
	if killed == r.stops || before == nil {
		t.Fatalf("killed %v, exchanged %v", killed, before != nil)
	}
	if !r.lives && !maps.Equal(before, sums(t, theirs.dir)) {
		t.Fatal("a file of the other store was touched")
	}
	for _, c := range []*crash{theirs, ours} {
		c.rebuildable = true
		c.examine(t, b, afterwards(random.IntN(3)))
	}
	return map[bool]int{true: 1}[killed] + map[bool]int{true: 2, false: 1}[r.lives]
}

// newNeighbour makes a site whose directory can be moved.
func newNeighbour(t *testing.T) *crash {
	t.Helper()
	c := newCrash(t)
	c.site = c.at(filepath.Join(c.dir, "store"))
	check(t, os.Mkdir(c.dir, 0o700))
	return c
}

// live lets a child go on in a store, and returns when it has acknowledged something. It is killed by end, which waits for
// that.
func (c *crash) live(t *testing.T, seed uint64) (end func()) {
	t.Helper()
	kill, dealt, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		b := blow{name: "the other lives", phase: "ready", acks: 20, hold: kill, dealt: func() { close(dealt) }}
		if !c.strike(t, b, seed) {
			t.Error("the other process has ended by itself")
		}
	}()
	select {
	case <-dealt:
	case <-ended:
	}
	return func() {
		close(kill)
		<-ended
	}
}

// sums returns what is in a directory.
func sums(t *testing.T, dir string) map[string][sha256.Size]byte {
	t.Helper()
	all := make(map[string][sha256.Size]byte)
	for _, e := range must(os.ReadDir(dir))(t) {
		all[e.Name()] = sha256.Sum256(must(os.ReadFile(filepath.Join(dir, e.Name())))(t))
	}
	return all
}
