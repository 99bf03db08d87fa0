package bolt

import (
	"fmt"
	"testing"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// Damage that is not of the entry that was read says nothing about its event: the
// flushes that share the scan must not go on behind it.
func TestDamageElsewhereIsNoEvents(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"of the entry":        {format.DamagedEvent(7, 1, 2, format.ErrMissing), true},
		"of another entry":    {format.DamagedEvent(8, 1, 2, format.ErrMissing), false},
		"of the file":         {&storage.DamagedError{Where: "log.db", Cause: format.ErrMissing}, false},
		"wrapped":             {fmt.Errorf("scan: %w", format.DamagedEvent(7, 1, 2, format.ErrMissing)), true},
		"no damage":           {format.ErrMissing, false},
		"the store is closed": {storage.ErrClosed, false},
	} {
		t.Run(name, func(t *testing.T) {
			var damage *storage.DamagedError
			if got := asEventDamage(c.err, 7, &damage); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
