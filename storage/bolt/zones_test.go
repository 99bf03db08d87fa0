package bolt

import (
	"slices"
	"testing"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/storagetest"
	"github.com/partita-go/partita/storage/verify"
)

// Verify finds zones that state.db has and no event has set, those that it has not, and other ones.
func TestVerifyFindsWrongZones(t *testing.T) {
	for name, change := range map[string]func(*format.Head){
		"none":         func(h *format.Head) { h.Zones = nil },
		"another one":  func(h *format.Head) { h.Zones[0].Zone = calendar.ZoneNamed("Europe/Rome") },
		"another time": func(h *format.Head) { h.Zones[0].Set = h.Zones[0].Set.AddDate(0, 0, 1) },
		"one more":     func(h *format.Head) { h.Zones = h.Zones.Merge(messages.ZoneChange("UTC", 1<<50)) },
	} {
		dir := t.TempDir()
		s := open(t, dir, dailyStore(2), Options{})
		p := storagetest.Take(t, s, 0)
		p.Append(t, storagetest.Spec{Workspace: 3, Zone: "Europe/Zurich"}, storagetest.Spec{Workspace: 6})
		p.FlushAll(t)
		p.Append(t, storagetest.Spec{Workspace: 3, Zone: "Asia/Tokyo"}) // which state.db has not yet
		if n, err := s.Numbers(t.Context(), 3); err != nil || len(n.Zones) != 1 || n.Zones[0].Zone.String() != "Europe/Zurich" {
			t.Fatalf("got %v, %v", n.Zones, err)
		}
		closeStore(t, s)
		expect.Equal(t, uint64(0), verified(t, dir, verify.Options{}).FaultCount)
		s = open(t, dir, dailyStore(2), Options{})
		changeHead(t, s, 3, change)
		closeStore(t, s)
		r := verified(t, dir, verify.Options{})
		if !slices.ContainsFunc(r.Faults, func(f verify.Fault) bool { return f.Check == verify.CheckNumbers && f.Projection }) || r.FaultCount != 1 {
			t.Errorf("%s: got %v", name, r.Faults)
		}
	}
}
