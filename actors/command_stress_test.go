package actors_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/partita-go/partita/messages"
)

// Many command processors on many partitions at the same time: ids are unique and
// without gaps, and every answer is what the log says.
func TestCommandProcessorsConcurrently(t *testing.T) {
	const processors, clients, each = 16, 32, 160
	r := readyRig(t, setup{partitions: 4, realClock: true, settings: messages.Settings{FlushThreshold: 50}})
	for range processors {
		r.spawnProcessor(64, insertAll)
	}
	var mu sync.Mutex
	answered := make(map[string]bool)
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			for i := range each {
				ws := messages.WSID((c + i) % 23)
				done := r.executeStubbornly((c+i)%processors, ws)
				mu.Lock()
				for _, id := range done.IDs {
					key := fmt.Sprint(ws, id)
					if answered[key] {
						t.Errorf("workspace %d: id %v was given twice", ws, id)
					}
					answered[key] = true
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	events := 0
	for p := range messages.PartitionID(4) {
		for _, e := range r.log(p) {
			events++
			for _, n := range e.Numbers {
				if !answered[fmt.Sprint(e.Workspace, n.Record())] {
					t.Errorf("workspace %d: %v is in the log, nobody was told", e.Workspace, n)
				}
			}
		}
	}
	if events != clients*each {
		t.Errorf("got %d events, want %d", events, clients*each)
	}
}

// executeStubbornly executes a command until nobody is busy.
func (r *rig) executeStubbornly(processor int, ws messages.WSID) *messages.CommandDone {
	for {
		done, err := r.processors[processor].Execute(r.ctx, messages.Command{Workspace: ws, Kind: shop, RawRecords: raw(1, 2)})
		if err == nil {
			return done
		}
		if !errors.Is(err, messages.ErrBusy) {
			r.t.Error(err)
			return &messages.CommandDone{}
		}
	}
}
