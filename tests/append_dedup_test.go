package tests

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/storagetest"
)

// memory is what a deployment has appended, to be repeated later.
type memory struct {
	all []recalled
	n   uint64
}

type recalled struct {
	begun
	each []messages.Appended
}

// add appends something new with an id of its own in each of some workspaces: one
// event in the first, two in the second, and so on. All have the same id.
func (m *memory) add(t testing.TB, d *deployment, workspaces ...messages.WSID) {
	t.Helper()
	m.n++
	for i, ws := range workspaces {
		b := begun{Workspace: ws, ID: idOf(0, m.n)}
		for range i + 1 {
			b.Bodies = append(b.Bodies, fmt.Sprintf("%d of %d in %d", len(b.Bodies), m.n, ws))
		}
		each := must(b.send(limit(t), d.app, nil))(t)
		if each[0].Repeated || len(each) != i+1 {
			t.Errorf("got %+v for %d new events", each, i+1)
		}
		m.all = append(m.all, recalled{b, each})
	}
}

// repeat repeats everything: each answer is the first one, also if the workspace has
// moved on from what is expected, and other content under the same id is refused.
// Nothing is written.
func (m *memory) repeat(t testing.TB, d *deployment) {
	t.Helper()
	last := d.ends(t)
	for i := range m.all {
		r := &m.all[i]
		for _, expected := range []*messages.WLogOffset{nil, new(messages.WLogOffset(0)), new(messages.WLogOffset(1_000_000))} {
			r.same(t, must(r.send(limit(t), d.app, expected))(t))
		}
		for _, other := range r.others() {
			_, err := d.appendAll(t, partition.AppendTo{Workspace: r.Workspace, Kind: kindShop, DedupID: r.ID}, other)
			wantError(t, err, messages.ErrDedupMismatch)
		}
	}
	if now := d.ends(t); !reflect.DeepEqual(now, last) {
		t.Errorf("the logs end at %v after repetitions, want %v", now, last)
	}
}

// same checks the answer to a repetition.
func (r *recalled) same(t testing.TB, again []messages.Appended) {
	t.Helper()
	if len(again) != len(r.each) {
		t.Errorf("got %d events again, want %d", len(again), len(r.each))
		return
	}
	for i, a := range again {
		if !a.Repeated {
			t.Errorf("%s: it is not said to be a repetition", r.Bodies[i])
		}
		a.Repeated = false
		want := r.each[i]
		want.Repeated = false
		if !reflect.DeepEqual(a, want) {
			t.Errorf("%s: got %+v again, the first answer was %+v", r.Bodies[i], a, want)
		}
	}
}

// others are drafts that differ from an append's: in one of all things.
func (r *recalled) others() [][]messages.Draft {
	last := len(r.Bodies) - 1
	changed := func(change func(*messages.Draft)) []messages.Draft {
		drafts := r.drafts()
		change(&drafts[last])
		return drafts
	}
	more := append(r.drafts(), messages.Draft{Body: []byte("one more")})
	others := [][]messages.Draft{
		changed(func(d *messages.Draft) { d.Body = []byte("other") }),
		changed(func(d *messages.Draft) { d.Wanted[0].Count = 2 }),
		changed(func(d *messages.Draft) { d.Wanted[0].Seq = seqReceipt }),
		changed(func(d *messages.Draft) { d.Records[0].Data = []byte("other") }),
		changed(func(d *messages.Draft) { d.Records[1].New = false }),
		changed(func(d *messages.Draft) { d.Records = d.Records[1:] }),
		more,
	}
	if last > 0 {
		others = append(others, r.drafts()[:last])
	}
	return others
}

func (d *deployment) appendAll(t testing.TB, to partition.AppendTo, drafts []messages.Draft) ([]messages.Appended, error) {
	t.Helper()
	to.Wait = true
	return must(d.app.SequencerOf(to.Workspace))(t).AppendAll(limit(t), to, drafts)
}

// ends returns where the partitions' logs end.
func (d *deployment) ends(t testing.TB) []messages.PLogOffset {
	t.Helper()
	ends := make([]messages.PLogOffset, d.app.Partitions())
	for p := range ends {
		ends[p] = d.register(t, messages.PartitionID(p)).Last
	}
	return ends
}

// TestAppendRepeated: an id names one append of its workspace for the life of the
// log: before and after flushes, over restarts and crashes, when state.db is
// rebuilt, and whatever else was appended since.
func TestAppendRepeated(t *testing.T) {
	// Two workspaces share a partition, the others do not.
	all := []messages.WSID{2, 4, 3}
	for name, settings := range map[string]partition.Settings{"flushing often": often, "never flushing": neverFlushed()} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, 2, settings)
			// Whoever appends loads numbers and ids again and again.
			s.app.CacheNumbers = 1
			m := &memory{}
			for round := range 6 {
				d := s.run(t)
				m.repeat(t, d)
				for range 4 {
					m.add(t, d, all...)
				}
				m.repeat(t, d)
				if settings == often {
					s.flushedTo(t, d, 0)
					s.flushedTo(t, d, 1)
					m.repeat(t, d)
				}
				d.invoice(t, 2, messages.Number(5*round+5))
				if round%2 == 0 {
					d.crash(t)
				} else {
					d.stop(t)
				}
				if round > 2 {
					s.deleteState(t)
				}
			}
			d := s.run(t)
			m.repeat(t, d)
			d.stop(t)
		})
	}
}

// handledAppends is an observer that counts the appends that a partition has taken
// in, and notes the workspaces whose numbers it has loaded.
type handledAppends struct {
	*pulse
	mu     sync.Mutex
	n      map[string]int
	loaded map[messages.WSID]bool
}

func (s *site) countAppends() *handledAppends {
	h := &handledAppends{pulse: s.pulse, n: make(map[string]int), loaded: make(map[messages.WSID]bool)}
	s.options.Observer = h
	return h
}

func (h *handledAppends) Handled(k actors.Key, m any) {
	h.mu.Lock()
	switch m := m.(type) {
	case *messages.Append:
		h.n[k.ID]++
	case *messages.Loaded:
		h.loaded[m.Numbers.Workspace] = true
	}
	h.mu.Unlock()
	h.pulse.Handled(k, m)
}

func (h *handledAppends) hasLoaded(all map[messages.WSID]bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for ws := range all {
		if !h.loaded[ws] {
			return false
		}
	}
	return true
}

func (h *handledAppends) of(p messages.PartitionID) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.n[p.String()]
}

// crowd is callers whose appends wait at their partitions together while an earlier
// one is in the store's hands.
type crowd struct {
	gate *storagetest.Gate
	// first is the append that they wait for.
	first   chan error
	answers []chan answer
	count   *handledAppends
	want    map[messages.PartitionID]int
	// workspaces are those of each partition.
	workspaces map[messages.PartitionID]map[messages.WSID]bool
}

type answer struct {
	each []messages.Appended
	err  error
}

// holdFirst lets an append of a workspace be under way until the crowd is let go.
// It must be the first that the faulty store sees next.
func (s *site) holdFirst(t testing.TB, d *deployment, ws messages.WSID) *crowd {
	t.Helper()
	c := &crowd{
		gate: storagetest.NewGate(), first: make(chan error, 1), count: s.options.Observer.(*handledAppends),
		want: make(map[messages.PartitionID]int), workspaces: make(map[messages.PartitionID]map[messages.WSID]bool),
	}
	for p := range messages.PartitionID(d.app.Partitions()) {
		c.want[p], c.workspaces[p] = c.count.of(p), make(map[messages.WSID]bool)
	}
	s.faults.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: storagetest.Hold(c.gate), Times: 1})
	sequencer := must(d.app.SequencerOf(ws))(t)
	c.want[d.app.PartitionOf(ws)]++
	go func() {
		_, err := sequencer.Append(limit(t), partition.AppendTo{Workspace: ws, Kind: kindShop}, messages.Draft{Body: []byte("first")})
		c.first <- err
	}()
	check(t, c.gate.Await(limit(t)))
	return c
}

// join lets a caller append. Its answer has the index that join returns.
func (c *crowd) join(t testing.TB, d *deployment, b *begun) int {
	t.Helper()
	one := make(chan answer, 1)
	c.answers = append(c.answers, one)
	p := d.app.PartitionOf(b.Workspace)
	c.want[p]++
	c.workspaces[p][b.Workspace] = true
	go func() {
		each, err := b.send(limit(t), d.app, nil)
		one <- answer{each, err}
	}()
	return len(c.answers) - 1
}

// gathered waits until a partition has taken in the appends of all who joined, and
// has the numbers of their workspaces: then they go into its next batch.
func (c *crowd) gathered(t testing.TB, s *site, p messages.PartitionID) {
	t.Helper()
	s.await(t, "the appends are taken in", func() bool {
		return c.count.of(p) == c.want[p] && c.count.hasLoaded(c.workspaces[p])
	})
}

// all returns all answers.
func (c *crowd) all() []answer {
	all := make([]answer, 0, len(c.answers))
	for _, one := range c.answers {
		all = append(all, <-one)
	}
	return all
}

// TestAppendSameIDAtOnce: a hundred callers append under the same id at the same
// time, in two workspaces, over a store that flushes all the time. The event is
// written once in each, and all get the same answer.
func TestAppendSameIDAtOnce(t *testing.T) {
	s := newSite(t, 1, often)
	d := s.run(t)
	const callers = 2 * 100
	for round := range uint64(10) {
		start := make(chan struct{})
		var answers [2][callers / 2]answer
		var all sync.WaitGroup
		for i := range callers {
			b := &begun{Workspace: messages.WSID(i % 2), ID: idOf(1, round), Bodies: []string{fmt.Sprint("round ", round), "and more"}[:1+round%2]}
			all.Go(func() {
				<-start
				each, err := b.send(limit(t), d.app, nil)
				answers[i%2][i/2] = answer{each, err}
			})
		}
		close(start)
		all.Wait()
		for ws := range answers {
			sameAnswer(t, answers[ws][:])
		}
		if end, want := d.ends(t)[0], messages.PLogOffset((round+1)/2*6+(round+1)%2*2); end != want {
			t.Fatalf("round %d: the log ends at %d, want %d", round, end, want)
		}
	}
	d.stop(t)
}

// sameAnswer checks that one of many appends under the same id has written, and that
// all got its answer.
func sameAnswer(t testing.TB, answers []answer) {
	t.Helper()
	wrote := 0
	for _, a := range answers {
		check(t, a.err)
		if !a.each[0].Repeated {
			wrote++
		}
	}
	if wrote != 1 {
		t.Errorf("%d of %d appends under the same id were told that they wrote, want 1", wrote, len(answers))
	}
	for _, a := range answers {
		for i := range a.each {
			got, want := a.each[i], answers[0].each[i]
			got.Repeated, want.Repeated = false, false
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got answers %+v and %+v under the same id", got, want)
			}
		}
	}
}

// TestAppendSameIDInFlight: the callers stand in one batch, and whatever becomes of
// that, one of them writes and all are answered alike. Others with other content are
// refused, and get a number less.
func TestAppendSameIDInFlight(t *testing.T) {
	for name, effect := range map[string]storagetest.Effect{
		"written":           {},
		"unknown, done":     storagetest.UnknownDone(),
		"unknown, not done": storagetest.UnknownNotDone(),
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, 1, often)
			s.faulty = true
			s.countAppends()
			d := s.run(t)
			c := s.holdFirst(t, d, 7)
			if name != "written" {
				s.faults.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: effect, Times: 1})
			}
			const callers = 30
			same := &begun{Workspace: 8, ID: idOf(2, 1), Bodies: []string{"a", "b", "c"}}
			c.join(t, d, same)
			c.gathered(t, s, 0)
			other := &begun{Workspace: 8, ID: idOf(2, 1), Bodies: []string{"a", "b", "x"}}
			for range callers - 1 {
				c.join(t, d, same)
				c.join(t, d, other)
			}
			c.gathered(t, s, 0)
			c.gate.Release()
			check(t, <-c.first)
			answers := c.all()
			alike := answers[:1:1]
			for i, a := range answers[1:] {
				if i%2 == 0 {
					alike = append(alike, a)
				} else {
					wantError(t, a.err, messages.ErrDedupMismatch)
				}
			}
			sameAnswer(t, alike)
			if end := d.ends(t)[0]; end != 4 {
				t.Errorf("the log ends at %d, want 4", end)
			}
			d.stop(t)
		})
	}
}

// TestAppendNotAnsweredBeforeDurable: the store goes away while a batch is in its
// hands. If it has not written it, nobody is told that it did, whoever writes and
// whoever only has the id of one who does; all find out with the id what became of
// it.
func TestAppendNotAnsweredBeforeDurable(t *testing.T) {
	for name, effect := range map[string]func(*storagetest.Gate) storagetest.Effect{
		"not written": storagetest.Hold, "written": storagetest.HoldAnswer,
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, 1, shortStop(neverFlushed()))
			s.faulty = true
			s.countAppends()
			d := s.run(t)
			c := s.holdFirst(t, d, 7)
			gate := storagetest.NewGate()
			s.faults.Plant(storagetest.Fault{Op: storagetest.OpAppend, Do: effect(gate), Times: 1})
			one, two := &begun{Workspace: 7, ID: idOf(3, 1), Bodies: []string{"one", "more"}}, &begun{Workspace: 8, ID: idOf(3, 1), Bodies: []string{"two"}}
			for range 5 {
				c.join(t, d, one)
				c.join(t, d, two)
			}
			c.gathered(t, s, 0)
			c.gate.Release()
			check(t, gate.Await(limit(t)))
			d.crash(t)
			for _, a := range c.all() {
				switch {
				case a.err == nil:
					t.Errorf("it was answered by %+v while it was in the store's hands", a.each)
				case name == "written":
					wantError(t, a.err, messages.ErrOutcomeUnknown)
				}
			}
			check(t, <-c.first)
			gate.Release()

			s.faulty = false
			s.app.Settings.StopLimit = 0 // a clean stop takes what the disk takes
			d = s.run(t)
			for _, b := range []*begun{one, two} {
				each := must(b.send(limit(t), d.app, nil))(t)
				if written := name == "written"; each[0].Repeated != written {
					t.Errorf("got repeated %v, want %v", each[0].Repeated, written)
				}
				each = must(b.send(limit(t), d.app, nil))(t)
				if !each[0].Repeated {
					t.Error("it was written twice")
				}
			}
			if end := d.ends(t)[0]; end != 4 {
				t.Errorf("the log ends at %d, want 4", end)
			}
			d.stop(t)
		})
	}
}

// TestAppendRetryStorm: when all callers only repeat what is there, nothing is
// written and all are answered; others get on meanwhile.
func TestAppendRetryStorm(t *testing.T) {
	s := newSite(t, 1, partition.Settings{FlushThreshold: 60, FlushInterval: time.Hour})
	d := s.run(t)
	m := &memory{}
	for range 20 { // some of it is flushed, some is not
		m.add(t, d, 1, 2, 3)
	}
	end := d.ends(t)[0]
	storm := func(ctx context.Context, callers, times int) *sync.WaitGroup {
		all := new(sync.WaitGroup)
		for i := range callers {
			all.Go(func() {
				for n := i; n < i+times && ctx.Err() == nil; n++ {
					r := &m.all[n*7%len(m.all)]
					each, err := r.send(limit(t), d.app, nil)
					if err != nil {
						t.Error(err)
						return
					}
					r.same(t, each)
				}
			})
		}
		return all
	}
	storm(limit(t), 64, 30).Wait()
	if now := d.ends(t)[0]; now != end {
		t.Errorf("the log ends at %d after repetitions, want %d", now, end)
	}

	ctx, cancel := context.WithCancel(limit(t))
	all := storm(ctx, 64, 1<<30)
	for n := messages.Number(1); n <= 10; n++ {
		d.invoice(t, 7, 2*n-1)
		each := must((&begun{Workspace: 7, ID: idOf(4, uint64(n)), Bodies: []string{"fresh"}}).send(ctx, d.app, nil))(t)
		if got := each[0].Numbers[0].Number; got != 2*n || each[0].Repeated {
			t.Errorf("got %+v amidst the storm, want number %d", each[0], 2*n)
		}
	}
	cancel()
	all.Wait()
	if now := d.ends(t)[0]; now != end+20 {
		t.Errorf("the log ends at %d, want %d", now, end+20)
	}
	d.stop(t)
}

// TestAppendRepeatedWhileFlushing: an append that is repeated at once finds its first
// event wherever a flush is just moving it, while commits of other partitions let it
// wait between the two looks that the store takes.
func TestAppendRepeatedWhileFlushing(t *testing.T) {
	s := newSite(t, 4, partition.Settings{FlushThreshold: 1, FlushInterval: time.Millisecond})
	s.options.Observer = nil
	d := s.run(t)
	ctx := limit(t)
	callers, times := 24, setting("REPEATS", unlessShort(60))
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for n := range times {
				r := recalled{begun: begun{Workspace: messages.WSID(i), ID: idOf(uint64(i), uint64(n)), Bodies: []string{fmt.Sprint(n)}}}
				var err error
				if r.each, err = r.send(ctx, d.app, nil); err != nil {
					t.Error(err)
					return
				}
				for range 3 {
					again, err := r.send(ctx, d.app, nil)
					if err != nil {
						t.Error(err)
						return
					}
					r.same(t, again)
				}
			}
		})
	}
	all.Wait()
	for p, end := range d.ends(t) {
		if want := messages.PLogOffset(callers / 4 * times); end != want {
			t.Errorf("partition %d: the log ends at %d, want %d", p, end, want)
		}
	}
	d.stop(t)
}
