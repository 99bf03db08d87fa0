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
	// reliefEvery is how long it leads on at least if it leads again, reliefFailed if nobody has taken over: who appends waits
	// meanwhile, but whoever reads is disturbed by each try.
	reliefEvery  = 5 * time.Second
	reliefFailed = time.Minute
)

// relieve lets another node lead, if the store here refuses appends since it has no room. It goes on until the term is over.
// One at a time calls it.
func (s *Shard) relieve(term context.Context) {
	for {
		if full := s.o.full(s.part().store); full != nil && !time.Now().Before(s.mayRelieve) {
			s.tryRelief(full)
		}
		select {
		case <-time.After(roomEvery):
		case <-term.Done():
			return
		}
	}
}

// tryRelief lets a node lead that has room, if there is one. The hand-over ends the term first: it must not end with that.
func (s *Shard) tryRelief(full error) {
	to := s.withRoom(s.node.running)
	if len(to) == 0 {
		return
	}
	s.o.Logger.Warn("the store has no room: another node is to lead", zap.Error(full))
	s.mayRelieve = time.Now().Add(reliefFailed)
	if s.handOver(s.node.running, to) {
		s.mayRelieve = time.Now().Add(reliefEvery)
	}
}

// withRoom returns the other nodes that could lead now.
func (s *Shard) withRoom(ctx context.Context) (all []replog.NodeID) {
	head, voters := s.part().log.Standing().Applied.Head, s.voters()
	for _, m := range s.askOthers(ctx) {
		if slices.Contains(voters, m.Node) && s.canLead(&m, head) {
			all = append(all, m.Node)
		}
	}
	return all
}

// canLead reports whether another node that votes could lead now: it follows this one, keeps up with its head, and has room, as
// far as it knows.
func (s *Shard) canLead(m *NodeJSON, head uint64) bool {
	return m.Unreachable == "" && m.Leader == s.o.Node && m.Stopped == "" && m.Full == "" && m.Failed == "" && m.Head+nearby >= head
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
