package bolt

import (
	"fmt"
	"testing"

	"github.com/partita-go/partita/storage"
)

// Damage that is not of the entry that was read says nothing about its event: the
// flushes that share the scan must not go on behind it.
func TestDamageElsewhereIsNoEvents(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"of the entry":        {damagedEvent(7, 1, 2, errMissing), true},
		"of another entry":    {damagedEvent(8, 1, 2, errMissing), false},
		"of the file":         {&storage.DamagedError{Where: "log.db", Cause: errMissing}, false},
		"wrapped":             {fmt.Errorf("scan: %w", damagedEvent(7, 1, 2, errMissing)), true},
		"no damage":           {errMissing, false},
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
