package bolt

import (
	"context"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/subsdb"
)

// Subscriptions implements [verify.Image].
func (m *image) Subscriptions(
	ctx context.Context, parked func(*storage.Subscription, *storage.ParkedEvent), each func(*storage.Subscription, error) error,
) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return m.s.subscriptions.view(func(tx subsdb.Tx) error {
		check := func(name string, positions []subsdb.Placed) error {
			return ofLog(tx, name, m.s.checkRests(positions, messages.LSN(m.s.lastLSN.Load())))
		}
		return tx.Each(check, parked, each)
	})
}
