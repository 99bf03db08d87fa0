package operate

import (
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/storagetest"
)

// The log tells each zone that a workspace was given, in its event; its numbers tell the last one, and since when.
func TestZoneIsTold(t *testing.T) {
	dir := t.TempDir()
	s, err := bolt.Open(limit(t), dir, storagetest.Descriptor(messages.TrustNone), bolt.Options{Create: true})
	check(t, err)
	p := storagetest.Take(t, s, 0)
	p.Append(t, storagetest.Spec{Workspace: 3, Zone: "Asia/Tokyo", Give: []messages.SeqID{storagetest.SeqInvoice}})
	p.Append(t, storagetest.Spec{Workspace: 3, Zone: "America/New_York"})
	p.Append(t, storagetest.Spec{Workspace: 3}, storagetest.Spec{Workspace: 6})
	var since messages.Timestamp
	for e, err := range s.WLog(limit(t), 3, 2) {
		if check(t, err); e.WLogOffset == 2 {
			since = e.RegisteredAt
		}
	}
	check(t, s.Close(limit(t)))
	for i, line := range strings.Split(strings.TrimSpace(run(t, "log", "--db", dir).has(t, exitFine).stdout), "\n") {
		if zone := []string{"  zone Asia/Tokyo  17:1000", "  zone America/New_York", "", ""}[i]; !strings.Contains(line, zone) || strings.Contains(line, "zone") != (zone != "") {
			t.Errorf("got %s\nwant %q", line, zone)
		}
	}
	if got := run(t, "log", "--db", dir, "--json").has(t, exitFine).stdout; strings.Count(got, `"zone":`) != 2 || !strings.Contains(got, `"zone":"Asia/Tokyo"`) {
		t.Errorf("got %s", got)
	}
	if got, want := run(t, "numbers", "--db", dir, "--workspace", "3").has(t, exitFine).stdout,
		"\ntime zone: America/New_York since "+since.String()+", for each sequence that restarts from its next period on\n"; !strings.Contains(got, want) {
		t.Errorf("got %s\nwant %q", got, want)
	}
	for _, want := range []string{`"zone": "America/New_York"`, `"zone_set_at": "` + since.String() + `"`} {
		if got := run(t, "numbers", "--db", dir, "--workspace", "3", "--json").has(t, exitFine).stdout; !strings.Contains(got, want) {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
	for _, more := range [][]string{nil, {"--json"}} {
		if got := run(t, append([]string{"numbers", "--db", dir, "--workspace", "6"}, more...)...).has(t, exitFine).stdout; strings.Contains(got, "zone") {
			t.Errorf("got %s, want no zone", got)
		}
	}
}
