package bolt

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// BenchmarkRead reads of 10,000 workspaces with 200 events each (20 with -short), which were flushed 13 a workspace at a
// time: one record by its id, a range of 200 records, and a page of 200 events of a workspace; warm, and cold: then nothing
// of the files is in memory, but what opening reads (a benchtime of 50x is enough).
func BenchmarkRead(b *testing.B) {
	dir := b.TempDir()
	events := fillForReads(b, dir)
	rng := rand.New(rand.NewPCG(1, 2))
	whole := func(s *Store, r storage.RecordRange) error {
		return drain(s.Records(b.Context(), messages.WSID(rng.IntN(10*benchWorkspaces)), r))
	}
	reads := map[string]func(s *Store) error{
		"record": func(s *Store) error {
			n := messages.InitialCRecordID + messages.Number(rng.IntN(events))
			return whole(s, storage.RecordRange{Seq: messages.SeqCRecordID, From: n, To: n})
		},
		"records=200": func(s *Store) error {
			from := messages.InitialCRecordID + messages.Number(rng.IntN(events)/2)
			return whole(s, storage.RecordRange{Seq: messages.SeqCRecordID, From: from, To: from + 199})
		},
		"events=200": func(s *Store) error {
			ws := messages.WSID(rng.IntN(10 * benchWorkspaces))
			n := 0
			for _, err := range s.WLog(b.Context(), ws, 1+messages.WLogOffset(rng.IntN(events)/2)) {
				if err != nil {
					return err
				}
				if n++; n == 200 {
					break
				}
			}
			return nil
		},
	}
	for _, name := range []string{"record", "records=200", "events=200"} {
		b.Run(name+"/warm", func(b *testing.B) {
			s := openReadOnly(b, dir)
			defer closeStore(b, s)
			for b.Loop() {
				if err := reads[name](s); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/cold", func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				forgetFiles(b, dir)
				s := openReadOnly(b, dir)
				b.StartTimer()
				if err := reads[name](s); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				closeStore(b, s)
			}
		})
	}
}

func drain[T any](all iter.Seq2[T, error]) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

func openReadOnly(b *testing.B, dir string) *Store {
	b.Helper()
	s, err := OpenExisting(b.Context(), dir, Options{ReadOnly: true})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func fillForReads(b *testing.B, dir string) (events int) {
	b.Helper()
	events = 208
	if testing.Short() {
		events = 26
	}
	s := openBench(b, dir, 10, Options{})
	defer closeStore(b, s)
	var appenders []*benchAppender
	for id := range messages.PartitionID(10) {
		appenders = append(appenders, newBenchAppender(b, s, id))
	}
	for range events / 13 {
		var wait sync.WaitGroup
		for range 13 {
			for _, a := range appenders {
				if err := a.append(benchWorkspaces); err != nil {
					b.Fatal(err)
				}
			}
		}
		for _, a := range appenders {
			wait.Go(func() { s.benchFlush(b, a.id) })
		}
		wait.Wait()
	}
	return events
}

// forgetFiles lets the kernel forget what it has of the files.
func forgetFiles(b *testing.B, dir string) {
	b.Helper()
	for _, name := range []string{format.LogFileName, format.StateFileName} {
		f, err := os.Open(filepath.Join(dir, name))
		if err == nil {
			err = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
		}
		if err != nil {
			b.Fatal(err)
		}
		if err := f.Close(); err != nil {
			b.Fatal(fmt.Errorf("close %s: %w", name, err))
		}
	}
}
