package bolt

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/queue"
)

// benchEvent is an event with one number and one record that takes it.
func benchEvent(p messages.PartitionID, epoch messages.Epoch, o messages.PLogOffset, ws messages.WSID, wlog messages.WLogOffset) messages.Event {
	n := messages.SequenceNumber{Seq: messages.SeqCRecordID, Number: messages.InitialCRecordID + messages.Number(wlog) - 1}
	return messages.Event{
		Kind: messages.EventBusiness, Epoch: epoch, Partition: p, PLogOffset: o,
		Workspace: ws, WorkspaceKind: testKind, WLogOffset: wlog, RegisteredAt: messages.Timestamp(o),
		Numbers: []messages.SequenceNumber{n},
		Body:    make([]byte, 100),
		Records: []messages.Record{{ID: n.Record(), New: true, Data: make([]byte, 60)}},
	}
}

// benchWorkspaces is how many workspaces each partition has.
const benchWorkspaces = 1000

// benchAppender appends events of one partition, workspace after workspace.
type benchAppender struct {
	s          *Store
	id         messages.PartitionID
	partitions uint32
	epoch      messages.Epoch
	next       messages.PLogOffset
	// ids says that each event gets a deduplication id.
	ids bool
}

func newBenchAppender(b testing.TB, s *Store, id messages.PartitionID) *benchAppender {
	reg, err := s.TakeEpoch(context.Background(), id)
	if err != nil {
		b.Fatal(err)
	}
	return &benchAppender{s: s, id: id, partitions: s.files.Descriptor.Partitions, epoch: reg.Epoch, next: reg.Last + 1}
}

func (a *benchAppender) append(n int) error {
	batch := storage.Batch{Partition: a.id, Epoch: a.epoch}
	for range n {
		i := uint64(a.next - 1)
		ws := messages.WSID(uint64(a.partitions)*(i%benchWorkspaces) + uint64(a.id))
		e := benchEvent(a.id, a.epoch, a.next, ws, messages.WLogOffset(i/benchWorkspaces+1))
		if a.ids {
			e.DedupID = benchID(i)
		}
		batch.Events = append(batch.Events, e)
		a.next++
	}
	return a.s.Append(context.Background(), batch)
}

func (s *Store) benchFlush(b testing.TB, id messages.PartitionID) {
	p := &s.partitions[id]
	p.mu.RLock()
	r := &flushRequest{Ticket: queue.NewTicket(), partition: p, epoch: p.epoch, from: p.checkpoint, to: p.last + 1, derive: true}
	p.mu.RUnlock()
	if err := queue.HandOver(context.Background(), s.flushes, r, &r.Ticket, s.closing, s.flushed); err != nil {
		b.Fatal(err)
	}
}

func openBench(b testing.TB, dir string, partitions uint32, o Options) *Store {
	o.Create = true
	s, err := Open(context.Background(), dir, testDescriptor(partitions, messages.TrustNone), o)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// BenchmarkAppend appends events of one each: callers wait at the same time, one
// per partition.
func BenchmarkAppend(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			s := openBench(b, b.TempDir(), uint32(callers), Options{TailEvents: 1 << 30, Memory: 1 << 42})
			defer closeStore(b, s)
			appenders := make([]*benchAppender, callers)
			for i := range appenders {
				appenders[i] = newBenchAppender(b, s, messages.PartitionID(i))
			}
			before := s.Stats().Commits
			var left atomic.Int64
			left.Store(int64(b.N))
			var wait sync.WaitGroup
			b.ResetTimer()
			for _, a := range appenders {
				wait.Go(func() {
					for left.Add(-1) >= 0 {
						if err := a.append(1); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wait.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(b.N)/float64(s.Stats().Commits-before), "events/commit")
		})
	}
}

// BenchmarkFlush flushes 500, 16,384 and 65,536 events of 1,000 workspaces at a time,
// without ids and with one each, with no or 5,000,000 ids (500,000 with -short)
// stored before.
func BenchmarkFlush(b *testing.B) {
	for _, events := range []int{500, 16_384, 65_536} {
		b.Run(fmt.Sprintf("events=%d", events), func(b *testing.B) { benchFlushes(b, events, false, 0) })
		b.Run(fmt.Sprintf("events=%d/ids", events), func(b *testing.B) { benchFlushes(b, events, true, 0) })
		b.Run(fmt.Sprintf("events=%d/ids/many", events), func(b *testing.B) { benchFlushes(b, events, true, storedIDs()) })
	}
}

func benchFlushes(b *testing.B, events int, ids bool, stored int) {
	s := openBench(b, b.TempDir(), 1, Options{})
	defer closeStore(b, s)
	fillIDs(b, s, stored, s.shares.flushEvents)
	a := newBenchAppender(b, s, 0)
	a.ids = ids
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		for n := events; n > 0; n -= 500 {
			if err := a.append(min(n, 500)); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
		s.benchFlush(b, 0)
	}
	b.ReportMetric(float64(b.N*events)/b.Elapsed().Seconds(), "events/s")
}

// benchLog makes a store with a log of n events of 4 partitions and nothing
// projected.
func benchLog(b *testing.B, n int) string {
	if testing.Short() {
		n /= 10
	}
	dir := b.TempDir()
	s := openBench(b, dir, 4, Options{TailEvents: 1 << 30, Memory: 1 << 42})
	for i := range messages.PartitionID(4) {
		a := newBenchAppender(b, s, i)
		for left := n / 4; left > 0; left -= 5000 {
			if err := a.append(min(left, 5000)); err != nil {
				b.Fatal(err)
			}
		}
	}
	closeStore(b, s)
	return dir
}

const million = 1_000_000

// BenchmarkOpenTail1M opens a store with a tail of a million events (100,000 with
// -short).
func BenchmarkOpenTail1M(b *testing.B) {
	dir := benchLog(b, million)
	b.ResetTimer()
	var bytes int64
	for range b.N {
		s := openBench(b, dir, 4, Options{TailEvents: 1 << 30, Memory: 1 << 42})
		b.StopTimer()
		bytes = s.Stats().TailBytes / s.Stats().TailEvents
		b.ReportMetric(float64(s.Stats().Scanned)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
		closeStore(b, s)
		b.StartTimer()
	}
	b.ReportMetric(float64(bytes), "tail-bytes/event")
}

// BenchmarkPlainScan1M is what BenchmarkOpenTail1M is measured against: a cursor
// over the log, full decode, and a map of the largest numbers.
func BenchmarkPlainScan1M(b *testing.B) {
	dir := benchLog(b, million)
	b.ResetTimer()
	for range b.N {
		db, err := bbolt.Open(filepath.Join(dir, format.LogFileName), 0o600, &bbolt.Options{ReadOnly: true})
		if err != nil {
			b.Fatal(err)
		}
		last := make(map[numberKey]messages.Number)
		events := 0
		err = db.View(func(tx *bbolt.Tx) error {
			var view format.EventView
			return tx.Bucket(format.BucketLog).ForEach(func(k, v []byte) error {
				lsn, _ := format.ParseLSN(k)
				if err := view.Decode(lsn, v); err != nil {
					return err
				}
				e := view.Event()
				raise := func(n messages.SequenceNumber) {
					k := numberKey{e.Workspace, n.Seq}
					last[k] = max(last[k], n.Number)
				}
				raise(messages.SequenceNumber{Seq: messages.SeqWLogOffset, Number: messages.Number(e.WLogOffset)})
				for _, n := range e.Numbers {
					raise(n)
				}
				events++
				return nil
			})
		})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRebuild opens a store whose state.db was deleted.
func BenchmarkRebuild(b *testing.B) {
	dir := benchLog(b, 500_000)
	for range b.N {
		b.StopTimer()
		if err := os.Remove(filepath.Join(dir, format.StateFileName)); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		s := openBench(b, dir, 4, Options{})
		b.StopTimer()
		b.ReportMetric(float64(s.Stats().Rebuilt)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
		closeStore(b, s)
		b.StartTimer()
	}
}
