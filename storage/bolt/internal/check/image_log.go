package check

import (
	"context"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/files"
	"github.com/partita-go/partita/storage/verify"
)

// LogImage shows log.db alone to [verify.Files].
type LogImage struct {
	Image
	// Standings are where the partitions' logs end: where the projections would stand if
	// they had everything.
	Standings []verify.Standing
	epochs    []files.Epoch
}

// NewLogImage reads the log to find where the partitions stand. What is damaged is found by
// those who read it for what it holds.
func NewLogImage(ctx context.Context, f *files.Set, epochs []files.Epoch) (*LogImage, error) {
	m := &LogImage{
		Image:     Image{files: f, stand: &files.Stand{Projected: f.End + 1}},
		Standings: make([]verify.Standing, len(epochs)), epochs: epochs,
	}
	for i := range m.Standings {
		m.Standings[i].Register.Epoch = epochs[i].Epoch
		m.Standings[i].Checkpoint = 1
	}
	err := m.Log(ctx, func(lsn messages.LSN, e *messages.Event, _ error) error {
		if e == nil || uint64(e.Partition) >= uint64(len(m.Standings)) {
			return nil
		}
		s := &m.Standings[e.Partition]
		s.Last, s.Checkpoint, s.LastRegisteredAt = e.PLogOffset, e.PLogOffset+1, e.RegisteredAt
		s.LSN, s.At, s.Epoch = lsn, e.RegisteredAt, e.Epoch
		return nil
	})
	return m, err
}

// Standing implements [verify.Image].
func (m *LogImage) Standing(_ context.Context, p messages.PartitionID) (verify.Standing, error) {
	return m.Standings[p], m.epochs[p].Damage
}
