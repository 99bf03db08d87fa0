package cluster

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/partita-go/partita/storage/replog"
)

const (
	// roomEvery is how often a node that leads looks whether its store has room.
	roomEvery = time.Second
	// reliefEvery is how long it leads on at least, if nobody could take over, or it leads again: who appends waits meanwhile.
	reliefEvery = 5 * time.Second
)

// relieve lets another node lead, if the store here refuses appends since it has no room. It goes on until the term is over.
// One at a time calls it.
func (s *Shard) relieve(term context.Context) {
	for {
		wait := roomEvery
		if full := s.o.full(s.part().store); full != nil {
			if wait = reliefEvery - time.Since(s.relieved); wait <= 0 {
				s.o.Logger.Warn("the store has no room: another node is to lead", zap.Error(full))
				// The hand-over ends the term first: it must not end with that.
				s.handOver(s.node.running, s.withRoom(s.node.running))
				s.relieved, wait = time.Now(), reliefEvery
			}
			wait = min(wait, roomEvery)
		}
		select {
		case <-time.After(wait):
		case <-term.Done():
			return
		}
	}
}

// withRoom returns the other nodes that follow this one and have room, as far as they know.
func (s *Shard) withRoom(ctx context.Context) (all []replog.NodeID) {
	for _, m := range s.askOthers(ctx) {
		if m.Unreachable == "" && m.Stopped == "" && m.Full == "" && m.Leader == s.o.Node {
			all = append(all, m.Node)
		}
	}
	return all
}

// askOthers asks the other nodes where they stand, in the order of their names. Those that do not answer in time are told as
// such.
func (s *Shard) askOthers(ctx context.Context) []NodeJSON {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	others := slices.DeleteFunc(s.o.nodes(), func(id replog.NodeID) bool { return id == s.o.Node })
	all := make([]NodeJSON, len(others))
	var asked sync.WaitGroup
	for i, id := range others {
		asked.Go(func() {
			if err := s.ask(ctx, id, clusterPath, &all[i]); err != nil {
				all[i] = NodeJSON{Unreachable: errorText(causeOf(ctx, err))}
			}
			all[i].Shard = s.index
			all[i].Node, all[i].Address = id, s.o.address(id)
		})
	}
	asked.Wait()
	return all
}
