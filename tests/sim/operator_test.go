package sim

import (
	"time"

	"github.com/partita-go/partita/messages"
)

// operate deploys the application, and undeploys it, takes it over and changes its
// settings now and then, until the clients are done.
func (s *sim) operate() {
	for !s.quit && !s.drained {
		s.operatorTurn()
		s.wait(&task{key: "operator", due: s.after(time.Duration(1+s.random.IntN(15_000)) * time.Microsecond)})
	}
	s.operatorDone = true
}

func (s *sim) operatorTurn() {
	n := s.serving()
	switch {
	case n == nil, n.useless() && s.random.IntN(2) == 0, s.strikes(rateTakeOver):
		s.takeOver()
	case n.useless(), s.strikes(rateRestart):
		s.undeploy(n)
	case s.replaced() != nil:
		s.undeploy(s.replaced())
	case s.strikes(rateReconfigure):
		s.reconfigure(s.live[s.random.IntN(len(s.live))])
	}
}

// takeOver deploys the application, whoever still owns the partitions.
func (s *sim) takeOver() {
	for _, n := range s.live {
		s.explained = true
		for i := range n.partitions {
			s.hit(faultTakeOver, n, messages.PartitionID(i))
		}
		n.hitLanes(faultTakeOver)
	}
	if _, err := s.deploy(); err != nil {
		s.failf("deploy: %v", err)
	}
}

// undeploy stops a node, and lets the operator go on meanwhile now and then.
func (s *sim) undeploy(n *node) {
	n.stopping = true
	s.stops++
	stop := func() {
		if !s.isDead(n) {
			n.undeploy()
			n.gone()
		}
		s.stops--
	}
	if s.random.IntN(2) == 0 {
		stop()
		return
	}
	go func() {
		s.gate(nil, n.name+" stop")
		stop()
	}()
}

// serving returns the node that was deployed last, nil if it is gone or about to be.
func (s *sim) serving() *node {
	if len(s.live) == 0 || s.live[len(s.live)-1].stopping {
		return nil
	}
	return s.live[len(s.live)-1]
}

// replaced returns a node that was taken over and is still there, nil if there is none.
func (s *sim) replaced() *node {
	for _, n := range s.live[:len(s.live)-1] {
		if !n.stopping {
			return n
		}
	}
	return nil
}

// useless reports whether only a new deployment helps.
func (n *node) useless() bool {
	if n.broken {
		return true
	}
	for _, p := range n.partitions {
		if p.Status().State == messages.StateFailed {
			return true
		}
	}
	return false
}

func (s *sim) reconfigure(n *node) {
	set := n.settings
	set.FlushInterval = time.Duration(1+s.random.IntN(20)) * time.Millisecond
	set.FlushThreshold = 1 + s.random.IntN(set.BusyLimit)
	for i, p := range n.partitions {
		s.hit(faultReconfigure, n, messages.PartitionID(i))
		err := p.Reconfigure(n.stopped, n.ports, set)
		s.gate(nil, "operator")
		if s.isDead(n) {
			return
		}
		s.notef("%s partition %d: reconfigured: %v", n.name, i, err)
	}
}
