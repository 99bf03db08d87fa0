package base_test

import (
	"sync"
	"testing"

	"github.com/partita-go/partita/actors/actorstest"
	"github.com/partita-go/partita/actors/base"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
)

// sentTraffic remembers what was sent.
type sentTraffic struct {
	diary
	mu  sync.Mutex
	all []base.Traffic
}

func (*sentTraffic) Received(base.Traffic) {}

func (s *sentTraffic) Sent(t base.Traffic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, t)
}

// TestTraceOfRefusals: the answer that a mailbox gives for its actor is of the trace of what it refuses.
func TestTraceOfRefusals(t *testing.T) {
	traffic, system := new(sentTraffic), newSystem()
	m := base.NewMailbox(base.MailboxConfig{
		System: system, Observer: traffic,
		Refuse: func(any, base.RefuseReason) any { return &messages.Refused{Err: messages.ErrStopped} },
	})
	m.Close()
	const given ids.TraceID = 0x0123456789abcdef
	m.PostUserMessage(actorstest.NewInbox(t, system).From(&messages.Append{Trace: given}))
	traffic.mu.Lock()
	defer traffic.mu.Unlock()
	if len(traffic.all) != 1 || traffic.all[0].Trace != given || traffic.all[0].Kind != base.TrafficResponse {
		t.Errorf("got %+v, want one answer of trace %v", traffic.all, given)
	}
}
