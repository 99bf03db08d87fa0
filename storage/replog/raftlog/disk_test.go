package raftlog

import (
	"errors"
	"sync"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/replog"
)

var errEIO = errors.New("input/output error")

// faultyDisk fails by command, once, and counts what comes behind that.
type faultyDisk struct {
	mu sync.Mutex
	// entries and terms say what fails next. What fails is written all the same, as with a failed sync.
	entries, terms bool
	failed         bool
	behind         int
	// reads counts reads of an entry; the third one fails if it is not nil.
	reads map[uint64]int
}

// fail says whether a write fails.
func (d *faultyDisk) fail(armed *bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed {
		d.behind++
	}
	if *armed {
		*armed, d.failed = false, true
		return errEIO
	}
	return nil
}

func (d *faultyDisk) arm(what *bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	*what = true
}

type faultyEntries struct {
	raft.LogStore
	d *faultyDisk
}

func (s faultyEntries) StoreLogs(es []*raft.Log) error {
	return errors.Join(s.LogStore.StoreLogs(es), s.d.fail(&s.d.entries))
}

func (s faultyEntries) GetLog(index uint64, e *raft.Log) error {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if s.d.reads != nil {
		if s.d.reads[index]++; s.d.reads[index] > 2 {
			return errEIO
		}
	}
	return s.LogStore.GetLog(index, e)
}

type faultyTerms struct {
	raft.StableStore
	d *faultyDisk
}

func (s faultyTerms) SetUint64(key []byte, value uint64) error {
	return errors.Join(s.StableStore.SetUint64(key, value), s.d.fail(&s.d.terms))
}

// newFaulty is a cluster, the first node of which has a faulty disk.
func newFaulty(t testing.TB) (*rig, *faultyDisk) {
	d := &faultyDisk{}
	return newRig(t, newCluster(t, newInProcess(), func(id replog.NodeID, o *Options) {
		if id == nodes[0] {
			o.store = func(below raft.LogStore) raft.LogStore { return faultyEntries{below, d} }
			o.stable = func(below raft.StableStore) raft.StableStore { return faultyTerms{below, d} }
		}
	})), d
}

// stopped waits until the first node has stopped, and checks that its disk was not written again.
func (r *rig) stopped(d *faultyDisk) {
	r.Helper()
	l := r.await(nodes[0], "it has stopped", func(l replog.Leadership) bool { return l.Stopped != nil })
	if !errors.Is(l.Stopped, ErrDisk) || !errors.Is(l.Stopped, errEIO) || l.Term != 0 {
		r.Fatalf("got %+v", l)
	}
	if err := r.append(nodes[0], "more"); !errors.Is(err, replog.ErrNotOwner) {
		r.Fatalf("append: got %v, want ErrNotOwner", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.behind > 0 {
		r.Fatalf("the disk was written %d times after it has failed", d.behind)
	}
}

// goOn lets the others lead, and the first one come back.
func (r *rig) goOn() {
	r.Helper()
	r.stop(nodes[0])
	r.lead(nodes[1])
	r.must(nodes[1], 3)
	if err := r.start(nodes[0], r.books[nodes[0]]); err != nil {
		r.Fatal(err)
	}
	r.catchUp(nodes[0], nodes[1])
}

// TestGuard lets one write fail. Nothing is written after that.
func TestGuard(t *testing.T) {
	t.Parallel()
	d := &faultyDisk{}
	store := raft.NewInmemStore()
	var told []error
	g := &guard{
		LogStore: faultyEntries{store, d}, stable: faultyTerms{store, d}, fail: func(err error) { told = append(told, err) },
	}
	if err := g.StoreLog(&raft.Log{Index: 1}); err != nil {
		t.Fatal(err)
	}
	d.arm(&d.entries)
	for range 2 {
		if err := g.StoreLog(&raft.Log{Index: 2}); !errors.Is(err, ErrDisk) || !errors.Is(err, errEIO) {
			t.Errorf("got %v", err)
		}
	}
	ended := make(chan bool, 1)
	go func() {
		defer func() { ended <- true }()
		_ = g.SetUint64([]byte("term"), 2)
		ended <- false
	}()
	if !<-ended {
		t.Error("a term was stored, or its caller goes on")
	}
	if err := g.DeleteRange(1, 1); !errors.Is(err, ErrDisk) {
		t.Errorf("delete: got %v", err)
	}
	if len(told) != 1 || d.behind != 0 {
		t.Errorf("told %v, %d writes behind that", told, d.behind)
	}
}

func TestFailedSyncOfTheLeader(t *testing.T) {
	t.Parallel()
	r, d := newFaulty(t)
	r.lead(nodes[0])
	r.must(nodes[0], 3)
	d.arm(&d.entries)
	if err := r.append(nodes[0], "doubtful"); !errors.Is(err, messages.ErrOutcomeUnknown) {
		t.Fatalf("got %v, want ErrOutcomeUnknown", err)
	}
	r.stopped(d)
	r.goOn()
}

func TestFailedSyncOfAFollower(t *testing.T) {
	t.Parallel()
	r, d := newFaulty(t)
	r.lead(nodes[1])
	r.must(nodes[1], 3)
	r.catchUp(nodes[0], nodes[1])
	d.arm(&d.entries)
	r.must(nodes[1], 3)
	r.stopped(d)
	r.must(nodes[1], 3)
	r.goOn()
}

// TestVoteThatCannotBeStored would end the process: raft panics.
func TestVoteThatCannotBeStored(t *testing.T) {
	t.Parallel()
	t.Run("for another node", func(t *testing.T) {
		t.Parallel()
		r, d := newFaulty(t)
		d.arm(&d.terms)
		r.lead(nodes[1])
		r.stopped(d)
		r.must(nodes[1], 3)
		r.goOn()
	})
	t.Run("for itself", func(t *testing.T) {
		t.Parallel()
		r, d := newFaulty(t)
		r.lead(nodes[1])
		d.arm(&d.terms)
		_ = r.log(nodes[1]).Transfer(r.ctx, nodes[0])
		r.stopped(d)
		r.goOn()
	})
}

// TestCommittedEntryThatCannotBeRead would end the process too.
func TestCommittedEntryThatCannotBeRead(t *testing.T) {
	t.Parallel()
	r, d := newFaulty(t)
	r.lead(nodes[1])
	r.must(nodes[1], 3)
	r.catchUp(nodes[0], nodes[1])
	r.stop(nodes[0])
	d.mu.Lock()
	d.reads = make(map[uint64]int) // the start reads each entry, the last one twice
	d.mu.Unlock()
	if err := r.start(nodes[0], newBook()); err != nil {
		t.Fatal(err)
	}
	r.must(nodes[1], 1)
	r.stopped(d)
	d.mu.Lock()
	d.reads = nil
	d.mu.Unlock()
	r.goOn()
}

func TestFilesOfALog(t *testing.T) {
	t.Parallel()
	net := newInProcess()
	r := newRig(t, newCluster(t, net, nil))
	options := func(id replog.NodeID) Options {
		o := r.c.options(id)
		net.options(t, &o)
		return o
	}
	starts := func(o Options, want error) {
		t.Helper()
		l, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Start(replog.Position{}, newBook()); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := Create(options(nodes[0]), nodes); !errors.Is(err, ErrExists) {
		t.Errorf("created twice: got %v, want ErrExists", err)
	}
	starts(options(nodes[0]), storage.ErrLocked)
	r.stop(nodes[0])

	o := options(nodes[0])
	o.Node = nodes[1]
	starts(o, storage.ErrForeign)
	o = options(nodes[0])
	o.Shard++
	starts(o, storage.ErrForeign)
	o = options(nodes[0])
	o.Dir += "-lost"
	starts(o, storage.ErrNotFound)
	for name, list := range map[string][]replog.NodeID{
		"not in the list": nodes[1:], "twice": {nodes[0], nodes[0]}, "empty": {nodes[0], ""},
	} {
		if err := Create(o, list); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: got %v, want ErrOptions", name, err)
		}
	}
}

// TestMetaDataOfAClosedLog: who comes when the log is closed gets an error, and no file that is closed.
func TestMetaDataOfAClosedLog(t *testing.T) {
	t.Parallel()
	r := newRig(t, newCluster(t, newInProcess(), nil))
	l, key := r.log(nodes[0]), []byte("number")
	raftsDisk := &guard{}
	raftsDisk.wrap(l.o, l.disk)
	known, err := newPeers(l.o, l.disk, nil)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(map[string]<-chan error)
	for name, use := range map[string]func() error{
		"set":            func() error { return l.disk.meta.Set(key, make([]byte, 8)) },
		"store a number": func() error { return l.disk.meta.SetUint64(key, 1) },
		"raft":           func() error { _, err := raftsDisk.Get(key); return err },
		"raft's number":  func() error { _, err := raftsDisk.GetUint64(key); return err },
		"who is met":     func() error { _, err := known.know(nodes[1], life{1}); return err },
	} {
		ended[name] = beside(func() error {
			for r.ctx.Err() == nil {
				if err := use(); err != nil {
					return err
				}
			}
			return r.ctx.Err()
		})
	}
	r.stop(nodes[0])
	for name, end := range ended {
		select {
		case err := <-end:
			if !errors.Is(err, storage.ErrClosed) {
				t.Errorf("%s: got %v, want ErrClosed", name, err)
			}
		case <-r.ctx.Done():
			t.Errorf("%s: it does not end", name)
		}
	}
}

// TestLargestEntry writes as much as an entry may have. Raft may change its leader meanwhile, but no disk fails.
func TestLargestEntry(t *testing.T) {
	t.Parallel()
	r := newRig(t, newCluster(t, newInProcess(), func(_ replog.NodeID, o *Options) { o.Failover = MaxFailover }))
	n := nodes[0]
	r.lead(n)
	largest := make([]byte, replog.MaxEntry)
	for r.books[n].end().Head == 0 {
		err := r.log(n).Append(r.ctx, 0, largest)
		if now, _ := r.log(n).Leadership(); now.Stopped != nil {
			t.Fatalf("it has stopped: %v", now.Stopped)
		}
		if err != nil {
			r.lead(n)
		}
	}
	r.lead(n)
	r.must(n, 1)
}

// TestClearedSuffix reads what stands before entries that were cleared, as raft does with those of a leader that was
// replaced. raft-wal 0.4.0 cannot, once it is opened again.
func TestClearedSuffix(t *testing.T) {
	t.Parallel()
	o, err := Options{Dir: t.TempDir(), Node: nodes[0], segmentSize: 1 << 20}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	f, err := openFiles(o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(3) {
		if err := f.wal.StoreLog(&raft.Log{Index: i + 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.wal.DeleteRange(3, 3); err != nil {
		t.Fatal(err)
	}
	if err := f.close(); err != nil {
		t.Fatal(err)
	}
	if f, err = openFiles(o); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(2) {
		if err := f.wal.GetLog(i+1, new(raft.Log)); err != nil {
			t.Errorf("entry %d: %v", i+1, err)
		}
	}
	if err := f.close(); err != nil {
		t.Error(err)
	}
}
