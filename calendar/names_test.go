package calendar_test

import (
	"strings"
	"testing"

	"github.com/partita-go/partita/calendar"
)

// TestIsZoneName: the first and the last of the letters, of the digits, and of the lengths that a name can have are taken.
func TestIsZoneName(t *testing.T) {
	for name, want := range map[string]bool{
		"Zulu": true, "Asia/Aqtau": true, "Etc/GMT+0": true, "Etc/GMT-9": true,
		"A" + strings.Repeat("z", calendar.MaxZoneName-1): true, "A" + strings.Repeat("z", calendar.MaxZoneName): false,
		"[a": false, "A:": false, "A{": false,
	} {
		if got := calendar.IsZoneName(name); got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
}
