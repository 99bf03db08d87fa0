package actors

import (
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/partita-go/partita/storage"
)

// Place knows whether the store of an application is where its name says, as of the last look. The partitions of
// an application share one, so that a change is logged once. Nil is a place that never changes.
type Place struct {
	placed storage.Placed
	logger *zap.Logger
	// displaced is nil, or what is wrong.
	displaced atomic.Pointer[error]
}

// NewPlace returns the place of a store, nil if the store cannot tell.
func NewPlace(store any, logger *zap.Logger) *Place {
	placed, ok := store.(storage.Placed)
	if !ok {
		return nil
	}
	return &Place{placed: placed, logger: logger}
}

// Displaced returns what was wrong when somebody looked last, nil if nothing was.
func (p *Place) Displaced() error {
	if p == nil {
		return nil
	}
	if err := p.displaced.Load(); err != nil {
		return *err
	}
	return nil
}

// look asks the store, which may block, and logs what has changed.
func (p *Place) look() {
	if p == nil {
		return
	}
	before, err := p.displaced.Load(), p.placed.Displaced()
	if before == nil && err == nil || before != nil && err != nil && (*before).Error() == err.Error() {
		return
	}
	now := &err
	if err == nil {
		now = nil
	}
	if !p.displaced.CompareAndSwap(before, now) {
		return // another one has seen it
	}
	if err == nil {
		p.logger.Info("the store's directory is under its name again")
		return
	}
	p.logger.Error("the store's directory is not under its name any more; the application works on in it, and what is opened under the name "+
		"is not its store: move the directory back, or stop the application", zap.Error(err))
}
