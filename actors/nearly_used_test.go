package actors_test

import (
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/storagetest"
)

// A sequence of which more than 90 % is used is in the status at once, and is logged once.
func TestNearlyUsedIsLogged(t *testing.T) {
	d := described(1, messages.TrustNone)
	d.Kinds[0].Sequences[0].Largest = 2
	memory, err := storagetest.NewMemory(d)
	if err != nil {
		t.Fatal(err)
	}
	core, logged := observer.New(zap.WarnLevel)
	r := readyRig(t, setup{memory: memory, logger: zap.New(core)})
	r.commit(7)
	if got := r.partitions[0].Status().NearlyUsed; len(got) != 0 || logged.Len() != 0 {
		t.Errorf("got %+v, logged %v", got, logged.All())
	}
	r.commit(7)
	want := messages.NearlyUsed{Workspace: 7, Seq: invoices, Name: "Invoice", Last: 2, Largest: 2}
	if got := r.partitions[0].Status().NearlyUsed; len(got) != 1 || got[0] != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	lines := logged.TakeAll()
	if len(lines) != 1 || lines[0].ContextMap()["workspace"] != uint64(7) || lines[0].ContextMap()["largest"] != uint64(2) {
		t.Errorf("got %v", lines)
	}
}
