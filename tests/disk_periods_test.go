package tests

import (
	"errors"
	"reflect"
	"testing"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/storagetest"
)

// TestFlippedKeysOfPeriods does what [TestFlippedKeysOfNumbers] does for the last numbers of older periods, which are
// entries of the index: they are right, or damage.
func TestFlippedKeysOfPeriods(t *testing.T) {
	s := newSite(t, 3, partition.Settings{})
	s.dir, s.app.Descriptor = scratch(t), storagetest.Descriptor(messages.TrustNone)
	workspaces := []messages.WSID{0, 3, 6}
	var asked []messages.SequencePeriod
	s.look(t, func(store *bolt.Store) {
		p := storagetest.Take(t, store, 0)
		for i := range 90 {
			day := calendar.Rule{Every: calendar.Month}.Add(storagetest.FirstDay, i)
			asked = append(asked, messages.SequencePeriod{Seq: storagetest.SeqCase, Period: day})
			for _, ws := range workspaces {
				p.Append(t, storagetest.Spec{Workspace: ws, Give: []messages.SeqID{storagetest.SeqCase}, Day: day})
			}
		}
		p.FlushAll(t)
	})
	store := openBolt(t, s.dir, s.app.Descriptor, bolt.Options{ReadOnly: true})
	defer func() { check(t, store.Close(limit(t))) }()
	sound := make(map[messages.WSID]storage.WorkspaceNumbers)
	for _, ws := range workspaces {
		sound[ws] = must(store.Numbers(t.Context(), ws, asked...))(t)
		if got := len(sound[ws].Numbers); got != 1+len(asked) {
			t.Fatalf("workspace %d: got %d numbers, want %d", ws, got, 1+len(asked))
		}
	}
	noticed := 0
	s.flipKeys(t, "index", false, func(where string) {
		for _, ws := range workspaces {
			got, err := store.Numbers(t.Context(), ws, asked...)
			if errors.Is(err, storage.ErrDamaged) {
				noticed++
			} else if err != nil || !reflect.DeepEqual(got, sound[ws]) {
				t.Errorf("%s: workspace %d: got %v, %v, want %v", where, ws, got, err, sound[ws])
			}
		}
	})
	if noticed == 0 {
		t.Error("no damage was noticed")
	}
}
