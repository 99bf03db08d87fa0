package bolt

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/idsdb"
	"github.com/partita-go/partita/storage/replog"
	"github.com/partita-go/partita/storage/replog/memory"
	"github.com/partita-go/partita/storage/verify"
)

// lastOf returns the numbers of the last generators that a store knows.
func lastOf(t *testing.T, s *Store) (all []idsdb.Launch) {
	t.Helper()
	expect.NoError(t, s.launches.Read(t.Context(), func(f *boltfile.File) (err error) {
		all, err = idsdb.Launches(f)
		return err
	}))
	return all
}

// sameGenerators makes sure that all nodes have applied what one has, and know the same generators.
func (r *replicas) sameGenerators(t *testing.T, of *Store, want ...idsdb.Launch) {
	t.Helper()
	for _, n := range r.nodes {
		untilHead(t, n.store, of)
		expect.Equal(t, want, lastOf(t, n.store))
	}
}

// A generator has its number from the owner, whoever that is, and nobody who does not lead gives one. All nodes know it, and go
// on behind it, also when all were closed.
func TestGeneratorsOfReplicas(t *testing.T) {
	r, w := openThree(t)
	d := w.s.Descriptor()
	nextOf(t, w.s, 1, 1)
	nextOf(t, w.s, 1, 2)
	nextOf(t, w.s, 99_999, 1)
	r.sameGenerators(t, w.s, idsdb.Launch{Launch: 1, Last: 2}, idsdb.Launch{Launch: 99_999, Last: 1})
	for range 3 {
		_, err := r.nodes[1].store.NextGenerator(t.Context(), 1)
		expect.ErrorIs(t, err, replog.ErrNotOwner)
	}
	s := r.lead(t, 1)
	nextOf(t, s, 1, 3)
	w.s = r.lead(t, 0)
	nextOf(t, w.s, 1, 4)
	g, err := ids.NewDecimalGenerator(t.Context(), w.s, 99_999)
	expect.NoError(t, err)
	id, err := g.Next(t.Context())
	expect.NoError(t, err)
	expect.Equal(t, ids.DecimalID(10000299999), id)
	r.stop(t)
	r.start(t, d)
	nextOf(t, r.lead(t, 2), 1, 5)
	r.sameGenerators(t, r.nodes[2].store, idsdb.Launch{Launch: 1, Last: 5}, idsdb.Launch{Launch: 99_999, Last: 2})
	r.stop(t)
	for _, n := range r.nodes {
		report, err := Verify(t.Context(), n.dir, verify.Options{})
		expect.NoError(t, err)
		expect.NoError(t, report.Err())
	}
}

// Of many who take numbers beside appends each gets another one.
func TestGeneratorsOfReplicasBesideEachOther(t *testing.T) {
	r, w := openThree(t)
	const callers, each = 8, 10
	var wait sync.WaitGroup
	var mu sync.Mutex
	seen := make(map[uint32]bool)
	for range callers {
		wait.Go(func() {
			for range each {
				n, err := w.s.NextGenerator(t.Context(), 1)
				mu.Lock()
				if err != nil || seen[n] || n < 1 || n > callers*each {
					t.Errorf("got %d, %v, want another one of 1 to %d", n, err, callers*each)
				}
				seen[n] = true
				mu.Unlock()
			}
		})
	}
	w.append(1, 1, 1, 1, 1)
	wait.Wait()
	r.same(t, w.s, 6)
	r.sameGenerators(t, w.s, idsdb.Launch{Launch: 1, Last: callers * each})
}

// A number of which nobody was told is used up if the log has it. If it has not, it may be another generator's.
func TestUnknownGenerator(t *testing.T) {
	for fate, want := range map[memory.Fate]uint32{memory.Kept: 3, memory.Lost: 2, memory.Late: 2} {
		t.Run(fate.String(), func(t *testing.T) {
			r, w := openThree(t)
			nextOf(t, w.s, 1, 1)
			r.cluster.Doom("a", fate)
			n, err := w.s.NextGenerator(t.Context(), 1)
			expect.ErrorIs(t, err, messages.ErrOutcomeUnknown)
			expect.Equal(t, 0, n)
			s := r.lead(t, 1)
			nextOf(t, s, 1, want)
			r.cluster.Release()
			nextOf(t, s, 1, want+1)
			nextOf(t, r.lead(t, 0), 1, want+2) // which has noted one that is void
			r.sameGenerators(t, r.nodes[0].store, idsdb.Launch{Launch: 1, Last: want + 2})
		})
	}
}

// What log.db has of an entry ids.db has, too: a node that cannot note a number does not take the entry, and stops. The owner
// refuses what it cannot note, and leads on.
func TestGeneratorsAreNotedFirst(t *testing.T) {
	r, w := openThree(t)
	d := w.s.Descriptor()
	nextOf(t, w.s, 1, 1)
	stuck := r.nodes[2]
	untilHead(t, stuck.store, w.s)
	own := filesOf(t, stuck.dir)[format.IDsFileName]
	writeFiles(t, stuck.dir, map[string]string{format.IDsFileName: ""})
	nextOf(t, w.s, 1, 2)
	expect.ErrorIs(t, untilStopped(t, stuck), storage.ErrDamaged)
	if taken, head := stuck.store.log.Taken(), w.s.replica.head.Load(); taken != head-1 {
		t.Errorf("log.db is given entry %d, want that %d stays away", taken, head)
	}
	r.close(t, stuck)
	writeFiles(t, stuck.dir, map[string]string{format.IDsFileName: own})
	r.open(t, stuck, d)
	r.sameGenerators(t, w.s, idsdb.Launch{Launch: 1, Last: 2})

	own = filesOf(t, r.nodes[0].dir)[format.IDsFileName]
	writeFiles(t, r.nodes[0].dir, map[string]string{format.IDsFileName: ""})
	before := w.s.replica.head.Load()
	_, err := w.s.NextGenerator(t.Context(), 1)
	expect.ErrorIs(t, err, storage.ErrDamaged)
	expect.Equal(t, before, w.s.replica.head.Load())
	writeFiles(t, r.nodes[0].dir, map[string]string{format.IDsFileName: own})
	w.append(1)
	nextOf(t, w.s, 1, 3)
}

// A replica that is made anew gives no number that was given while its seed was written, before ids.db was read there or after
// that.
func TestSeededGenerators(t *testing.T) {
	for name, from := range map[string]int{"from the owner": 0, "from another one": 1} {
		t.Run(name, func(t *testing.T) {
			r, w := openThree(t)
			d := w.s.Descriptor()
			lost, source := r.nodes[2], r.nodes[from].store
			r.close(t, lost)
			given, phases := uint32(0), make(map[string]bool)
			seed := seedOf(t, source, func(phase string) {
				w.append(1)
				given, phases[phase] = given+1, true
				nextOf(t, w.s, 1, given)
				untilHead(t, source, w.s)
				expect.NoError(t, source.log.AwaitEntry(t.Context(), w.s.replica.head.Load()))
			})
			expect.Equal(t, map[string]bool{"copy state.db": true, "copy log.db": true, "copy ids.db": true}, phases)
			lost.dir = filepath.Join(t.TempDir(), "seeded")
			_, err := ReadSeed(t.Context(), bytes.NewReader(seed), lost.dir, CopyOptions{})
			expect.NoError(t, err)
			r.open(t, lost, d)
			nextOf(t, r.lead(t, 2), 1, given+1)
			r.sameGenerators(t, lost.store, idsdb.Launch{Launch: 1, Last: given + 1})
		})
	}
}

// Whoever takes ids.db slowly holds no number up.
func TestGeneratorsBesideASlowCopy(t *testing.T) {
	r, w := openThree(t)
	nextOf(t, w.s, 1, 1)
	taken := uint32(1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	meanwhile := func(p CopyProgress) {
		if !strings.Contains(p.Phase, format.IDsFileName) {
			return
		}
		taken++
		n, err := w.s.NextGenerator(ctx, 1)
		expect.NoError(t, err)
		expect.Equal(t, taken, n)
	}
	expect.NoError(t, w.s.WriteBackup(t.Context(), new(bytes.Buffer), CopyOptions{Progress: meanwhile}))
	expect.NoError(t, w.s.WriteSeed(t.Context(), new(bytes.Buffer), CopyOptions{Progress: meanwhile}))
	_, err := w.s.Backup(t.Context(), filepath.Join(t.TempDir(), "backup"), CopyOptions{Progress: meanwhile})
	expect.NoError(t, err)
	r.sameGenerators(t, w.s, idsdb.Launch{Launch: 1, Last: 4})
}

// A store of some partitions gives no numbers: another one of the application does.
func TestNoGenerators(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{NoGenerators: true})
	_, err := s.NextGenerator(t.Context(), 1)
	expect.ErrorIs(t, err, errors.ErrUnsupported)
}

// A replica whose ids.db is gone gives no number, and notes none: the other nodes go on with those that it has forgotten. So does
// one that was seeded, before an entry came.
func TestLostGenerators(t *testing.T) {
	r, w := openThree(t)
	d := w.s.Descriptor()
	nextOf(t, w.s, 1, 1)
	nextOf(t, w.s, 1, 2)
	seed := seedOf(t, w.s, func(string) {})
	lose := func(n *replicaNode) {
		r.close(t, n)
		expect.NoError(t, os.Remove(filepath.Join(n.dir, format.IDsFileName)))
		r.open(t, n, d)
	}
	refused := func(err error) {
		t.Helper()
		expect.ErrorIs(t, err, storage.ErrDamaged)
		if !strings.Contains(err.Error(), format.IDsFileName) {
			t.Errorf("got %v", err)
		}
	}
	noNumbers := func(n *replicaNode) {
		t.Helper()
		lose(n)
		_, err := r.lead(t, 2).NextGenerator(t.Context(), 1)
		refused(err)
		refused(n.store.WriteSeed(t.Context(), new(bytes.Buffer), CopyOptions{}))
		refused(n.store.WriteBackup(t.Context(), new(bytes.Buffer), CopyOptions{}))
		_, err = n.store.Launches(t.Context())
		refused(err)
		expect.Equal(t, "", filesOf(t, n.dir)[format.IDsFileName])
		w.s = r.lead(t, 0)
	}
	lost := r.nodes[2]
	untilHead(t, lost.store, w.s)
	r.close(t, lost)
	own := lost.dir
	lost.dir = filepath.Join(t.TempDir(), "seeded")
	_, err := ReadSeed(t.Context(), bytes.NewReader(seed), lost.dir, CopyOptions{})
	expect.NoError(t, err)
	r.open(t, lost, d)
	noNumbers(lost)
	r.close(t, lost)

	lost.dir = own
	r.open(t, lost, d)
	noNumbers(lost)
	nextOf(t, w.s, 1, 3)
	refused(untilStopped(t, lost))
	r.close(t, lost)
	report, err := Verify(t.Context(), lost.dir, verify.Options{})
	expect.NoError(t, err)
	if !strings.HasSuffix(report.Faults[0].Where, format.IDsFileName) || report.FaultCount != 1 {
		t.Errorf("got %+v", report.Faults)
	}
}

// Where a cluster was made of a backup, its launches stay closed: a node that has lost that gives no number either.
func TestLostGeneratorsOfABackup(t *testing.T) {
	dir := withGenerators(t)
	s, err := OpenExisting(t.Context(), dir, Options{})
	expect.NoError(t, err)
	d := s.Descriptor()
	expect.NoError(t, s.Close(t.Context()))
	r := &replicas{cluster: memory.NewCluster(7, "a"), nodes: []*replicaNode{{id: "a", dir: filepath.Join(t.TempDir(), "restored")}}}
	_, err = Restore(t.Context(), dir, r.nodes[0].dir, CopyOptions{})
	expect.NoError(t, err)
	r.start(t, d)
	takeOver(t, r.lead(t, 0), 0)
	r.stop(t)
	expect.NoError(t, os.Remove(filepath.Join(r.nodes[0].dir, format.IDsFileName)))
	r.start(t, d)
	_, err = r.lead(t, 0).NextGenerator(t.Context(), 1)
	expect.ErrorIs(t, err, storage.ErrDamaged)
}
