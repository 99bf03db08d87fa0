package actors_test

import (
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/partita-go/partita/calendar"
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

// Each period of a sequence is logged, and leaves the status when it is over, without any message.
func TestNearlyUsedPeriodEnds(t *testing.T) {
	d := described(1, messages.TrustNone)
	d.Kinds[0].Sequences[0].Largest = 1
	d.Kinds[0].Sequences[0].Restart.Every = calendar.Day
	memory, err := storagetest.NewMemory(d)
	if err != nil {
		t.Fatal(err)
	}
	core, logged := observer.New(zap.WarnLevel)
	r := readyRig(t, setup{memory: memory, logger: zap.New(core)})
	for range 2 {
		r.commit(7)
		day := calendar.DateOf(r.clock.Now().UTC())
		if got := r.partitions[0].Status().NearlyUsed; len(got) != 1 || got[0].Period != day {
			t.Errorf("got %+v, want %v", got, day)
		}
		lines := logged.TakeAll()
		if len(lines) != 1 || lines[0].ContextMap()["period"] != day.String() {
			t.Errorf("got %v, want one of %v", lines, day)
		}
		r.fake.Advance(24 * time.Hour)
		// Whatever the timer tells the partition, it hears before this.
		r.check(r.partitions[0].Reconfigure(r.ctx, r.ports, messages.Settings{}.WithDefaults()))
		if got := r.partitions[0].Status().NearlyUsed; len(got) != 0 {
			t.Errorf("got %+v", got)
		}
	}
}
