package partition_test

import (
	"reflect"
	"testing"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// A reader says of the end of the log what a flush up to there stores: which periods have which numbers, and which are
// closed.
func TestReaderNumbersOfPeriods(t *testing.T) {
	store, err := storagetest.NewMemory(storagetest.Descriptor(messages.TrustNone))
	if err != nil {
		t.Fatal(err)
	}
	p := storagetest.Take(t, store, 0)
	for _, day := range []calendar.Date{20260101, 20260201, 20260202, 20260301, 20260201, 20260303, 20260302, 20260401} {
		p.Append(t, storagetest.Spec{Workspace: 3, Give: []messages.SeqID{storagetest.SeqReceipt, storagetest.SeqCase}, Day: day})
	}
	asked := []messages.SequencePeriod{{Seq: storagetest.SeqCase, Period: 20260101}, {Seq: storagetest.SeqCase, Period: 20260201}}
	var got []storage.WorkspaceNumbers
	for checkpoint := range p.Last() + 1 {
		p.FlushTo(t, checkpoint+1)
		n, err := partition.NewReader(store).Numbers(t.Context(), 3, asked...)
		if err != nil {
			t.Fatal(err)
		}
		n.Older = nil // what is not stored yet is listed without being asked for
		got = append(got, n)
	}
	want, err := store.Numbers(t.Context(), 3, asked...)
	if err != nil || len(want.Closed) != 1 || len(want.Numbers) != 1+2+4 {
		t.Fatalf("got %+v, error %v", want, err)
	}
	want.Older = nil
	for i := range got {
		if !reflect.DeepEqual(got[i], want) {
			t.Errorf("checkpoint %d: got %+v, want %+v", i+1, got[i], want)
		}
	}
}
