package tests

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/storagetest"
)

// site is a place where an application lives: it is opened, stopped, killed and
// opened again.
type site struct {
	dir     string
	app     partition.Application
	bolt    bolt.Options
	options partition.Options
	// faulty says that faults can be injected between the runtime and bolt.
	faulty bool
	// faults is the wrapper of the last start, if faulty.
	faults *storagetest.Faulty
	pulse  *pulse
}

func newSite(t testing.TB, partitions uint32, s partition.Settings) *site {
	t.Helper()
	beats := &pulse{beat: make(chan struct{}, 1)}
	return &site{
		dir:     scratch(t),
		app:     partition.Application{WorkspaceZero: true, Descriptor: shop(partitions), Settings: s},
		options: partition.Options{Observer: beats},
		pulse:   beats,
	}
}

// scratch returns a directory for what is not about the disk: in memory, where there is such a place,
// since the disk's syncs would take nearly all the time.
func scratch(t testing.TB) string {
	t.Helper()
	parent, err := os.MkdirTemp("/dev/shm", "partita-test-*") //nolint:usetesting // it is not where TMPDIR is
	if err != nil {
		return t.TempDir()
	}
	return below(t, parent)
}

// onDisk returns a directory on the disk, for what is killed: the shortest moments are not met where syncs
// take no time. TESTS_DISK says where it is, if TMPDIR is in memory.
func onDisk(t testing.TB) string {
	t.Helper()
	disk := os.Getenv("TESTS_DISK")
	if disk == "" {
		return t.TempDir()
	}
	return below(t, must(os.MkdirTemp(disk, "partita-test-*"))(t)) //nolint:usetesting // it is not where TMPDIR is
}

// below returns a new directory in one that is removed after the test: it may be renamed.
func below(t testing.TB, parent string) string {
	t.Helper()
	t.Cleanup(func() { check(t, os.RemoveAll(parent)) })
	dir := filepath.Join(parent, "store")
	check(t, os.Mkdir(dir, 0o750))
	return dir
}

// neverFlushed are settings under which nothing is flushed before a stop.
func neverFlushed() partition.Settings { return unflushed }

func (s *site) openStore(t testing.TB) storage.Store {
	t.Helper()
	store := openBolt(t, s.dir, s.app.Descriptor, s.bolt)
	if !s.faulty {
		return store
	}
	s.faults = storagetest.NewFaulty(store)
	return s.faults
}

// start deploys the application and returns what Ready says.
func (s *site) start(t testing.TB) (*deployment, error) {
	t.Helper()
	d := s.deploy(t)
	return d, d.app.Ready(limit(t))
}

// deploy deploys the application and does not wait.
func (s *site) deploy(t testing.TB) *deployment {
	t.Helper()
	store := s.openStore(t)
	parts := partition.NewAppParts(system, s.options)
	app := must(parts.Deploy(limit(t), s.app, store))(t)
	t.Cleanup(func() {
		if t.Failed() { // else the names of its actors would be taken for the next test
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			_ = store.Close(ctx)
			_ = parts.Close(ctx)
		}
	})
	return &deployment{parts: parts, app: app, store: store}
}

// run deploys the application, which must become ready.
func (s *site) run(t testing.TB) *deployment {
	t.Helper()
	d, err := s.start(t)
	if err != nil {
		d.crash(t)
		t.Fatalf("ready: %v", err)
	}
	return d
}

// look opens the store alone and verifies it.
func (s *site) look(t testing.TB, see func(*bolt.Store)) {
	t.Helper()
	store := openBolt(t, s.dir, s.app.Descriptor, s.bolt)
	defer func() { check(t, store.Close(limit(t))) }()
	verifyStore(t, store)
	if see != nil {
		see(store)
	}
}

// at is the same application in another directory.
func (s *site) at(dir string) *site {
	other := *s
	other.dir = dir
	return &other
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) deleteState(t testing.TB) {
	t.Helper()
	check(t, os.Remove(s.path("state.db")))
}

// crash ends everything without a last flush: the store goes away first.
func (d *deployment) crash(t testing.TB) {
	t.Helper()
	closeDirty(t, d.parts, d.store)
}

// commit runs a transaction that must succeed.
func (d *deployment) commit(t testing.TB, ws messages.WSID, seqs ...messages.SeqID) *partition.Transaction {
	t.Helper()
	return must(commit(limit(t), d.app, ws, seqs...))(t)
}

// invoice runs a transaction that must succeed and be given the invoice number
// wanted.
func (d *deployment) invoice(t testing.TB, ws messages.WSID, want messages.Number) *partition.Transaction {
	t.Helper()
	tx := d.commit(t, ws, seqInvoice)
	if got := tx.Numbers()[0].Number; got != want {
		t.Errorf("workspace %d: got invoice %d, want %d", ws, got, want)
	}
	return tx
}

func (d *deployment) register(t testing.TB, p messages.PartitionID) messages.Register {
	t.Helper()
	return must(d.store.Register(limit(t), p))(t)
}

// replayed is how many events the partitions have replayed.
func (d *deployment) replayed() uint64 {
	n := uint64(0)
	for _, s := range d.app.Status() {
		n += s.Replayed
	}
	return n
}

// open opens a transaction that must be granted.
func (d *deployment) open(t testing.TB, ws messages.WSID) *partition.Transaction {
	t.Helper()
	return must(must(d.app.SequencerOf(ws))(t).Start(limit(t), kindShop, ws))(t)
}

// commitRecord runs a transaction with one invoice number and the record of that
// number.
func commitRecord(ctx context.Context, app *partition.App, ws messages.WSID) (*partition.Transaction, error) {
	sequencer, err := app.SequencerOf(ws)
	if err != nil {
		return nil, err
	}
	tx, err := sequencer.StartWaiting(ctx, kindShop, ws)
	if err != nil {
		return nil, err
	}
	n, err := tx.Next(ctx, seqInvoice)
	if err != nil {
		return nil, err
	}
	id := messages.RecordID{Seq: seqInvoice, Number: n}
	return tx, tx.Commit(ctx, []byte("record"), messages.Record{ID: id, New: true, Data: []byte(id.String())})
}

// readPLog reads a partition's log.
func readPLog(t testing.TB, store storage.Store, p messages.PartitionID) []messages.Event {
	t.Helper()
	var events []messages.Event
	for e, err := range store.PLog(limit(t), p, 1) {
		check(t, err)
		events = append(events, e)
	}
	return events
}

// batchOf is a batch of one event.
func batchOf(e messages.Event) storage.Batch {
	return storage.Batch{Partition: e.Partition, Epoch: e.Epoch, Events: []messages.Event{e}}
}

// pulse is an observer that beats after each message that an actor has handled:
// whatever a test waits for has happened by one of them.
type pulse struct{ beat chan struct{} }

func (*pulse) Posted(actors.Key, any) {}
func (*pulse) Taken(actors.Key, any)  {}

func (p *pulse) Handled(actors.Key, any) {
	select {
	case p.beat <- struct{}{}:
	default:
	}
}

// await waits until a condition holds that the handling of a message brings about.
func (s *site) await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	ctx := limit(t)
	for !holds() {
		select {
		case <-s.pulse.beat:
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, context.Cause(ctx))
		}
	}
}

// awaitState waits until a partition is in a state.
func (s *site) awaitState(t testing.TB, d *deployment, p messages.PartitionID, want messages.PartitionState) partition.Status {
	t.Helper()
	var status partition.Status
	s.await(t, "partition "+p.String()+" is "+want.String(), func() bool {
		status = d.app.Status()[p]
		return status.State == want
	})
	return status
}
