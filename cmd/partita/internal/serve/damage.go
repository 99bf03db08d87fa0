package serve

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// maxDamage is how many places are named that were found damaged.
const maxDamage = 16

// damage is what of the store was found damaged while it was served: whoever meets damage logs it, so the lines of the
// log tell. It stays until the server ends: a place heals in no other way.
type damage struct {
	mu    sync.Mutex
	met   uint64
	first time.Time
	// places are the first ones, each once.
	places []string
}

// watch returns a core that notes what is written to another one.
func (d *damage) watch(core zapcore.Core) zapcore.Core { return &watching{core, d} }

type watching struct {
	zapcore.Core
	damage *damage
}

// With implements zapcore.Core.
func (w *watching) With(fields []zapcore.Field) zapcore.Core {
	return &watching{w.Core.With(fields), w.damage}
}

// Write implements zapcore.Core.
func (w *watching) Write(e zapcore.Entry, fields []zapcore.Field) error {
	for i := range fields {
		if err, ok := fields[i].Interface.(error); ok && errors.Is(err, storage.ErrDamaged) {
			w.damage.note(e.Time, err)
		}
	}
	return w.Core.Write(e, fields)
}

func (d *damage) note(at time.Time, err error) {
	place := err.Error()
	if damaged, ok := errors.AsType[*storage.DamagedError](err); ok {
		place = damaged.Error()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.met++; d.met == 1 {
		d.first = at
	}
	if len(d.places) < maxDamage && !slices.Contains(d.places, place) {
		d.places = append(d.places, place)
	}
}

// statuses are what /v1/status says of it: nothing as long as none was met.
func (d *damage) statuses() []httpapi.ActorStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.met == 0 {
		return nil
	}
	s := httpapi.ActorStatus{Group: ownGroup, Key: "damage", State: messages.StateAlarming.String()}
	s.Details = fmt.Sprintf("met since %s: %s", d.first.UTC().Format(time.RFC3339), d.places[0])
	if more := len(d.places) - 1; more > 0 {
		s.Details += fmt.Sprintf("; and %d more places: the log has all, and so has `partita verify`", more)
	}
	return []httpapi.ActorStatus{s}
}

// upkeep tells the metrics.
type upkeep struct {
	*damage
	*scrubber
}

// DamageMet implements metrics.Upkeep.
func (d *damage) DamageMet() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.met
}
