package bolt

import (
	"errors"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// A workspace keeps its kind also where nothing in memory knows it: only state.db says
// which it is.
func TestKindOfAForgottenWorkspace(t *testing.T) {
	d := testDescriptor(1, messages.TrustNone)
	d.Kinds = append(d.Kinds, messages.Kind{ID: 2, Name: "another"})
	dir := t.TempDir()
	s := open(t, dir, d, Options{})
	w := takeOver(t, s, 0)
	w.append(1)
	w.flush()
	closeStore(t, s)
	w = takeOver(t, open(t, dir, d, Options{}), 0)
	e := w.event(1)
	e.WorkspaceKind, e.Numbers, e.Records = 2, nil, nil
	if err := w.try(e); !errors.Is(err, messages.ErrKindMismatch) || !errors.Is(err, storage.ErrInvalidEvent) {
		t.Fatalf("got %v, want that its kind cannot change", err)
	}
	w.append(1)
}

// An append that was refused leaves no kind behind it, though the store looked for the end of
// its workspace.
func TestKindOfARefusedAppend(t *testing.T) {
	d := testDescriptor(1, messages.TrustNone)
	d.Kinds = append(d.Kinds, messages.Kind{ID: 2, Name: "another"})
	w := takeOver(t, open(t, t.TempDir(), d, Options{}), 0)
	e := w.event(1)
	e.PLogOffset += 9
	if err := w.try(e); !errors.Is(err, storage.ErrOutOfOrder) {
		t.Fatalf("offset 10 of an empty log: got %v, want out of order", err)
	}
	if !w.s.partitions[0].ends.find(1).known() {
		t.Fatal("the store has not looked for its end")
	}
	e = w.event(1)
	e.WorkspaceKind, e.Numbers, e.Records = 2, nil, nil
	if err := w.try(e); err != nil {
		t.Errorf("the first event of workspace 1: got %v", err)
	}
}
