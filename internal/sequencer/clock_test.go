package sequencer

import (
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
)

// TestClockSetBack: limits and intervals count the time that has passed, not what
// the clock says, else a dead owner would hold its partition for as long as the
// clock was set back.
func TestClockSetBack(t *testing.T) {
	const limit = 5 * time.Second
	c := New(Config{Partition: testPartition, Descriptor: testDescriptor(), Settings: messages.Settings{TransactionLimit: limit}.WithDefaults(), CacheNumbers: 10})
	now := messages.TimestampOf(time.Unix(1_000_000, 0))
	c.Begin(now)
	c.Step(nil, &messages.Taken{Generation: 1, Register: messages.Register{Epoch: 1, Checkpoint: 1}}, now)
	fx := c.Step("owner", &messages.Start{Workspace: 1, Kind: kindWide}, now)
	load, ok := fx.Reader[0].(*messages.LoadNumbers)
	if !ok {
		t.Fatalf("got %v, want a load", fx.Reader[0])
	}
	c.Step(nil, &messages.Loaded{Generation: 1, Load: load.Load, Numbers: messages.WorkspaceNumbers{Workspace: 1}}, now)
	now -= messages.Timestamp(time.Hour / time.Microsecond)
	c.Step(nil, &messages.TimerFired{Timer: messages.TimerFlush}, now)
	now += messages.Timestamp(limit / time.Microsecond)
	c.Step(nil, &messages.TimerFired{Timer: messages.TimerTransaction}, now)
	if s := c.Status(); s.Actualizations != 2 {
		t.Errorf("got %d actualizations, want the transaction to be given up", s.Actualizations)
	}
}
