package bolt

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/faulty"
	"github.com/partita-go/partita/storage/replog"
	"github.com/partita-go/partita/storage/replog/memory"
	"github.com/partita-go/partita/storage/verify"
)

// seedOf returns a seed of a store. meanwhile is called whenever a file is written.
func seedOf(t *testing.T, s *Store, meanwhile func(phase string)) []byte {
	t.Helper()
	var b bytes.Buffer
	expect.NoError(t, s.WriteSeed(t.Context(), &b, CopyOptions{Progress: func(p CopyProgress) {
		if p.Done == p.Total {
			meanwhile(p.Phase)
		}
	}}))
	return b.Bytes()
}

// A node that has lost its disk or differs is made anew from another one, which may be any, while there are appends, flushes
// and moves. It goes on where its seed is, and ends like the others.
func TestSeededReplica(t *testing.T) {
	for name, from := range map[string]int{"from the owner": 0, "from another one": 1} {
		t.Run(name, func(t *testing.T) {
			r, w := subscribingThree(t)
			d := w.s.Descriptor()
			lost, source := r.nodes[2], r.nodes[from]
			r.close(t, lost)
			w.append(1, 2, 3)
			w.flush()
			next := uint64(1)
			seed := seedOf(t, source.store, func(phase string) {
				w.append(1, 4)
				w = takeOver(t, w.s, 0)
				if phase == "copy log.db" { // the tests' small map lets writers wait for who reads the pages of their file
					next++
					expect.NoError(t, w.s.MoveSubscription(t.Context(), moveTo("s", 0, next)))
					w.flush()
					_, err := source.store.replica.flush()
					expect.NoError(t, err)
				}
				for source.store.replica.head.Load() < w.s.replica.head.Load() {
					_, err := source.store.AwaitAny(t.Context(), 0)
					expect.NoError(t, err)
				}
				expect.NoError(t, source.store.log.AwaitEntry(t.Context(), w.s.replica.head.Load()))
			})
			w.append(5)
			lost.dir = filepath.Join(t.TempDir(), "seeded")
			copied, err := ReadSeed(t.Context(), bytes.NewReader(seed), lost.dir, CopyOptions{})
			expect.NoError(t, err)
			if copied.Position.Head == 0 || copied.Report.Events != uint64(copied.Events) {
				t.Errorf("got %+v", copied)
			}
			r.open(t, lost, d)
			r.same(t, w.s, int(w.s.lastLSN.Load()))
			r.sameSubscriptions(t, w.s)
			s := r.lead(t, 2)
			expect.Equal(t, next, positionOf(t, s))
			w = takeOver(t, s, 0)
			w.append(1)
			w.flush()
			r.same(t, s, int(s.lastLSN.Load()))
			r.stop(t)
			for _, n := range r.nodes {
				report, err := Verify(t.Context(), n.dir, verify.Options{})
				expect.NoError(t, err)
				expect.NoError(t, report.Err())
			}
		})
	}
}

// A seed has less of subscriptions.db than of log.db, where the node that it is from has. What is missing comes again.
func TestSeedOfWhoLacksChanges(t *testing.T) {
	r, w := subscribingThree(t)
	d := w.s.Descriptor()
	r.sameSubscriptions(t, w.s)
	source, lost := r.nodes[1], r.nodes[2]
	before := &faulty.CommitsOf(source.store.files.Subscriptions.Load()).Before
	before.Fail(errNoSpace)
	missed := moveTo("s", 0, 4)
	missed.Park = []storage.ParkedEvent{{Partition: 0, Offset: 1}}
	expect.NoError(t, w.s.MoveSubscription(t.Context(), missed))
	w.append(1)
	r.caughtUp(t, w.s)
	expect.NoError(t, source.store.log.AwaitEntry(t.Context(), w.s.replica.head.Load()))
	seed := seedOf(t, source.store, func(string) {})
	before.Clear()
	r.close(t, lost)
	lost.dir = filepath.Join(t.TempDir(), "seeded")
	_, err := ReadSeed(t.Context(), bytes.NewReader(seed), lost.dir, CopyOptions{})
	expect.NoError(t, err)
	r.open(t, lost, d)
	r.sameSubscriptions(t, w.s)
	r.same(t, w.s, 7)
}

// A seed is no backup, a backup is no seed, and a store that is no replica has none. What is cut off is none either.
func TestSeedIsNoBackup(t *testing.T) {
	r, w := subscribingThree(t)
	seed := seedOf(t, w.s, func(string) {})
	to := filepath.Join(t.TempDir(), "to")
	_, err := ReadBackup(t.Context(), bytes.NewReader(seed), to, CopyOptions{})
	expect.ErrorIs(t, err, ErrStream)
	_, err = ReadSeed(t.Context(), bytes.NewReader(streamed(t, w.s, CopyOptions{})), to, CopyOptions{})
	expect.ErrorIs(t, err, ErrStream)
	for n := 0; n < len(seed); n += len(seed)/16 + 1 {
		_, err := ReadSeed(t.Context(), bytes.NewReader(seed[:n]), to, CopyOptions{})
		expect.ErrorIs(t, err, ErrStream)
	}
	_, err = ReadSeed(t.Context(), bytes.NewReader(seed), to, CopyOptions{})
	expect.NoError(t, err)
	_, err = Open(t.Context(), to, w.s.Descriptor(), Options{})
	expect.ErrorIs(t, err, ErrReplica)
	alone := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	expect.ErrorIs(t, alone.WriteSeed(t.Context(), new(bytes.Buffer), CopyOptions{}), ErrReplica)
	r.stop(t)
	// Where the log does not have what comes behind it any more, it says so.
	other := memory.NewCluster(8, "a")
	_, err = Open(t.Context(), to, alone.Descriptor(), Options{Log: other.Log("a")})
	expect.ErrorIs(t, err, replog.ErrAhead)
}
