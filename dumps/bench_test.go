package dumps

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
)

// anAppend is an append as the rows of the table of throughput have it.
func anAppend() actors.Traffic {
	return actors.Traffic{
		Key: actors.Key{Group: "partition", ID: "7"}, Kind: actors.TrafficRequest, Request: 1<<53 - 1,
		Message: &messages.Append{
			Workspace: 4711, Kind: 1, Deadline: 1_700_000_000_000_000,
			Drafts: []messages.Draft{{
				Wanted: []messages.Wanted{{Seq: 16}, {Seq: 17}}, Body: make([]byte, 100),
				Records: []messages.DraftRecord{{Number: 0, New: true, Data: make([]byte, 100)}, {Number: 1, New: true, Data: make([]byte, 100)}},
			}},
		},
	}
}

// BenchmarkLines writes lines to one file as fast as they come. Bar: at least 300,000 lines/s. What the file could
// not take in time is lost, and not counted as written.
func BenchmarkLines(b *testing.B) {
	w, err := Open(filepath.Join(b.TempDir(), "dump"), Options{Groups: map[string]Group{AllGroups: {Rate: 1e9}}})
	check(b, err)
	message := anAppend()
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			tell(w, message)
		}
	})
	check(b, w.Close(context.Background()))
	s := w.Stats()
	b.ReportMetric(float64(s.Groups[0].Emitted-s.Unwritten)/b.Elapsed().Seconds(), "lines/s")
	b.ReportMetric(float64(s.Groups[0].Lost)/float64(b.N), "lost/op")
}

// BenchmarkOff is what a message costs that is not dumped.
func BenchmarkOff(b *testing.B) {
	for name, group := range map[string]Group{"group": {}, "message": {Messages: []string{"Start"}}, "limited": {Rate: 1}} {
		b.Run(name, func(b *testing.B) {
			groups := map[string]Group{"partition": group}
			if name == "group" {
				groups = nil
			}
			w, err := Open(filepath.Join(b.TempDir(), "dump"), Options{Groups: groups})
			check(b, err)
			message := anAppend()
			b.ReportAllocs()
			for b.Loop() {
				tell(w, message)
			}
			check(b, w.Close(context.Background()))
		})
	}
}

// BenchmarkRead reads lines back.
func BenchmarkRead(b *testing.B) {
	line := []byte(lineOf(b, anAppend()))
	b.SetBytes(int64(len(line)))
	var found atomic.Int64
	for b.Loop() {
		l, err := ParseLine(line)
		check(b, err)
		found.Add(int64(l.Number))
	}
}
