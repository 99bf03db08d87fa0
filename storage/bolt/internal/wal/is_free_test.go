package wal

import (
	"testing"

	"github.com/partita-go/partita/messages"
)

// TestIsFree: a commit as large as a half waits for a half like any other; a larger one, until log.db has everything.
func TestIsFree(t *testing.T) {
	for name, c := range map[string]struct {
		size, used int64
		applied    messages.LSN
		want       bool
	}{
		"behind the one before":                  {2, 2, 5, true},
		"as large as a half, one is free":        {4, 2, 9, true},
		"as large as a half, none is free":       {4, 2, 5, false},
		"larger, one half is free":               {5, 2, 9, false},
		"larger, and log.db has everything":      {5, 2, 12, true},
		"the other half is free, with much room": {3, 2, 9, true},
	} {
		w := Writer{Half: 4, Current: 1, Used: c.used, Last: [2]messages.LSN{9, 12}}
		if got := w.IsFree(c.size, c.applied, 12); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
		if w.Current != 1 || w.Used != c.used {
			t.Errorf("%s: got the place of half %d, %d: looking has chosen it", name, w.Current, w.Used)
		}
	}
}
