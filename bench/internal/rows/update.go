package rows

import (
	"context"

	"github.com/partita-go/partita/bench/internal/event"
	"github.com/partita-go/partita/bench/internal/ledger"
	"github.com/partita-go/partita/bench/internal/measure"
	"github.com/partita-go/partita/bench/internal/usage"
)

// update is one caller that makes a bbolt update for each event.
type update struct {
	log    *boltLog
	source *event.Source
	ledger *ledger.Ledger
}

func newUpdate(s measure.Settings) measure.Row {
	return &update{source: event.NewSource(0, s.Workspaces), ledger: ledger.New(1)}
}

func (u *update) Setup(_ context.Context, dir string) error {
	var err error
	u.log, err = openBoltLog(dir)
	return err
}

func (u *update) Do(context.Context, int) error {
	u.source.Next()
	number, err := u.log.append(u.source.Value())
	if err != nil {
		return err
	}
	return u.ledger.Acknowledge(0, number)
}

func (u *update) Check(ctx context.Context, failed uint64) (string, error) {
	return checkLog(ctx, u.log, u.ledger, failed)
}

func (u *update) Sizes() ([]usage.Size, error) { return u.log.sizes() }

func (u *update) Note() string {
	return "bbolt " + boltVersion() + ", one bucket, sequential keys, one Update for each event"
}

func (u *update) Close(context.Context) error {
	if u.log == nil {
		return nil
	}
	return u.log.db.Close()
}
