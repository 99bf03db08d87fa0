package operate

import (
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/storagetest"
)

// The log says what was taken over from an old system; the numbers are above it, and verify finds nothing.
func TestTakenOverIsTold(t *testing.T) {
	dir := t.TempDir()
	s, err := bolt.Open(limit(t), dir, storagetest.Descriptor(messages.TrustNone), bolt.Options{Create: true})
	check(t, err)
	storagetest.Take(t, s, 0).Append(t, storagetest.Spec{
		Workspace: 3, Bring: []storagetest.Ahead{{Seq: storagetest.SeqInvoice, By: 6}}, Give: []messages.SeqID{storagetest.SeqInvoice},
		Move: []storagetest.Ahead{{Seq: storagetest.SeqReceipt, By: 40}, {Seq: storagetest.SeqInvoice, By: 9}},
	})
	check(t, s.Close(limit(t)))
	if got := run(t, "log", "--db", dir).has(t, exitFine).stdout; !strings.Contains(got, "  brings 17:1006  17:1007  moves to 19:2026-03-29:41  moves to 17:1017  body") {
		t.Errorf("got %s", got)
	}
	if got := run(t, "log", "--db", dir, "--json").has(t, exitFine).stdout; !strings.Contains(got, `"brought":[{"sequence":17,"number":"1006"}],"moves":[{"sequence":19,`) {
		t.Errorf("got %s", got)
	}
	run(t, "verify", "--db", dir).has(t, exitFine)
	if got := run(t, "numbers", "--db", dir, "--workspace", "3").has(t, exitFine).stdout; !strings.Contains(got, "1017") || !strings.Contains(got, "41") {
		t.Errorf("got %s", got)
	}
}
