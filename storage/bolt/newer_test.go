package bolt

import (
	"strings"
	"testing"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
)

// A program that knows less than the store has is refused, with what it lacks and what to do. If it may have the store
// all the same, it changes nothing of what it does not know.
func TestOlderProgram(t *testing.T) {
	dir, older := t.TempDir(), testDescriptor(1, messages.TrustNone)
	newer := older.Normalized()
	newer.Kinds = append(newer.Kinds, messages.Kind{ID: 2, Name: "archive"})
	newer.Kinds[0].Sequences = append(newer.Kinds[0].Sequences, messages.Sequence{ID: 17, Name: "receipt", Initial: 1})
	newer = newer.Normalized()
	closeStore(t, open(t, dir, older, Options{}))
	closeStore(t, open(t, dir, newer, Options{}))
	_, err := Open(t.Context(), dir, older, Options{})
	expect.ErrorIs(t, err, messages.ErrDescriptor)
	for _, want := range []string{`kind 1 "tenant", sequence 17 "receipt": got none, the store has it`, "Options.AcceptNewer"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for _, o := range []Options{{AcceptNewer: true}, {AcceptNewer: true, ReadOnly: true}} {
		s, err := Open(t.Context(), dir, older, o)
		expect.NoError(t, err)
		expect.Equal(t, newer, s.Descriptor())
		if !o.ReadOnly {
			takeOver(t, s, 0).append(1)
		}
		closeStore(t, s)
	}
	s := open(t, dir, newer, Options{})
	expect.Equal(t, newer, s.Descriptor())
	expect.Equal(t, 1, len(collectEvents(t, s.Log(t.Context(), 1))))
	closeStore(t, s)
}

// Limits may have been raised by a newer program, or lowered in this one: the error names both. Where the option accepts
// them, those of the store count.
func TestSmallerLimits(t *testing.T) {
	daily := calendar.Rule{Every: calendar.Day}
	store := testDescriptor(1, messages.TrustNone)
	store.Kinds[0].Sequences[0].Largest = 9999
	store.Kinds[0].Sequences = append(store.Kinds[0].Sequences,
		messages.Sequence{ID: 17, Name: "receipt", Initial: 1, Restart: messages.Restart{Rule: daily, Ahead: 3}})
	store = store.Normalized()
	dir := t.TempDir()
	closeStore(t, open(t, dir, store, Options{}))
	for want, lower := range map[string]func([]messages.Sequence){
		"smaller largest number: got 1999, the store has 9999": func(s []messages.Sequence) { s[0].Largest = 1999 },
		"fewer periods ahead: got 2, the store has 3":          func(s []messages.Sequence) { s[1].Restart.Ahead = 2 },
	} {
		lowered := store.Normalized()
		lower(lowered.Kinds[0].Sequences)
		_, err := Open(t.Context(), dir, lowered, Options{})
		expect.ErrorIs(t, err, messages.ErrDescriptor)
		for _, want := range []string{want, "put it back", "newer program", "Options.AcceptNewer"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
		s, err := Open(t.Context(), dir, lowered, Options{AcceptNewer: true})
		expect.NoError(t, err)
		expect.Equal(t, store, s.Descriptor())
		closeStore(t, s)
	}
}

// What never changes is refused with the option too, and without its advice.
func TestOtherProgram(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(2, messages.TrustNone)
	closeStore(t, open(t, dir, d, Options{}))
	before := filesOf(t, dir)
	for name, change := range map[string]func(d *messages.Descriptor){
		"partitions": func(d *messages.Descriptor) { d.Partitions = 3 },
		"initial":    func(d *messages.Descriptor) { d.Kinds[0].Sequences[0].Initial++ },
		"more and less": func(d *messages.Descriptor) {
			d.Kinds[0].Sequences = nil
			d.Kinds = append(d.Kinds, messages.Kind{ID: 2, Name: "archive"})
		},
		"a name that another kind has": func(d *messages.Descriptor) { d.Kinds = append(d.Kinds, messages.Kind{ID: 2, Name: "tenant"}) },
	} {
		other := d.Normalized()
		change(&other)
		_, err := Open(t.Context(), dir, other, Options{AcceptNewer: true})
		expect.ErrorIs(t, err, messages.ErrDescriptor, name)
		if strings.Contains(err.Error(), "AcceptNewer") {
			t.Errorf("%s: got %v, want no advice that does not help", name, err)
		}
	}
	expect.Equal(t, before, filesOf(t, dir))
}
