package partition

import (
	"slices"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/partita-go/partita/messages"
)

// TestRecentIsPartOfTheLogs looks inside, since what is kept for others, and that it is bounded, cannot be told from
// what a feed gives: whatever is added in whichever order, each log is a part of the partition's log without a hole,
// goes as far as anything that was added since all were emptied, and all are bounded. What was returned stays.
func TestRecentIsPartOfTheLogs(t *testing.T) {
	const partitions, eventBytes = 3, recentBytes / 50
	rapid.Check(t, func(rt *rapid.T) {
		r := recent{logs: make([]atomic.Pointer[recentLog], partitions)}
		var given [][]messages.Event
		rt.Repeat(map[string]func(*rapid.T){
			"add": func(rt *rapid.T) {
				p := messages.PartitionID(rapid.Uint32Range(0, partitions-1).Draw(rt, "partition"))
				end := messages.PLogOffset(1)
				if log := r.logs[p].Load(); log != nil {
					end = log.end()
				}
				// Most begin a little before the end of what is there, some leave a hole.
				read := recentLog{first: max(end+3, 12) - messages.PLogOffset(rapid.Uint64Range(0, 11).Draw(rt, "back"))}
				for range rapid.IntRange(1, 20).Draw(rt, "events") {
					read.events = append(read.events, messages.Event{Partition: p, PLogOffset: read.end()})
				}
				end = max(end, read.end())
				r.add(p, read, len(read.events)*eventBytes)
				log := r.logs[p].Load()
				if log == nil || log.end() != end {
					rt.Fatalf("partition %d: %d to %d were added: got %v, want it to end at %d", p, read.first, read.end(), log, end)
				}
				given = append(given, log.events)
			},
			"": func(rt *rapid.T) {
				kept := 0
				for p := range r.logs {
					if log := r.logs[p].Load(); log != nil {
						kept += len(log.events)
						isLog(rt, messages.PartitionID(p), log.first, log.events)
					}
				}
				if kept*eventBytes > recentBytes {
					rt.Fatalf("got %d bytes, want at most %d", kept*eventBytes, recentBytes)
				}
				for _, events := range given {
					isLog(rt, events[0].Partition, events[0].PLogOffset, events)
				}
			},
		})
	})
}

// isLog fails the test unless the events are those of a partition from an offset on.
func isLog(rt *rapid.T, p messages.PartitionID, first messages.PLogOffset, events []messages.Event) {
	wrong := slices.IndexFunc(events, func(e messages.Event) bool {
		first++
		return e.Partition != p || e.PLogOffset != first-1
	})
	if wrong >= 0 {
		rt.Fatalf("partition %d: event %d is %d of partition %d", p, wrong, events[wrong].PLogOffset, events[wrong].Partition)
	}
}
